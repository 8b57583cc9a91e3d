// What this file is for: the unfinished tasks and the edges between them: who waits for whom, and who has ended.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: no thread, no clock, no allocation in steady state. All calls come from the thread that holds placement's turn,
// or a side turn for a graph that is beside the main one, but for those that say otherwise. Meanwhile other threads
// may release early successors (protocol/successors.hpp) and retire tasks that have released all of theirs
// (placement/turnless_ends.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <troupe/detail/spin_lock.hpp>
#include <troupe/detail/task.hpp>

#include "actors/logic/data/ref_list.hpp"
#include "actors/protocol/successors.hpp"

namespace troupe::logic {

using detail::task_record;
using detail::task_ref;

/// The graph of tasks that have a number: who waits for whom. Edges lead from lower to higher numbers. Those that carry
/// data (from a writer to a reader) also carry failure; those that only order do not.
class task_graph {
 public:
  static constexpr std::uint64_t series_max = 127;
  /// The series of recorded tasks: live histories of tiles hold numbers of records long reused, and must not take a
  /// recorded task for one of those.
  static constexpr std::uint64_t recorded_series = 128;

  /// `series`: that of the numbers it gives.
  explicit task_graph(std::uint64_t series = 0) : series_(series) {}
  /// A graph to which edges are added while others like this get some, and `main` does not: see `may_follow`. `series`:
  /// from 1 to series_max.
  task_graph(task_graph& main, std::uint64_t series)
      : beside_(&main.adds_beside_),
        blocks_(&main.blocks_),
        series_(series),
        number_(main.number_),
        floor_(main.floor_) {}
  task_graph(const task_graph&) = delete;
  task_graph& operator=(const task_graph&) = delete;

  // ---- numbers ------------------------------------------------------------------------------------------------------

  std::uint64_t next_number() { return series_ << detail::series_at | ++number_; }
  /// Returns the last number that was given, without its series.
  std::uint64_t last_number() const { return number_; }
  /// Gives only numbers behind this one from now on; it is not less than the last one.
  void go_on_from(std::uint64_t number) { number_ = number; }
  /// True if the task has not retired. What it has written is known to the caller where it has.
  bool alive(task_ref r) const {
    return detail::number_of(r.sequence) > floor_ && r.task->sequence.acquire() == r.sequence;
  }
  /// Returns a function that says so.
  auto living() const {
    return [this](task_ref r) { return alive(r); };
  }
  /// True if a task may come after the referenced one: that is ordered here, or in `main`, or has retired. After one of
  /// another graph only `main` may order a task.
  bool may_follow(task_ref r) const {
    const std::uint64_t series = detail::series_of(r.sequence);
    return series == series_ || series == 0 || !alive(r);
  }
  /// True if the task is alive and can be linked to: it is not the one whose successors are being released.
  bool is_unfinished(task_ref r) const { return r.task != retiring_ && alive(r); }
  /// Forgets every record, so that their memory may be freed. Call it only when no task is unfinished.
  void forget_all() { floor_ = number_; }

  // ---- edges --------------------------------------------------------------------------------------------------------

  /// Begins to link a task that has its number. An early successor (mark_early) does not become ready before `end`,
  /// whatever ends meanwhile. Forgets one for which `end` was not called, as an error was thrown.
  void begin(task_record&);
  /// Ends that: `task.pending` counts its unfinished predecessors, and what was there before. Others may lower it at
  /// once if the task is early.
  void end(task_record&);
  /// Adds the edge, unless it is there, and returns true; returns false if `from` has retired, or released its
  /// successors. Where others may release them meanwhile that is looked at again by `end`; only between `begin` and
  /// `end` it may be such a task. Throws std::bad_alloc.
  bool link(task_ref from, task_record& to, bool data) {
    note(from, to);
    return add_edge(from, to, data);
  }
  /// The same, and not noted.
  bool add_edge(task_ref from, task_record& to, bool data) {
    return alive(from) && from.task != &to && add_to_living(from, to, data);
  }
  /// True if edges have been added since `begin` that `end` will look at.
  bool has_added() const { return !added_.empty(); }
  /// True if an edge leads from one to the other, as far as is known: it does not know of all.
  bool is_linked(const task_ref& from, const task_record& to) const { return linked_.has(from, to); }
  /// Calls `f(successor, data)` for each that has not been released.
  template <class F>
  void each_successor(const task_record& task, F&& f) const {
    detail::each_unreleased(task, [&](const detail::successor& s) { f(*s.task, s.data); });
  }
  /// Adds to the list who cannot go on before `t` does, though no edge leads from it to them. Asked for each edge from
  /// `before` to `t`, and, with the same for both, for each task.
  using kept_behind = std::function<void(const task_record& before, const task_record& t, std::vector<task_record*>&)>;
  /// True if a path of unfinished tasks leads from one to the other. Linear in the edges; for diagnosis.
  bool reaches(task_record& from, const task_record& to) const { return reaches(from, &to); }
  /// The same; with null for `to`: true if a path leads to any task that a thread may wait for.
  bool reaches(task_record& from, const task_record* to, const kept_behind& add_kept_behind = {}) const;

