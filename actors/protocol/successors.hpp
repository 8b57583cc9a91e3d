// What this file is for: the tasks that wait for a task: who adds them, who releases them, and that none gets lost.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The holder of placement's turn adds successors to a task, one at a time; in a side turn (placement/side_turns.hpp)
// its holder may, but to a task that was ordered in a turn only with a lock, as those of other sides may, too. "With
// the turn" means either here. They are released once: all of them by the holder of a turn when the task retires, or
// before that the `early` ones by the thread that ran the task. That thread seals the list first: what comes later is
// not added, and need not wait. A successor is early if placement has nothing to decide about it when its last
// predecessor has ended; that is known when it is ordered, and is noted in each edge.
//
// Adding is a store, as most successors have many predecessors. Whether a list was sealed meanwhile is looked at once
// for all of them, after a fence (`is_added`): either the thread that adds sees the seal, or the one that seals sees
// what was added; where both do, the seal tells how much was seen.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
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

/// Pool of blocks. With the turn, but for what says otherwise.
class successor_blocks {
 public:
  /// `from`: the pool to which blocks are given back without the turn; null: this one.
  explicit successor_blocks(successor_blocks* from = nullptr);
  ~successor_blocks();
  /// Returns an empty block.
  successor_block* take();
  /// Takes a task's blocks back, from the first on; null: it has none.
  void give(successor_block* first);
  /// The same for a task of which no turn adds any. Any thread.
  void give_outside(successor_block* first);

 private:
  void make_more();

  successor_blocks& from_;
  successor_block* idle_ = nullptr;
  alignas(64) std::atomic<successor_block*> outside_{nullptr};  // given back without the turn
  std::vector<std::unique_ptr<successor_block[]>> all_;
};

/// Number of successors that a record has room for.
inline constexpr std::uint32_t successors_inside = 3;

/// In task_record::successor_count: the task or some of its successors are early, so that others may seal the list.
inline constexpr std::uint32_t shared_bit = std::uint32_t{1} << 31;

/// Values of task_record::pending, where none waits any more: the list is about to be sealed. Smaller ones tell how many
/// successors it had when it was: none is `sealed_from`, one is one less. From `sealed_whole` on all of these were early
/// and have been released, counted in the same way.
inline constexpr std::int32_t list_closes = -1, sealed_from = -2, sealed_whole = sealed_from - (1 << 30);

/// Returns the number of successors that a list had when it was sealed; for values from `sealed_from` on.
constexpr std::uint32_t sealed_count(std::int32_t pending) {
  return static_cast<std::uint32_t>((pending <= sealed_whole ? sealed_whole : sealed_from) - pending);
}

/// True if the early successors of the task have been released, or are about to be.
inline bool is_sealed(const task_record& t) { return t.pending.load(std::memory_order_acquire) < 0; }
/// True if the list was sealed and nothing is left in it: nobody waits for a turn in which the task retires.
inline bool is_sealed_whole(const task_record& t) { return t.pending.load(std::memory_order_acquire) <= sealed_whole; }
/// True if others may seal the list of the task.
inline bool is_shared(const task_record& t) {
  return (t.successor_count.load(std::memory_order_relaxed) & shared_bit) != 0;
}
/// Lets others seal the list of the task. With the turn, before the task is ready.
inline void share(task_record& t) {
  t.successor_count.store(t.successor_count.load(std::memory_order_relaxed) | shared_bit, std::memory_order_relaxed);
}
/// Returns the number of successors that were added, sealed or not. With the turn.
inline std::uint32_t successors_added(const task_record& t) {
  return t.successor_count.load(std::memory_order_relaxed) & ~shared_bit;
}

/// Returns the successor that was added last; there is one. With the turn.
inline successor newest_successor(const task_record& of) {
  const std::uint32_t place = successors_added(of) - 1;
  return successor::from(place < successors_inside
                             ? of.successors[place]
                             : of.more_successors->last->edges[(place - successors_inside) % successor_block::room]);
}

