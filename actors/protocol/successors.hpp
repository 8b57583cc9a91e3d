// What this file is for: the tasks that wait for a task: who adds them, who releases them, and that none gets lost.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The holder of placement's turn adds successors to a task, one at a time. They are released once: all of them by the
// holder of a turn when the task retires, or before that the `early` ones by the thread that ran the task. That thread
// seals the list first: what comes later is not added, and need not wait. A successor is early if placement has nothing
// to decide about it when its last predecessor has ended; that is known when it is ordered, and is noted in each edge.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Successors of a task beyond its first three. With the turn, but for edges and blocks that the count covers.
struct alignas(64) successor_block {
  static constexpr std::uint32_t room = 6;
  std::uintptr_t edges[room];
  successor_block* next;  // the block that was added after this one
  successor_block* last;  // of a task's first block: its newest one
};

/// A successor of a task: with `data` it reads what the task writes, and fails with it.
struct successor {
  static constexpr std::uintptr_t data_bit = 1, early_bit = 2, bits = data_bit | early_bit;

  task_record* task;
  bool data, early;

  static successor from(std::uintptr_t edge) {
    return {reinterpret_cast<task_record*>(edge & ~bits), (edge & data_bit) != 0, (edge & early_bit) != 0};
  }
  std::uintptr_t edge() const {
    return reinterpret_cast<std::uintptr_t>(task) | (data ? data_bit : 0) | (early ? early_bit : 0);
  }
};

/// Pool of blocks. With the turn.
class successor_blocks {
 public:
  successor_blocks();
  ~successor_blocks();
  /// Returns an empty block.
  successor_block* take();
  /// Takes a task's blocks back, from the first on; null: it has none.
  void give(successor_block* first);

 private:
  void make_more();

  successor_block* idle_ = nullptr;
  std::vector<std::unique_ptr<successor_block[]>> all_;
};

/// The bit of task_record::successor_count that says that the list is sealed.
inline constexpr std::uint32_t sealed_bit = std::uint32_t{1} << 31;

/// True if the early successors of the task have been released.
inline bool is_sealed(const task_record& t) {
  return (t.successor_count.load(std::memory_order_acquire) & sealed_bit) != 0;
}

/// Adds a successor and returns true; returns false if the list is sealed. With the turn. `shared`: other threads may
/// seal it meanwhile.
bool add_successor(task_record& of, successor, bool shared, successor_blocks&);

/// Calls `f(successor)` for the first `count` successors, in the order in which they were added.
template <class F>
void walk_successors(const task_record& t, std::uint32_t count, F&& f) {
  const std::uint32_t here = std::min(count, std::uint32_t{3});
  for (std::uint32_t i = 0; i < here; ++i) f(successor::from(t.successors[i]));
  if (count <= 3) return;
  const successor_block* b = t.more_successors;
  for (std::uint32_t left = count - 3;;) {
    const std::uint32_t n = std::min(left, successor_block::room);
    for (std::uint32_t i = 0; i < n; ++i) f(successor::from(b->edges[i]));
    left -= n;
    if (left == 0) return;
    b = b->next;
  }
}

/// Calls `f(successor)` for each that has not been released. With the turn.
template <class F>
void each_unreleased(const task_record& t, F&& f) {
  const std::uint32_t word = t.successor_count.load(std::memory_order_acquire);
  const bool sealed = (word & sealed_bit) != 0;
  walk_successors(t, word & ~sealed_bit, [&](const successor& s) {
    if (!(sealed && s.early)) f(s);
  });
}

/// Seals the list of a task that has ended well, and releases the early successors: calls `ready(task)` for each whose
/// last predecessor this was. Returns true if others are left, for the turn in which the task retires. Any thread, once
/// for a task, and before placement is told that it has ended.
template <class Ready>
bool release_early(task_record& t, Ready&& ready) {
  if (t.successor_count.load(std::memory_order_relaxed) == 0) return false;
  const std::uint32_t count = t.successor_count.fetch_or(sealed_bit, std::memory_order_acq_rel);
  bool others = false;
  walk_successors(t, count, [&](const successor& s) {
    if (!s.early) {
      others = true;
      return;
    }
    // Nothing is added to the count of a task that has been ordered: one that is left is this one's.
    std::atomic<std::int32_t>& pending = s.task->pending;
    if (pending.load(std::memory_order_acquire) == 1)
      pending.store(0, std::memory_order_relaxed);
    else if (pending.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    ready(*s.task);
  });
  return others;
}

}  // namespace troupe::detail
