// What this file is for: the runtime's ordinary actors, on CAF: the observer writes traces, the keeper tidies up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   executor, placement --trace_block--> observer --> file        engine --close_trace--> observer --answer--> engine
//   placement --call_later--> keeper --(after that time, to itself)--> ring --> placement
//   executor --went_idle--> keeper --(after a while, to itself)--> tidy --> placement
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/protocol/trace.hpp"

namespace troupe::detail {

/// Owns the actor system of one runtime. Thread-safe.
class staff {
 public:
  virtual ~staff() = default;
  /// Returns the sink to which executors and placement send their blocks; null if there is no trace.
  virtual trace_sink* sink() = 0;
  /// Tells the keeper that all threads of a group sleep. Never blocks.
  virtual void went_idle() = 0;
  /// Has `ring` called after that time, unless the actors have been ended. Never blocks.
  virtual void call_later(std::chrono::milliseconds) = 0;
  /// Ends the trace file, after all blocks have been sent. Returns what went wrong, or "".
  virtual std::string close_trace() = 0;
  /// Ends all actors; no message is handled afterwards.
  virtual void dismiss() = 0;
};

/// Starts the actors. `tidy` is called on an actor's thread when nothing has happened for a while; false: there is more
/// to tidy, later. `ring` is called on such a thread as well, when `call_later` asked for it. `trace` empty: no trace.
/// Throws error(io_failed) if the trace cannot be written.
std::unique_ptr<staff> hire_staff(const std::string& trace, std::function<bool()> tidy, std::function<void()> ring);

}  // namespace troupe::detail
