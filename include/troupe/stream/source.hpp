// What this file is for: sources written as coroutines: what they yield, and what they may wait for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// g++ 12 gets two things wrong that a coroutine may say. What braces make inside the expression of a `co_yield` is
// destroyed twice, where that is an aggregate with a string or the like (`co_yield line{text, 1}`): give such an item a
// name, and `co_yield std::move(item)`. Both sides of a `?:` inside the expression of a `co_await` are evaluated:
// choose before.
//
//   st::source<line> lines(int descriptor) {
//     for (;;) {
//       co_await st::readable(descriptor);
//       ...
//       co_yield line(...);
//     }
//   }
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include <troupe/detail/deadline.hpp>
#include <troupe/detail/streams/clock.hpp>
#include <troupe/error.hpp>

namespace troupe::stream {

/// `co_await sleep(1s)` in a source: the stream asks for the next item after that time, on the steady clock.
struct sleep_until {
  std::chrono::steady_clock::time_point at;
};
template <class Rep, class Period>
sleep_until sleep(std::chrono::duration<Rep, Period> d) {
  return {troupe::detail::deadline_after(d, troupe::detail::streams::now())};
}
/// `co_await readable(fd)` in a source: until a read would not block, or the other end is gone; a regular file is
/// always readable. The descriptor must stay open meanwhile. What is no open descriptor fails the stream.
struct readable {
  int descriptor;
  explicit readable(int d) : descriptor(d) {}
};
/// The same for a write.
struct writable {
  int descriptor;
  explicit writable(int d) : descriptor(d) {}
};
/// `co_yield due(item, when)`: latencies of the item are counted from `when` on, not from when the source was asked.
template <class T>
struct due {
  T item;
  std::chrono::steady_clock::time_point at;
  due(T i, std::chrono::steady_clock::time_point when) : item(std::move(i)), at(when) {}
};

/// A coroutine that yields the items of a stream, in order. It is resumed by one thread at a time, not always the same
/// one, and only while there is room for an item. It ends when it returns; what it throws fails the stream. A stream
/// that ends earlier destroys it where it waits: destructors of its variables run, no code behind.
template <class T>
class [[nodiscard]] source {
 public:
  struct promise_type {
    // An aggregate would be made of the coroutine's own parameters, where they fit.
    promise_type() noexcept {}
    source get_return_object() { return source(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void unhandled_exception() noexcept { error = std::current_exception(); }
    void return_void() noexcept {}
    std::suspend_always yield_value(T item) {
      value.emplace(std::move(item));
      return {};
    }
    std::suspend_always yield_value(due<T> d) {
      value.emplace(std::move(d.item));
      due_at = d.at;
      return {};
    }
    std::suspend_always await_transform(sleep_until s) noexcept {
      wake_at = s.at;
      return {};
    }
    std::suspend_always await_transform(readable r) noexcept {
      descriptor = r.descriptor;
      for_writing = false;
      return {};
    }
    std::suspend_always await_transform(writable r) noexcept {
      descriptor = r.descriptor;
      for_writing = true;
      return {};
    }
    /// What can be tried: `push` of an item into another stream.
    template <class Attempt>
    requires requires(Attempt& a, const std::function<void()>& call) {
      { a.is_done_or_calls(call) } -> std::same_as<bool>;
    }
    auto await_transform(Attempt a) {
      struct awaiter {
        Attempt of;
        promise_type& in;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<>) {
          in.need_not_wait = [this](const std::function<void()>& call) { return of.is_done_or_calls(call); };
        }
        auto await_resume() { return of.await_resume(); }
      };
      return awaiter{std::move(a), *this};
    }

    // What it has suspended for.
    std::optional<T> value{};
    std::optional<std::chrono::steady_clock::time_point> due_at{}, wake_at{};
    int descriptor = -1;
    bool for_writing = false;
    std::function<bool(const std::function<void()>&)> need_not_wait{};
    std::exception_ptr error{};
  };

  source(source&& o) noexcept : frame_(std::exchange(o.frame_, nullptr)) {}
  source& operator=(source&& o) noexcept {
    std::swap(frame_, o.frame_);
    return *this;
  }
  ~source() {
    if (frame_) frame_.destroy();
  }
  /// Used by the library.
  std::coroutine_handle<promise_type> frame() const { return frame_; }

 private:
  explicit source(std::coroutine_handle<promise_type> h) : frame_(h) {}
  std::coroutine_handle<promise_type> frame_;
};

/// Numbers from 0 on, one each `period`, for ever: a timer. Each is due at its time, so latencies count from then;
/// those for which there was no room in time come at once afterwards. Throws `error(bad_argument)` unless it is
/// positive.
inline source<std::uint64_t> ticks(std::chrono::nanoseconds period) {
  if (period.count() <= 0) throw error(errc::bad_argument, "ticks: the period is not positive");
  return [](std::chrono::nanoseconds each) -> source<std::uint64_t> {
    auto next = troupe::detail::streams::now();
    for (std::uint64_t n = 0;; ++n) {
      co_await sleep_until{next};
      due<std::uint64_t> tick(n, next);
      co_yield std::move(tick);
      next += each;
    }
  }(period);
}

}  // namespace troupe::stream
