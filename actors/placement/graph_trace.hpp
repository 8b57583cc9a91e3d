// What this file is for: what placement writes into a trace: its turns, and the edges between tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/logic/data/task_graph.hpp"
#include "actors/protocol/trace.hpp"

namespace troupe::detail {

/// Placement's lane of a trace. Does nothing until it is opened. With the turn only.
class graph_trace {
 public:
  /// Writes to a lane of `sink` from now on, also the edges that `graph` gets.
  void open(trace_sink& sink, int lane, logic::task_graph& graph) {
    on_ = true;
    graph.note_edges(&edges_);
    lane_.open(&sink, lane, "placement");
  }
  bool is_on() const { return on_; }
  void add_turn(std::uint64_t begin, std::uint64_t end) { lane_.add(0, begin, end, "turn"); }
  /// Writes the edges that were found since the last call.
  void add_found_edges() {
    if (!edges_.empty()) write_found_edges();
  }
  /// Notes that the task has been ordered: with a join the edges from its chunks are written.
  void note_ordered(const task_record& t);
  void flush() { lane_.flush(); }

 private:
  void write_found_edges();

  bool on_ = false;
  trace_lane lane_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> edges_;
  // The numbers of chunks whose join has not been ordered, by join.
  std::unordered_map<const task_record*, std::vector<std::uint64_t>> chunks_;
};

}  // namespace troupe::detail
