// What this file is for: spawn, try_spawn and for_each, with which a runtime or a recorder of graphs is given tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include <troupe/detail/deadline.hpp>
#include <troupe/detail/submit.hpp>

namespace troupe {

/// The members of `runtime` and `recorder` that spawn tasks: `rt.spawn(f, read(a), write(b))`.
///
/// Threads: all may be called from any thread and from inside tasks.
///
/// Order: calls are ordered as they are made. A task begins after the earlier tasks that touch the same elements, if
/// one of the two changes them, and after the tasks whose futures it is given.
///
/// Errors: a wrong call throws `error` at once and leaves nothing behind. What a body throws reaches the threads that
/// wait for its future, and the tasks that read what it was to write.
///
/// Lifetimes: a task holds its body, its arguments and its arrays. Of the caller's objects only these must outlive the
/// call: what a body refers to by pointer or reference, and the memory of borrowed arrays.
template <class Self>
class submitter {
 public:
  /// Spawns one task that calls `f` with a view per access (`read`, `write`, `update`, `reduce`), the value of each
  /// future, and copies of the other arguments, in their order; with `task_context&` first if `f` takes that. Nothing
  /// is passed for a `future<void>`, which has no value. A body that needs only the order may take no parameters.
  /// Bodies that are not kernels run on the cores of this process.
  ///
  /// Returns the future of what `f` returns without waiting for the task, which may have run by then. Blocks only while
  /// `options::tasks_in_flight_max` tasks are in flight, never inside a task; see `try_spawn`.
  ///
  /// Throws `error(bad_argument)` for an empty handle or future and for an array of another runtime;
  /// `error(overlapping_write)` if two accesses touch the same element and one of them changes it: pass the array once,
  /// with `update` (`read` and `update` of exactly the same box are taken for that: both views may be of the same
  /// memory); `error(no_executor)` and `error(no_resource)` if no executor is in the scope of `options` or has its
  /// quantities; `error(out_of_memory)` if there is no memory for the task; `error(runtime_stopped)` after a shutdown.
  template <detail::body F, class... A>
  auto spawn(F&& f, const A&... args) {
    return spawn_at(to(), std::forward<F>(f), args...);
  }
  /// The same with options.
  template <detail::body F, class... A>
  auto spawn(const task_options& options, F&& f, const A&... args) {
    return spawn_at(to(), options, std::forward<F>(f), args...);
  }
  /// Spawns one call of a kernel, on any executor in scope that has a body for it. Access modes are checked against its
  /// signature at compile time. Throws as above, with `error(no_executor)` if no executor in scope has a body, and
  /// `error(bad_argument)` where the arrays do not have the shapes that the kernel requires, and for a number that its
  /// parameter's type does not hold: an integer must be in it as it is, a floating-point number within its range.
  template <class... P, class... A>
  future<void> spawn(const kernel<P...>& k, const A&... args) {
    return spawn_at(to(), k, args...);
  }
  /// The same with options.
  template <class... P, class... A>
  future<void> spawn(const task_options& options, const kernel<P...>& k, const A&... args) {
    return spawn_at(to(), options, k, args...);
  }

  /// `spawn`, with any of its arguments, for callers that must not block: returns an empty `std::optional` while
  /// `options::tasks_in_flight_max` tasks are in flight. Inside a task and on a recorder there is always room.
  template <class... A>
  auto try_spawn(A&&... args) {
    return try_spawn_for(std::chrono::seconds(0), std::forward<A>(args)...);
  }
  /// The same with options.
  template <class... A>
  auto try_spawn(const task_options& options, A&&... args) {
    return try_spawn_for(std::chrono::seconds(0), options, std::forward<A>(args)...);
  }
  /// The same, waiting for room as long as the limit says.
  template <class Rep, class Period, class... A>
  auto try_spawn_for(std::chrono::duration<Rep, Period> limit, A&&... args) {
    detail::target t = to();
    std::optional<decltype(spawn_at(t, std::forward<A>(args)...))> done;
    if (!detail::wait_for_room(t, detail::deadline_after(limit))) return done;
    t.waits = false;  // others may have taken the room meanwhile
    done.emplace(spawn_at(t, std::forward<A>(args)...));
    return done;
  }
  /// The same with options.
  template <class Rep, class Period, class... A>
  auto try_spawn_for(std::chrono::duration<Rep, Period> limit, const task_options& options, A&&... args) {
    return try_spawn_for<Rep, Period, const task_options&, A...>(limit, options, std::forward<A>(args)...);
  }

