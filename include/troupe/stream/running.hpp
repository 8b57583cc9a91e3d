// What this file is for: a stream that has been started: its handle, and ways into it for threads outside.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <troupe/detail/deadline.hpp>
#include <troupe/detail/streams/running.hpp>
#include <troupe/detail/streams/sources.hpp>
#include <troupe/error.hpp>
#include <troupe/stream/report.hpp>

namespace troupe::stream {

namespace parts = troupe::detail::streams;  // not for users

class pipeline;

/// The answer to a push.
enum class pushed : std::uint8_t {
  ok,      ///< the item is in the stream, or the edge has dropped one, as it was told to
  full,    ///< there was no room in time; the caller still has the item
  closed,  ///< the stream has ended or is ending; the caller still has the item
};

template <class T>
class push_attempt;

/// A way into a running stream for threads outside of it, made by `running::input`. A handle: copies are the same way.
/// Any thread. It keeps what it needs alive; once the stream has ended, pushes answer `closed`.
template <class T>
class input {
 public:
  /// Pushes an item, waiting for room as long as that takes. `due`: from when its latency counts. Throws
  /// `error(overrun)` where the edge is to fail when it is full; the stream has then failed. In a task, or in a stage
  /// of another stream, the worker does other things meanwhile. In a stage of the same stream it is
  /// `error(would_deadlock)` to wait; use `try_push`.
  pushed push(T&& item, std::chrono::steady_clock::time_point due = std::chrono::steady_clock::now()) {
    return push_until(std::move(item), std::chrono::steady_clock::time_point::max(), due);
  }
  pushed push(const T& item) { return push(T(item)); }
  /// The same without waiting.
  pushed try_push(T&& item, std::chrono::steady_clock::time_point due = std::chrono::steady_clock::now()) {
    return push_until(std::move(item), std::chrono::steady_clock::time_point::min(), due);
  }
  pushed try_push(const T& item) { return try_push(T(item)); }
  /// The same, waiting for room as long as the limit says.
  template <class Rep, class Period>
  pushed push_for(std::chrono::duration<Rep, Period> limit, T&& item) {
    return push_until(std::move(item), troupe::detail::deadline_after(limit), std::chrono::steady_clock::now());
  }
  /// `co_await in.push_async(item)` in a coroutine: the same as `push`, but no thread waits. In a `source` of another
  /// stream that one's next item is asked for once there is room; other coroutines are then resumed on a worker of the
  /// runtime, and must not be destroyed while they wait. Throws as `push`, but never `would_deadlock`: a source that
  /// pushes into its own stream may wait for itself for ever.
  push_attempt<T> push_async(T item, std::chrono::steady_clock::time_point due = std::chrono::steady_clock::now()) {
    return {*this, std::move(item), due};
  }
  /// Says that nothing more will be pushed: the stream ends when all its sources have. Idempotent.
  void close() { the_node().shut(); }

 private:
  friend class running;
  friend class push_attempt<T>;
  input(std::shared_ptr<parts::machine> of, parts::input_node<T>& n) : of_(std::move(of)), node_(&n) {}
  pushed push_until(T&& item, std::chrono::steady_clock::time_point until, std::chrono::steady_clock::time_point due) {
    parts::input_node<T>& n = the_node();
    of_->check_process();
    return answer_to(n.push(item, due, until, *of_));
  }
  pushed answer_to(parts::received r) const {
    switch (r) {
      case parts::received::yes:
        return pushed::ok;
      case parts::received::no:
        return pushed::full;
      case parts::received::closed:
        return pushed::closed;
      case parts::received::overrun:
      case parts::received::failed:  // of edges behind stages
        break;
    }
    of_->rethrow();
    return pushed::closed;
  }
  parts::input_node<T>& the_node() const {
    if (!of_) throw error(errc::bad_argument, "the stream's input was moved from");
    return *node_;
  }
  std::shared_ptr<parts::machine> of_;
  parts::input_node<T>* node_;
};

/// What `input::push_async` returns, to be awaited at once; the answer is `ok` or `closed`. One that is not awaited
/// pushes nothing.
template <class T>
class [[nodiscard]] push_attempt {
 public:
  push_attempt(input<T> in, T item, std::chrono::steady_clock::time_point due)
      : in_(std::move(in)), item_(std::move(item)), due_(due) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> h) {
    return !is_done_or_calls([this, h] {
      const auto go_on = [this, h] {
        if (!await_suspend(h)) h.resume();
      };
      try {
        in_.of_->call_on_worker(go_on);
      } catch (const error&) {  // there are no workers any more, and soon no stream
        go_on();
      }
    });
  }
  pushed await_resume() { return in_.answer_to(got_); }
  /// Used by the library. True if the item is in the stream or never will be; else `call` is called, by any thread,
  /// when there may be room.
  bool is_done_or_calls(const std::function<void()>& call) {
    const parts::received got = in_.the_node().push_or_call(item_, due_, call, *in_.of_);
    if (got == parts::received::no) return false;  // another thread may have gone on with it, and it may be gone
    got_ = got;
    return true;
  }