  // ---- ends ---------------------------------------------------------------------------------------------------------

  /// Takes a finished task out. Calls `fail(successor)` for those that read what it was to write, if it has `failed`,
  /// then `ready(successor)` for each successor whose last predecessor this was, and `fewer(successor)` for each that
  /// waits for others still.
  template <class Fail, class Ready, class Fewer>
  void retire(task_record& task, bool failed, Fail&& fail, Ready&& ready, Fewer&& fewer) {
    retiring_ = &task;
    detail::each_unreleased(task, [&](const detail::successor& s) {
      task_record& next = *s.task;
      if (s.data && failed) fail(next);
      if (one_less(next, s.early))
        ready(next);
      else
        fewer(next);
    });
    forget_successors(task);
    task.sequence = 0;
    retiring_ = nullptr;
  }
  void forget_successors(task_record& task) {
    blocks_.give(task.more_successors);
    task.more_successors = nullptr;
    task.successor_count.store(0, std::memory_order_relaxed);
  }
  /// Takes back the blocks of a task that has retired without a turn, once no turn can add any. Any thread.
  void forget_blocks(task_record& task) { blocks_.give_outside(std::exchange(task.more_successors, nullptr)); }

  // ---- notes --------------------------------------------------------------------------------------------------------

  /// An edge: `to` waits for `from`; with `data` it reads what `from` writes, and fails with it.
  struct edge {
    task_record *from, *to;
    bool data;
  };
  /// Notes every dependency found from now on in `to` as (earlier, later), also those on tasks that have retired; for
  /// traces.
  void note_edges(std::vector<std::pair<std::uint64_t, std::uint64_t>>* to) { noted_ = to; }
  bool notes_edges() const { return noted_ != nullptr; }
  void note(const task_ref& from, const task_record& to) {
    // Numbers are compared, not records: the record may have been reused for this very task.
    if (noted_ && from.sequence != 0 && from.sequence != to.sequence) noted_->emplace_back(from.sequence, to.sequence);
  }
  /// Notes each edge between unfinished tasks once, also those of combine tasks.
  void note_predecessors(std::vector<edge>* to) { predecessors_ = to; }

 private:
  // The amount added to the count of an early successor while it is linked: it does not become ready meanwhile.
  static constexpr std::int32_t being_ordered = std::int32_t{1} << 30;

  // Takes one off the count of unfinished predecessors; true if it was the last.
  static bool one_less(task_record& t, bool early) {
    if (early) return t.pending.fetch_sub(1, std::memory_order_acq_rel) == 1;
    const std::int32_t left = t.pending.load(std::memory_order_relaxed) - 1;  // nobody else writes it
    t.pending.store(left, std::memory_order_relaxed);
    return left == 0;
  }

  // Which tasks the latest ones have been linked to, for those that overwrite what many have read: to look at the lists
  // of these takes longer. It does not know of all.
  class known_links {
   public:
    bool has(const task_ref& from, const task_record& to) const {
      const entry& e = all_[from.sequence % size];
      return e.from == from.sequence && e.to == to.sequence;
    }
    void add(const task_ref& from, const task_record& to) { all_[from.sequence % size] = {from.sequence, to.sequence}; }

   private:
    static constexpr std::size_t size = 32;
    struct entry {
      std::uint64_t from = 0, to = 0;
    };
    std::array<entry, size> all_{};
  };

  // An edge that was added while another thread may have sealed the list.
  struct added {
    task_record *from, *to;
    std::uint64_t sequence;  // of `from`
    std::uint32_t place;
  };

  /// Locks the list of successors of a task that several graphs may add to: one of `main`'s, beside that.
  class list_lock;

  bool add_to_living(task_ref from, task_record& to, bool data);
  void settle();
  void take_back_block(const added&);

  detail::spin_lock adds_beside_;              // held while those beside this one add successors to tasks of this one's
  detail::spin_lock* const beside_ = nullptr;  // null: this is nobody's side
  detail::successor_blocks blocks_;
  const std::uint64_t series_;
  std::uint64_t number_ = 0, floor_ = 0;
  const task_record* retiring_ = nullptr;  // its successors are being released
  std::vector<added> added_;               // by the task that is being linked
  std::int32_t found_ = 0;                 // predecessors of the early successor that is being linked
  known_links linked_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>* noted_ = nullptr;
  std::vector<edge>* predecessors_ = nullptr;
};

}  // namespace troupe::logic
