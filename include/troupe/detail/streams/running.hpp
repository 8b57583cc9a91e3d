// What this file is for: what the public templates of streams ask of the library.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <troupe/detail/streams/node.hpp>
#include <troupe/future.hpp>
#include <troupe/options.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/report.hpp>

namespace troupe {
class graph;
class runtime;
}  // namespace troupe

namespace troupe::detail::streams {

/// A stream that has been started. Any thread.
class machine {
 public:
  virtual ~machine() = default;
  virtual troupe::stream::report report() = 0;
  virtual void cancel() noexcept = 0;
  /// Has sources end.
  virtual void drain() noexcept = 0;
  /// False: it has not ended by then.
  virtual bool wait_until(std::chrono::steady_clock::time_point) = 0;
  /// Sends a barrier through the stream and waits until it has come to all sinks. False: not by then, or the stream has
  /// ended before.
  virtual bool barrier(std::chrono::steady_clock::time_point) = 0;
  /// Waits until no thread of the runtime holds anything of a stream that has ended.
  virtual void wait_left(std::chrono::steady_clock::time_point) = 0;
  /// Throws what the stream has failed with.
  virtual void rethrow() = 0;
  /// Throws runtime_stopped in a child by fork.
  virtual void check_process() const = 0;
  /// The same, and throws would_deadlock on a thread that runs one of the stream's stages: it would wait for itself.
  virtual void check_wait(const std::string& input) const = 0;
  /// Ends the stream: an input had no room, and its edge is to fail then.
  virtual void overrun(const std::string& input) noexcept = 0;
  /// Calls a function on a worker of the runtime. Throws runtime_stopped.
  virtual void call_on_worker(std::function<void()>) = 0;
  /// Throws bad_argument if there is no such input.
  virtual node& input(const std::string& name, const std::type_info& item) = 0;
};

/// Reaches the inside of a runtime.
struct entrance {
  /// Throws bad_argument, with the stage's name, for what cannot run.
  static troupe::stream::layout check(runtime&, const plan&);
  /// Takes the plan's parts. Throws the same.
  static std::shared_ptr<machine> start(runtime&, std::shared_ptr<plan>, const troupe::stream::start_options&);
  static engine& the_engine(const runtime&);
  static future<void> run(engine&, const task_options&, const graph&);
};

}  // namespace troupe::detail::streams
