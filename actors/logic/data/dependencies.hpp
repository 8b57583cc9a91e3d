// What this file is for: which task waits for which: program order per tile, serial equivalence, spread of failures.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: no thread, no clock, no allocation in steady state. All calls come from the thread that holds placement's turn,
// or a side turn for an order that is beside the main one, but for those that say otherwise. Meanwhile other threads
// may release early successors (protocol/successors.hpp) and retire tasks that have released all of theirs
// (placement/turnless_ends.hpp).
//
// A read is ordered after the last writer of what it reads; a write after the last writer and all readers since.
// Edges that carry data (from a writer to a reader) also carry failure; edges that only order do not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <troupe/detail/spin_lock.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/read_groups.hpp"
#include "actors/logic/data/recorded_effect.hpp"
#include "actors/logic/data/tile_history.hpp"
#include "actors/protocol/successors.hpp"

namespace troupe::logic {

using detail::access;
using detail::array_core;
using detail::task_record;
using detail::task_ref;
using detail::tile_history;

/// Returns the task's name for messages: the call's name, else the kernel's.
std::string name_of(const task_record&);

/// Tile states of a recording, separate from the live ones.
struct recorded_tiles {
  struct key {
    array_core* array;
    std::uint32_t tile;
    bool operator==(const key&) const = default;
  };
  struct hash {
    std::size_t operator()(const key& k) const {
      return std::hash<const void*>{}(k.array) ^ (std::size_t{k.tile} * 0x9e3779b97f4a7c15ull);
    }
  };
  std::unordered_map<key, tile_history, hash> states;
  std::unordered_map<const tile_history*, recorded_effect> effects;  // of those that are read before they are written
  std::unordered_map<array_core*, detail::reduction*> open;

  /// Returns what the recording's calls read of the tile that was there before.
  recorded_effect effect_of(const tile_history& s) const {
    const auto known = effects.find(&s);
    return known == effects.end() ? recorded_effect() : known->second;
  }
};

class dependencies {
 public:
  /// The functions that `dependencies` calls; implemented by its owner.
  class callbacks {
   public:
    /// Returns a record of kind combine that will combine the reduction's partials into the array.
    virtual task_record* make_combine(array_core&, detail::reduction&) = 0;
    /// Returns a record of kind gate, which touches nothing; null if there is no memory for it.
    virtual task_record* make_gate() noexcept { return nullptr; }
    /// Fails a task that can never run: another task's failure reached it, or (`own`) it is wrong itself.
    virtual void fail(task_record&, std::exception_ptr, bool own) = 0;

   protected:
    ~callbacks() = default;
  };

  /// Orders tasks of the program, or those of a recording if there is one. Then tile states are the recording's and
  /// numbers come from a range of their own: live states hold numbers of records long reused, and must not take a
  /// recorded task for one of those.
  explicit dependencies(callbacks& s, recorded_tiles* recorded = nullptr)
      : around_(s), recorded_(recorded), series_(recorded ? recorded_series : 0) {}
  /// Orders tasks while others like this do, and `main` does not: see `may_follow`. `series`: that of its numbers, from
  /// 1 to series_max.
  dependencies(callbacks& s, dependencies& main, std::uint64_t series)
      : around_(s),
        recorded_(nullptr),
        beside_(&main.adds_beside_),
        blocks_(&main.blocks_),
        series_(series),
        number_(main.number_),
        floor_(main.floor_) {}
  static constexpr std::uint64_t series_max = 127;

  /// Orders a newly submitted task after those before it, in program order. Afterwards `task.pending` counts its
  /// unfinished predecessors (plus what the caller put there, at least one); others may lower it at once if it is
  /// early. Combine tasks and gates made on the way are appended to `made`, already ordered. A task with mark_early is
  /// an early successor of all that it comes after.
  void order(task_record& task, std::vector<task_record*>& made);
  /// Allows tasks that read the same tiles to wait for a gate. While that is not allowed, as at first, groups of
  /// readers fall apart where their tiles are used. Gates are early successors.
  void allow_gates(bool are) { gates_allowed_ = are; }
  /// Returns the arrays in memory of the caller's with a reduction that is still open: nobody has read its result.
  const std::unordered_set<array_core*>& reduced_outside() const { return reduced_outside_; }
  /// True if an early task uses the array of which no thread has said yet that it has ended (successors.hpp). After
  /// that nobody looks at the array in its name.
  bool is_used_early(array_core&);
  /// Orders the task, one of the runtime's own whose count is zero, after all early tasks of which `is_used_early` is
  /// true, or at least after one of them. False: there is none any more, and nothing is changed. Throws std::bad_alloc
  /// if there is no memory for the first edge.
  bool order_after_early(array_core&, task_record&);
  /// Forgets an array that is about to be freed.
  void forget(array_core& a);
  /// Combines every reduction that is still open, at the end of a recording.
  void combine_recorded(std::vector<task_record*>& combines);

