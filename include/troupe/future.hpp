// What this file is for: futures, the handles of tasks and of their results.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

#include <troupe/detail/deadline.hpp>
#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

namespace troupe {

/// A future is a handle of a task and its result; `spawn`, `for_each` and `run` return it. Cheap to copy, like
/// `std::shared_future`. Destroying it neither waits for the task nor cancels it. It may outlive its runtime; a task
/// that had not finished by then reports `runtime_stopped`.
///
/// Threads: all members may be called from any thread, also inside tasks. A wait inside a task gives its worker's slot
/// to other tasks meanwhile; the destructors of what a body on cores has captured are inside its task. Those of
/// results, and of captures whose body never ran, are called wherever the last reference goes, also in a scheduling
/// pass, and must not wait: a wait without a limit throws `error(would_deadlock)` there.
template <class T>
class future {
 public:
  using value_type = T;

  /// Names no task; only assignment, destruction and `valid` are allowed.
  future() = default;
  future(const future& o) : task_(o.task_) {
    if (task_) detail::retain(task_);
  }
  future(future&& o) noexcept : task_(std::exchange(o.task_, nullptr)) {}
  // Two of them: of a parameter by value Clang 14 forgets the destructor where a template assigns `{}`.
  future& operator=(const future& o) noexcept { return *this = future(o); }
  future& operator=(future&& o) noexcept {
    future taken(std::move(o));
    std::swap(task_, taken.task_);
    return *this;
  }
  ~future() {
    if (task_) detail::release(task_);
  }

  /// True if the future names a task.
  bool valid() const noexcept { return task_ != nullptr; }
  /// True once the task has finished, failed or was cancelled.
  bool is_ready() const noexcept { return task_ && detail::is_done(*task_); }

  /// Waits until the task has finished, failed or was cancelled. Throws only `error(bad_argument)` on an empty future,
  /// and `error(would_deadlock)`: from inside the task itself or a task that it comes after by its arguments, or if the
  /// task can only go on after a host view that this thread holds. Bodies that wait for each other's futures are not
  /// detected and wait for ever.
  void wait() const { detail::wait(checked()); }
  /// `wait` with a limit, of any size; true if the task is done.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> limit) const {
    return detail::wait_until(checked(), detail::deadline_after(limit));
  }

  /// Waits and returns the result, or throws `task_failed`. The reference is valid as long as any future of the task
  /// exists.
  decltype(auto) get() const& {
    wait();
    detail::throw_error(*task_);
    if constexpr (!std::is_void_v<T>) return static_cast<const T&>(*static_cast<const T*>(task_->ops->result(*task_)));
  }
  /// `get` of a temporary: returns a copy of the result (moved out if T cannot be copied).
  T get() && {
    wait();
    detail::throw_error(*task_);
    if constexpr (!std::is_void_v<T>) {
      T& value = *static_cast<T*>(task_->ops->result(*task_));
      if constexpr (std::copy_constructible<T>)
        return value;
      else
        return std::move(value);
    }
  }

  /// Spawns a task that runs `f(result)` (or `f()` for void) once this one has finished, and fails if this one fails.
  /// Returns its future.
  template <class F>
  auto then(F f) const;

  /// `co_await`: resumes on a worker of the task's runtime and gives what `get` gives. If the runtime is shut down
  /// before that, it resumes on the thread that does so, with `runtime_stopped` if the task has not finished.
  auto operator co_await() const;

  /// Used by the library.
  explicit future(detail::task_record* adopt_reference) : task_(adopt_reference) {}
  detail::task_record* task() const { return task_; }

 private:
  detail::task_record& checked() const {
    if (!task_) throw error(errc::bad_argument, "the future names no task");
    return *task_;
  }
  detail::task_record* task_ = nullptr;
};

}  // namespace troupe
