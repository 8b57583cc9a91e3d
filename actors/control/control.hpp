// What this file is for: the actor system of one runtime, as the rest of the runtime sees it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   an actor --failed--> supervisor --restart, withdraw--> that actor      or --> end of the runtime
//   executor, placement --trace_block--> trace observer --> file      engine --close_trace--> trace observer
//   placement, deadlines --call_later--> housekeeper --(after that time, to itself)--> ring --> placement, deadlines
//   executor --went_idle--> housekeeper --(after a while, to itself)--> tidy --> placement
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "actors/actor.hpp"
#include "actors/protocol/trace.hpp"

namespace troupe::detail {

struct control_options {
  std::string trace;  // the file; empty: no trace
  /// Called when nothing has happened for a while; false: there is more to tidy, later.
  std::function<bool()> tidy;
  /// Called when a time has come that `call_later` asked for.
  std::function<void()> ring;
  /// Called when the runtime cannot go on without the actor, which has failed.
  std::function<void(const std::string& actor, std::exception_ptr why)> end_runtime;
  /// Told what was done about failures, in words.
  std::function<void(std::string)> remark;
};

/// Owns the actor system of one runtime. Thread-safe. All functions of the options are called on its thread.
class control {
 public:
  virtual ~control() = default;
  /// Returns where an actor is to report its failures. It is supervised from now on, as its row of the table says
  /// (protocol/supervision.hpp).
  virtual failure_sink watch(std::weak_ptr<actor>) = 0;
  /// Ends supervision: nothing is restarted or withdrawn once this returns.
  virtual void end_supervision() = 0;
  /// Returns the sink to which executors and placement send their blocks; null if there is no trace.
  virtual trace_sink* sink() = 0;
  /// Notes that all threads of a group sleep. Never blocks.
  virtual void went_idle() = 0;
  /// Has `ring` called after that time, unless the system has been stopped. Never blocks.
  virtual void call_later(std::chrono::milliseconds) = 0;
  /// Ends the trace file, after all blocks have been sent. Returns what went wrong, or "".
  virtual std::string close_trace() = 0;
  /// Ends all of its actors; no message is handled afterwards.
  virtual void stop() = 0;
};

/// Starts the actor system. Throws error(io_failed) if the trace cannot be written, std::system_error if there are no
/// threads.
std::unique_ptr<control> make_control(control_options);

}  // namespace troupe::detail