  /// Removes a finished task from the graph. Calls `ready(successor)` for each successor whose last predecessor this
  /// was, and `fewer(successor)` for each that waits for others still. A failed task (`error` set) fails its data
  /// successors and poisons its outputs.
  template <class Ready, class Fewer>
  void retire(task_record& task, Ready&& ready, Fewer&& fewer) {
    retiring_ = &task;
    if (task.error) poison_outputs(task);
    each_unreleased(task, [&](const detail::successor& s) {
      task_record& next = *s.task;
      if (s.data && task.error) fail_successor(task, next);
      if (one_less(next, s.early))
        ready(next);
      else
        fewer(next);
    });
    forget_successors(task);
    task.sequence = 0;
    retiring_ = nullptr;
  }
  template <class Ready>
  void retire(task_record& task, Ready&& ready) {
    retire(task, std::forward<Ready>(ready), [](task_record&) {});
  }
  /// True if `failed` is a chunk that ran and `next` is its join: the join ends with the error of its chunk as its own
  /// failure, not as one that it depends on.
  static bool is_own_failure(const task_record& failed, const task_record& next) {
    return next.kind == detail::task_kind::join && failed.measured_ns != detail::never_ran;
  }
  /// Takes back the blocks of a task that has retired without a turn, once no turn can add any. Any thread.
  void forget_blocks(task_record& task) { blocks_.give_outside(std::exchange(task.more_successors, nullptr)); }
  /// Fails a successor that reads what the failed task was to write. Who waits for a gate fails with it, as it would
  /// without one, whatever else the gate waits for.
  void fail_successor(const task_record& failed, task_record& next) {
    around_.fail(next, failed.error, is_own_failure(failed, next));
    if (next.kind == detail::task_kind::gate)
      each_unreleased(next, [&](const detail::successor& s) { around_.fail(*s.task, failed.error, false); });
  }
  void forget_successors(task_record& task) {
    blocks_.give(task.more_successors);
    task.more_successors = nullptr;
    task.successor_count.store(0, std::memory_order_relaxed);
  }

  /// Adds the edge, unless it is there, and returns true; returns false if `from` has retired, or released its
  /// successors. Where others may release them meanwhile that is looked at again by `order`, which alone may be the
  /// caller then.
  bool link(task_ref from, task_record& to, bool data);
  /// True if a path of unfinished tasks leads from one to the other. Linear in the edges; for diagnosis.
  bool reaches(task_record& from, const task_record& to) { return reaches(from, &to); }
  /// The same; with null for `to`: true if a path leads to any task that a thread may wait for.
  bool reaches(task_record& from, const task_record* to);

  /// Calls `f(successor, data)` for each that has not been released.
  template <class F>
  void each_successor(const task_record& task, F&& f) {
    each_unreleased(task, [&](const detail::successor& s) { f(*s.task, s.data); });
  }

  /// An edge: `to` waits for `from`; with `data` it reads what `from` writes, and fails with it.
  struct dependency {
    task_record *from, *to;
    bool data;
  };

  /// True if the task has not retired. What it has written is known to the caller where it has.
  bool alive(task_ref r) const {
    return detail::number_of(r.sequence) > floor_ && r.task->sequence.acquire() == r.sequence;
  }
  /// True if a task may come after the referenced one: that is ordered here, or by `main`, or has retired. After one of
  /// another order only `main` may order a task.
  bool may_follow(task_ref r) const {
    const std::uint64_t series = detail::series_of(r.sequence);
    return series == series_ || series == 0 || !alive(r);
  }
  /// True if the task is alive and can be linked to: it is not the one whose successors are being released.
  bool is_unfinished(task_ref r) const { return r.task != retiring_ && alive(r); }
  /// Forgets every record, so that their memory may be freed. Call it only when no task is unfinished.
  void forget_all() { floor_ = number_; }
  std::uint64_t next_sequence() { return series_ << detail::series_at | ++number_; }
  /// Returns the last number that was given, without its series.
  std::uint64_t last_number() const { return number_; }
  /// Gives only numbers behind this one from now on; it is not less than the last one.
  void go_on_from(std::uint64_t number) { number_ = number; }
  /// Notes every dependency found from now on in `to` as (earlier, later), also those on tasks that have retired; for
  /// traces.
  void note_edges(std::vector<std::pair<std::uint64_t, std::uint64_t>>* to) { noted_ = to; }
  /// Notes each edge between unfinished tasks once, also those of combine tasks.
  void note_predecessors(std::vector<dependency>* to) { predecessors_ = to; }

