// What this file is for: the trace observer: blocks of events on their way into the trace file.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/control/caf.hpp"
#include "actors/control/trace_writer.hpp"

namespace troupe::detail {

struct trace_waits {};

/// The state that the observer shares with the threads that send to it. Any thread.
class trace_desk {
 public:
  /// Opens the file. Throws error(io_failed).
  void open(const std::string& path);
  bool is_on() const { return writer_ != nullptr; }
  /// Adds a block; true if the observer has to be told.
  bool add(trace_block&&);
  /// Asks for the end of the file once all blocks are written; false if there is no file, or that was asked for before.
  bool finish();
  /// Waits until the file is closed, or given up. Returns what went wrong, or "".
  std::string wait_closed();
  /// Writes what has come; for the observer only.
  void write();
  /// Ends the trace as it is: nobody writes any more.
  void give_up(std::string problem);

 private:
  std::mutex lock_;
  std::condition_variable finished_;
  std::vector<trace_block> waiting_;
  bool finish_ = false, done_ = false;
  std::string problem_;
  std::unique_ptr<trace_writer> writer_;  // only the observer uses it once it runs
};

/// Takes trace_waits. An exception goes to `failed`, and ends it. The desk outlives it.
caf::actor spawn_trace_observer(caf::actor_system&, trace_desk&, failure_sink failed);

}  // namespace troupe::detail

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::trace_waits)