 private:
  input<T> in_;
  T item_;
  std::chrono::steady_clock::time_point due_;
  parts::received got_ = parts::received::no;
};

/// A stream that has been started. The handle owns it, and what its stages keep, until it goes: its destructor cancels
/// the stream and waits 10 s at most for functions of stages that run; then all items and functions of the stream are
/// gone, but for what `input` handles keep. What runs longer is left behind, with all that it uses. The runtime may go
/// first: the stream then fails with `error(runtime_stopped)`. Functions of stages that take long see
/// `this_task::stop_requested()` when the stream ends early. Any thread may call, but no task that a stage of the same
/// stream has spawned: its stream waits for it. In a stage of the same stream `wait`, `wait_for` and `drain` throw
/// `error(would_deadlock)`, `report` is not exact, and the destructor waits for nothing.
class running {
 public:
  running(running&&) noexcept = default;
  running& operator=(running&& o) noexcept {
    std::swap(of_, o.of_);
    return *this;
  }
  ~running() {
    if (!of_) return;
    of_->cancel();
    try {
      const auto limit = troupe::detail::deadline_after(std::chrono::seconds(10));
      if (of_->wait_until(limit)) of_->wait_left(limit);
    } catch (const error&) {  // in a stage of its own, which is not waited for
    }
  }

  /// The way in that was named by `from<T>(name)`. Throws `error(bad_argument)` if there is none of that name and type.
  template <class T>
  stream::input<T> input(const std::string& name) const {
    return {of_, static_cast<parts::input_node<T>&>(the().input(name, typeid(T)))};
  }
  /// Counters, distributions and stalls; waits up to 10 ms for functions of stages that run.
  stream::report report() const { return the().report(); }
  /// Waits until the stream has ended. Throws `stage_failed` if a stage has failed, `error` if something else has
  /// (`runtime_stopped`, `overrun`, `out_of_memory`), `error(cancelled)` if the stream was cancelled.
  void wait() const {
    the().wait_until(std::chrono::steady_clock::time_point::max());
    the().rethrow();
  }
  /// The same with a limit: false if the stream has not ended by then.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> limit) const {
    if (!the().wait_until(troupe::detail::deadline_after(limit))) return false;
    the().rethrow();
    return true;
  }
  /// Stops sources and inputs, and waits until what is in the stream has gone through, batches that are not full
  /// included. If that takes longer than the limit, the stream is cancelled; what is left is `in_flight` in the report
  /// that is returned. Throws nothing of what stages have thrown: see `report::error`. May be called again.
  template <class Rep, class Period>
  stream::report drain(std::chrono::duration<Rep, Period> limit) const {
    the().check_wait({});
    the().drain();
    if (!the().wait_until(troupe::detail::deadline_after(limit))) {
      of_->cancel();
      of_->wait_until(troupe::detail::deadline_after(std::chrono::milliseconds(100)));
    }
    return the().report();
  }
  /// Sends a barrier through the stream, behind all items that its sources and inputs have pushed until now, and waits
  /// until it has come to all sinks. Those items have then been worked on, in batches that are not full as well; they
  /// have been delivered, unless windows, joins, tables, states or `in_time_order` keep them. Items that come later do
  /// not pass it, but in a stream with a `zip`, where it also waits until all of them have found a partner. True at
  /// once for a stream that has come to its end. False: not in time, or the stream was cancelled, or has failed. In a
  /// stage of the same stream `error(would_deadlock)`.
  template <class Rep, class Period>
  bool barrier(std::chrono::duration<Rep, Period> limit) const {
    return the().barrier(troupe::detail::deadline_after(limit));
  }
  /// Has the stream end without working off what is in it. Returns at once; functions that run come to their end.
  void cancel() const noexcept {
    if (of_) of_->cancel();
  }

 private:
  parts::machine& the() const {
    if (!of_) throw error(errc::bad_argument, "the stream's handle was moved from");
    return *of_;
  }
  friend class pipeline;
  explicit running(std::shared_ptr<parts::machine> m) : of_(std::move(m)) {}
  std::shared_ptr<parts::machine> of_;
};

}  // namespace troupe::stream
