// What this file is for: what the last run of each recorded graph used on a device, and its capture.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/execution/graph_run.hpp"
#include "devices/accelerator.hpp"

namespace troupe::detail {

/// If a run uses the same memory as the one before, it is captured, and the one after that replayed. With the device's
/// turn. `drop` gives a capture back to the device.
class graph_captures {
 public:
  struct run {
    std::weak_ptr<recorded_graph> graph;
    std::optional<std::vector<void*>> memory;  // none: no run has been launched
    std::optional<devices::capture_id> captured;
    std::uint64_t first_launch = 1, last_launch = 0;  // of what was captured
    std::shared_ptr<const std::vector<std::uint64_t>> calls;
  };

  /// Returns the last run of a graph; a new one if there is none. Then captures of graphs that are gone are dropped.
  template <class Drop>
  run& last_run(const std::shared_ptr<recorded_graph>& g, Drop&& drop) {
    run& last = runs_[g.get()];
    if (last.graph.lock() == g) return last;
    std::erase_if(runs_, [&](auto& known) {
      if (!known.second.graph.expired() || known.first == g.get()) return false;
      if (known.second.captured) drop(*known.second.captured);
      return true;
    });
    if (last.captured) drop(*last.captured);
    last = {.graph = g, .memory = {}, .captured = {}, .calls = {}};
    return last;
  }
  /// Forgets all: captures have gone with their device.
  void forget() { runs_.clear(); }
  std::size_t size() const { return runs_.size(); }

 private:
  std::unordered_map<const recorded_graph*, run> runs_;
};

}  // namespace troupe::detail