  /// Spawns one task per chunk of the index space (`grid(h, w)`, `grid(h, w).chunks(64, 64)`); each array argument's
  /// mapper says what a chunk touches. Accesses without a mapper are one to one if array and index space have the same
  /// extent, else the whole array. `index_space::chunk` says how large chunks are if the index space does not.
  ///
  /// Returns, as `spawn` does, a future that is done when all chunks are; the first failure is its error. Throws what
  /// `spawn` throws, `error(overlapping_write)` also if two chunks write the same element (chunks that `update` the
  /// same elements run one after another, in order), `error(bad_argument)` also for negative extents and sizes of
  /// chunks and for mappers that do not fit their array, and `error(out_of_memory)` for more chunks than this machine
  /// has room for.
  template <int K, detail::body F, class... A>
  future<void> for_each(const index_space<K>& space, const F& f, const A&... args) {
    return detail::for_each_with(to(), nullptr, nullptr, space, f, args...);
  }
  /// The same with options, which hold for each chunk.
  template <int K, detail::body F, class... A>
  future<void> for_each(const task_options& options, const index_space<K>& space, const F& f, const A&... args) {
    return detail::for_each_with(to(), &options, nullptr, space, f, args...);
  }
  /// The same with a kernel.
  template <int K, class... P, class... A>
  future<void> for_each(const index_space<K>& space, const kernel<P...>& k, const A&... args) {
    detail::check_signature(k, args...);
    return detail::for_each_with(to(), nullptr, intern(k), space, k.body(), detail::for_parameter<P>::of(args)...);
  }
  /// The same with options and a kernel.
  template <int K, class... P, class... A>
  future<void> for_each(const task_options& options, const index_space<K>& space, const kernel<P...>& k,
                        const A&... args) {
    detail::check_signature(k, args...);
    return detail::for_each_with(to(), &options, intern(k), space, k.body(), detail::for_parameter<P>::of(args)...);
  }

 protected:
  submitter() = default;

 private:
  detail::target to() const { return static_cast<const Self*>(this)->submission_target(); }

  template <class... P>
  const detail::kernel_info* intern(const kernel<P...>& k) const {
    return detail::intern(*to().the_engine, k.info());
  }

  template <detail::body F, class... A>
  auto spawn_at(detail::target t, F&& f, const A&... args) {
    return detail::spawn_with<F>(t, nullptr, nullptr, std::forward<F>(f), args...);
  }
  template <detail::body F, class... A>
  auto spawn_at(detail::target t, const task_options& options, F&& f, const A&... args) {
    return detail::spawn_with<F>(t, &options, nullptr, std::forward<F>(f), args...);
  }
  template <class... P, class... A>
  future<void> spawn_at(detail::target t, const kernel<P...>& k, const A&... args) {
    detail::check_signature(k, args...);
    return detail::spawn_with<typename kernel<P...>::cpu_body>(t, nullptr, intern(k), k.body(),
                                                               detail::for_parameter<P>::of(args)...);
  }
  template <class... P, class... A>
  future<void> spawn_at(detail::target t, const task_options& options, const kernel<P...>& k, const A&... args) {
    detail::check_signature(k, args...);
    return detail::spawn_with<typename kernel<P...>::cpu_body>(t, &options, intern(k), k.body(),
                                                               detail::for_parameter<P>::of(args)...);
  }
};

}  // namespace troupe
