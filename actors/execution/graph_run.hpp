// What this file is for: recorded graphs as executors run them: nodes with counters, no dependency analysis.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/dependencies.hpp"
#include "actors/logic/scheduling/scope.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/protocol/spin_lock.hpp"

namespace troupe::detail {

/// A call of a recorded graph, with the counter of its run in progress.
struct replay_node {
  task_record* task = nullptr;
  std::int32_t initial = 0;
  std::uint32_t first = 0, count = 0;  // its successors
  std::atomic<std::int32_t> pending{0};
  std::atomic<bool> poisoned{false};
};

/// A graph that `runtime::record` has made. Immutable but for the nodes' counters, which belong to the run in progress;
/// runs of one graph are ordered.
struct recorded_graph {
  static constexpr std::uint32_t data_bit = 1u << 31;

  ~recorded_graph();

  runtime_state* rt = nullptr;
  std::vector<replay_node> nodes;
  std::vector<std::uint32_t> successors;  // highest bit: the edge carries data
  std::vector<std::uint32_t> roots;
  logic::executor_set executors = logic::executor_set::every();  // in the scopes of all calls; each run stays on one
  std::vector<access> touched;                                   // what a run as a whole reads and writes; whole tiles
  std::vector<access> tiles;                                     // `touched` by tiles, if a device may run the graph
  logic::executor_set devices;                                   // those of `executors` that are devices
  bool once = false;                                             // some call may run once only
  std::mutex lock;                                               // guards last
  task_record* last = nullptr;                                   // the newest run; holds a reference
};

/// Calls that a recorder has noted, in program order.
struct recording {
  logic::recorded_tiles tiles;
  std::vector<task_record*> tasks;
  std::unordered_set<array_core*> arrays;  // touched by the calls; holds a reference of each
};

/// One run of a recorded graph, in progress.
class graph_run {
 public:
  /// Nodes of a run that one thread holds, and how many it has finished and not counted yet.
  struct hand {
    std::vector<std::uint32_t> ready;
    std::int64_t done = 0;
    graph_run* run = nullptr;
    hand* outer = nullptr;  // that of a run further down on the same stack
  };

  explicit graph_run(recorded_graph&);

  /// Takes the next node for this thread. False: there is none for it now, or ever.
  bool next(hand&, std::uint32_t& node);
  /// Lays out for other threads all nodes that this thread holds and has not begun, as it is about to do something
  /// else. True if there were any.
  bool lay_out(hand&);
  bool is_over() const { return remaining_.load(std::memory_order_seq_cst) == 0; }
  /// Sleeps until nodes are laid out or the run is over. One thread only.
  void await_more();
  /// Releases the successors of a node that has ended; they inherit failure along data edges. True if nodes are laid
  /// out that other threads should come for.
  bool finished(hand&, std::uint32_t node, bool fine);
  void fail(std::exception_ptr);

  /// True if nodes are laid out that no thread has taken. Sequentially consistent: a thread that lays some out looks at
  /// the sleepers afterwards.
  bool has_shared() const { return shared_left_.load(std::memory_order_seq_cst) != 0; }
  /// Counts a thread in that takes part beside the owner; `leave` counts it out.
  void join() { helpers_.fetch_add(1, std::memory_order_acq_rel); }
  void leave();
  void wait_for_helpers();

  recorded_graph& graph;
  std::exception_ptr error;  // the first one; read after the run

 private:
  bool share(hand&);
  void lay_out(hand&, std::size_t oldest);
  void settle(hand&);

  spin_lock lock_;
  std::vector<std::uint32_t> shared_;
  std::size_t shared_next_ = 0;
  std::atomic<std::int64_t> shared_left_{0};
  alignas(64) std::atomic<std::int64_t> remaining_{0};
  alignas(64) std::atomic<int> hungry_{0};
  std::atomic<int> helpers_{0};
  std::mutex sleep_lock_;
  std::condition_variable wake_;
  std::atomic<bool> owner_sleeps_{false};
};

}  // namespace troupe::detail
