// What this file is for: the calls of a recording, each with the part of a graph over nodes that it belongs to.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "actors/logic/data/graph_cut.hpp"
#include "runtime/split_graphs.hpp"

namespace troupe::detail {

/// A step beside the calls: fills a box of a partial, or adds it to the array.
struct partial_step {
  bool adds = false;
  std::uint32_t partial = 0, array = 0, tile = 0;
  logic::box4 where{};
  std::array<std::byte, fill_bytes_max> element{};
  combine_fn op = nullptr;
};

/// The calls of a recording and the steps that their reductions need, in order, as the cut of the graph sees them.
/// Arrays have numbers. A tile that calls reduce into has a home, as others do. Calls of another part reduce into a
/// partial of their own, an array of that part alone (actors/logic/data/open_sums).
class placed_calls {
 public:
  placed_calls() = default;
  placed_calls(placed_calls&&) = default;
  placed_calls& operator=(placed_calls&&) = delete;
  ~placed_calls();

  std::vector<logic::cut_call> calls;
  std::vector<task_record*> tasks;                      // of the calls; null: a partial_step
  std::map<std::uint32_t, partial_step> partial_steps;  // by call
  std::vector<array_core*> arrays;                      // by number

  bool is_partial(std::uint32_t array) const { return partial_numbers_.contains(array); }
  /// Returns the number of the array on which an access of a call works.
  std::uint32_t array_of(const task_record& t, int access) const;

 private:
  friend class call_placer;
  std::unordered_map<array_core*, std::uint32_t> numbers_;
  std::vector<array_core*> partials_;  // with a reference of each
  std::unordered_set<std::uint32_t> partial_numbers_;
  std::map<std::pair<const task_record*, int>, std::uint32_t> reduced_into_;  // by access: a partial
};

/// Gives each call of a recording its part: that of the node which its scope names; of several, the one that wrote most
/// of what it changes, else this node's. Adds parts and members to the graph, and narrows `split_graph::here`. Throws
/// as `split` does.
placed_calls place_calls(engine&, recording&, split_graph&);

/// "recorded call 3, 'name', of a graph over several nodes".
std::string called(const task_record&, std::size_t number);
/// Calls `f()`; the error of a node that has gone gets its name.
template <class F>
auto if_it_is_there(const std::string& host, F&& f) {
  try {
    return f();
  } catch (const error& e) {
    if (e.code() != errc::node_lost) throw;
    throw error(errc::node_lost, "node '" + host + "', which is to have a part of the graph, has gone");
  }
}

}  // namespace troupe::detail
