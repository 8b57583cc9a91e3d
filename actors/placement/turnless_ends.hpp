// What this file is for: tasks that retire without a turn, on the thread on which they have ended.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Nothing is left to decide about a task whose successors have all been released where it ended
// (protocol/successors.hpp). What has to wait is only the use of its record for another task: the holder of a turn may
// have found it as a predecessor a moment ago, and be about to look whether its list is sealed. Records wait here until
// no turn and no side turn is held that was held then; what is held is noted for many of them at once, as threads that
// take side turns write it all the time. Those of tasks with futures or options keep the runtime's
// reference as long, so that whoever drops the last one need not know about turns.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/spin_lock.hpp>
#include <troupe/detail/task.hpp>

#include "actors/placement/in_flight.hpp"
#include "actors/placement/turns.hpp"
#include "actors/protocol/timed_calls.hpp"

namespace troupe::logic {
class task_graph;
}

namespace troupe::detail {

struct runtime_state;

/// A part of placement that any thread uses, with or without the turn; threads meet on a lock of a few instructions
/// only where there are more of them than shards.
class turnless_ends {
 public:
  /// Most tasks that retire in one call.
  static constexpr std::size_t at_once = 64;
  /// Records of threads of one shard that are gathered before it is noted what is held.
  static constexpr std::size_t fresh_max = 64;

  turnless_ends(runtime_state& rt, logic::task_graph& graph, turns& t, in_flight& count)
      : rt_(rt), graph_(graph), turns_(t), count_(count) {
    know_groups(1);
  }

  /// Notes how long an early task has taken, if the cost model is to learn from it: its arrays may be gone once its
  /// list of successors has been sealed, so this is called before.
  void note_time(const task_record&);
  /// True if a turn is to be taken for what has been noted.
  bool has_urgent_times() const { return timed_.are_urgent(); }
  /// Calls f(timed_call) with what has been noted, and forgets it. With the turn.
  template <class F>
  void take_times(F&& f) {
    timed_.take(std::forward<F>(f));
  }
  /// Retires those of the tasks, at most `at_once`, of which placement has counted nothing and for which a turn has
  /// nothing to decide: early ones. The others go to `left`, in their order; returns how many they are. None may be
  /// reported otherwise at the same time.
  std::size_t retire(std::span<task_record* const>, task_record** left);
  /// Drops the references that have waited for a turn to end. After each turn has been left, and after each side turn
  /// whose end somebody has asked to be told.
  void turn_left() {
    if (referring_.load(std::memory_order_seq_cst) != 0) drop_references();
  }
  /// Gives all records back that wait for a turn to end. With the turn.
  void give_back();
  /// Makes room for sums over the tasks of so many core groups. Before any task.
  void know_groups(std::size_t);
  /// Sums over tasks that have retired here and were timed, of the core group with that number.
  struct times {
    double predicted_ns = 0, measured_ns = 0;
  };
  times sum(std::size_t group) const;

 private:
  /// Records that wait, linked by task_record::next, those with blocks of successors apart: a turn may still be about
  /// to look at the blocks. `referred` are those that the runtime still refers to, linked by their accesses, which are
  /// gone.
  struct records {
    task_record *first = nullptr, *last = nullptr, *with_blocks = nullptr, *referred = nullptr;
    std::size_t count = 0;  // of the first ones
    bool empty() const { return !first && !with_blocks && !referred; }
    void add(task_record&);
    void add_with_blocks(task_record&);
    void add_referred(task_record&);
    void add_all(records&);
  };
  struct alignas(64) shard {
    mutable spin_lock lock;
    records fresh;  // of which `held` says nothing
    std::size_t fresh_count = 0;
    records waiting;
    std::vector<times> sums;  // of each core group
    turns::held held;         // when the newest of those that wait retired
    void add(const times&, std::size_t group);
  };
  static constexpr std::size_t shard_count = in_flight::counters;

  static std::size_t shard_of_thread();
  void end(const records&);
  void note_references(std::size_t at);
  void drop_references();
  void drop_references(std::size_t at);

  runtime_state& rt_;
  logic::task_graph& graph_;
  turns& turns_;
  in_flight& count_;
  std::array<shard, shard_count> shards_;
  // The shards with records that are referred to, a bit for each. Written with the shard's lock.
  alignas(64) std::atomic<std::uint32_t> referring_{0};
  alignas(64) timed_calls timed_;
};

}  // namespace troupe::detail