/// Puts a successor into the blocks behind the record.
void add_to_blocks(task_record& of, std::uint32_t place, std::uintptr_t edge, successor_blocks&);

/// Adds a successor to a list that was not sealed before, and returns its place; if the list is shared now, ask
/// `is_added` afterwards. With the turn.
inline std::uint32_t add_successor(task_record& of, successor s, successor_blocks& pool) {
  const std::uint32_t before = of.successor_count.load(std::memory_order_relaxed);
  const std::uint32_t place = before & ~shared_bit;
  // Whoever seals the list meanwhile looks at nothing beyond the count, neither edges nor blocks.
  if (place < successors_inside)
    of.successors[place] = s.edge();
  else
    add_to_blocks(of, place, s.edge(), pool);
  of.successor_count.store((before + 1) | (s.early ? shared_bit : 0), std::memory_order_release);
  return place;
}

/// True if the successor in that place was added before the list was sealed. With the turn, after a sequentially
/// consistent fence that comes after `add_successor`.
inline bool is_added(const task_record& of, std::uint32_t place) {
  std::int32_t state = of.pending.load(std::memory_order_acquire);
  if (state >= 0) [[likely]]
    return true;
  while (state == list_closes) {  // for a few instructions of another thread
    std::this_thread::yield();
    state = of.pending.load(std::memory_order_acquire);
  }
  return place < sealed_count(state);
}

/// Calls `f(successor)` for the first `count` successors, in the order in which they were added.
template <class F>
void walk_successors(const task_record& t, std::uint32_t count, F&& f) {
  const std::uint32_t here = std::min(count, successors_inside);
  for (std::uint32_t i = 0; i < here; ++i) f(successor::from(t.successors[i]));
  if (count <= successors_inside) return;
  const successor_block* b = t.more_successors;
  for (std::uint32_t left = count - successors_inside;;) {
    const std::uint32_t n = std::min(left, successor_block::room);
    for (std::uint32_t i = 0; i < n; ++i) f(successor::from(b->edges[i]));
    left -= n;
    if (left == 0) return;
    b = b->next;
  }
}

/// Calls `f(successor)` for each that has not been released. With the turn, and not between `add_successor` and
/// `is_added`.
template <class F>
void each_unreleased(const task_record& t, F&& f) {
  const std::int32_t state = t.pending.load(std::memory_order_acquire);
  if (state <= sealed_whole) return;
  if (state > sealed_from) return walk_successors(t, successors_added(t), f);
  walk_successors(t, sealed_count(state), [&](const successor& s) {
    if (!s.early) f(s);
  });
}

/// The prediction of an early task, which the thread that releases it may change while a turn reads it.
inline float prediction_of(const task_record& t) {
  return std::atomic_ref(const_cast<float&>(t.predicted_ns)).load(std::memory_order_relaxed);
}
inline void change_prediction(task_record& t, float ns) {
  std::atomic_ref(t.predicted_ns).store(ns, std::memory_order_relaxed);
}

/// True if an executor was given the task: it was sent, or it is early and has become ready. With the turn.
inline bool was_placed(const task_record& t) {
  if (t.marks & mark_sent) return true;
  return (t.marks & mark_early) && t.pending.load(std::memory_order_relaxed) <= 0 && prediction_of(t) > 0;
}

/// Seals the list of a task that has ended well, and releases the early successors: calls `ready(task)` for each whose
/// last predecessor this was. Returns true if others are left, for the turn in which the task retires. A list that is
/// not shared is left as it is. Any thread, once for a task, and before placement is told that it has ended.
template <class Ready>
bool release_early(task_record& t, Ready&& ready) {
  if (!is_shared(t)) return false;
  t.pending.store(list_closes, std::memory_order_release);  // whoever sees it does not wait for what was written
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t count = t.successor_count.load(std::memory_order_acquire) & ~shared_bit;
  t.pending.store(sealed_from - static_cast<std::int32_t>(count), std::memory_order_release);
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
  if (!others) t.pending.store(sealed_whole - static_cast<std::int32_t>(count), std::memory_order_release);
  return others;
}

}  // namespace troupe::detail