 private:
  static constexpr std::uint64_t recorded_series = 128;
  // What is added to the count of an early successor while it is ordered: it does not become ready meanwhile.
  static constexpr std::int32_t being_ordered = std::int32_t{1} << 30;

  // Takes one off the count of unfinished predecessors; true if it was the last.
  static bool one_less(task_record& t, bool early) {
    if (early) return t.pending.fetch_sub(1, std::memory_order_acq_rel) == 1;
    const std::int32_t left = t.pending.load(std::memory_order_relaxed) - 1;  // nobody else writes it
    t.pending.store(left, std::memory_order_relaxed);
    return left == 0;
  }
  // A task's reads from an access on, which are those of a group.
  struct joined_group {
    int first;
    std::size_t reads;
    detail::read_group* group;
    std::uint64_t number;  // the group's: it may have become another one
    bool joined = false;   // it was complete still when the task came there
  };

  void order_accesses(task_record&, std::vector<task_record*>& made);
  void settle();
  void find_groups(const task_record&, std::vector<task_record*>& made);
  bool may_gather(std::span<const access>);
  detail::read_group* form_group(std::span<const access>, std::vector<task_record*>& made);
  void order_gate(task_record& gate, const detail::read_group&);
  bool join(task_record&, joined_group&);
  void leave_group(tile_history&, task_record& writer);
  void take_from_group(tile_history&);
  bool comes_after(const task_record&, const task_ref&) const;
  bool add_edge(task_ref from, task_record& to, bool data);
  template <class F>
  bool any_use(array_core&, F&&);
  auto living() const {
    return [this](task_ref r) { return alive(r); };
  }
  tile_history& state_of(array_core& a, std::uint32_t tile);
  void order_whole(task_record&, tile_history&, bool reads, bool writes, array_core&, std::uint32_t tile);
  void order_part(task_record&, tile_history&, const box4& tile_box, const box4& where, bool reads, bool writes,
                  array_core&);
  void link_part(task_record&, detail::fragment_list&, const box4& where, bool reads, bool writes);
  void divide(tile_history&, const box4& tile_box);
  static bool is_written(detail::fragment_list&, const box4& where);
  static void overwrite(detail::fragment_list&, const box4& where, const detail::task_ref& writer);
  void unite(tile_history&, const box4& tile_box);
  void order_reduce(task_record&, access&, std::vector<task_record*>& combines);
  void combine(array_core&, std::vector<task_record*>& combines);
  detail::reduction*& open_of(array_core& a) { return recorded_ ? recorded_->open[&a] : a.open; }
  void poison_outputs(task_record&);
  void complain_uninitialized(task_record&, const array_core&, const box4&);

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

  callbacks& around_;
  recorded_tiles* recorded_;
  detail::read_groups groups_;
  bool gates_allowed_ = false;
  const task_record* joiner_ = nullptr;  // the task that is being ordered
  std::vector<joined_group> joined_;     // its groups
  known_links linked_;
  std::uint64_t named_ = 0;  // the task that the one which is ordered says it comes after, the last one; 0: none
  // True if an edge leads from one to the other, as far as is known.
  bool waits_for(const task_record& task, const task_ref& r) const {
    return linked_.has(r, task) || (&task == joiner_ && r.sequence == named_ && named_ != 0);
  }
  std::uint64_t reductions_ = 0;  // that have been opened
  std::unordered_set<array_core*> reduced_outside_;
  detail::spin_lock adds_beside_;              // held while those beside this one add successors to tasks of this one's
  detail::spin_lock* const beside_ = nullptr;  // null: this is nobody's side
  detail::successor_blocks blocks_;
  const std::uint64_t series_;
  std::uint64_t number_ = 0, floor_ = 0;
  const task_record* retiring_ = nullptr;  // its successors are being released
  // An edge that was added while another thread may have sealed the list.
  struct added {
    task_record *from, *to;
    std::uint64_t sequence;  // of `from`
    std::uint32_t place;
  };
  std::vector<added> added_;  // by the task that is being ordered
  void take_back_block(const added&);
  /// Locks the list of successors of a task that several orders may add to: one of `main`'s, beside that.
  class list_lock;
  static void note_use(const task_record&, array_core&);
  std::int32_t found_ = 0;  // predecessors of the early successor that is being ordered
  std::vector<std::pair<std::uint64_t, std::uint64_t>>* noted_ = nullptr;
  std::vector<dependency>* predecessors_ = nullptr;
};

}  // namespace troupe::logic
