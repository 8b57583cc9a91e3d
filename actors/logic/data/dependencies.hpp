// What this file is for: which task waits for which: program order per tile, serial equivalence, spread of failures.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure, as the graph of tasks to which it adds (task_graph.hpp). All calls come from the thread that holds placement's
// turn, or a side turn for an order that is beside the main one.
//
// A read is ordered after the last writer of what it reads; a write after the last writer and all readers since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/gated_reads.hpp"
#include "actors/logic/data/recorded_tiles.hpp"
#include "actors/logic/data/task_graph.hpp"
#include "actors/logic/data/tile_history.hpp"

namespace troupe::logic {

using detail::array_core;

class dependencies {
 public:
  /// The functions that `dependencies` calls; implemented by its owner.
  class callbacks : public gated_reads::gate_maker {
   public:
    /// Returns a record of kind combine that will combine the reduction's partials into the array.
    virtual task_record* make_combine(array_core&, detail::reduction&) = 0;
    /// Fails a task that can never run: another task's failure reached it, or (`own`) it is wrong itself.
    virtual void fail(task_record&, std::exception_ptr, bool own) = 0;

   protected:
    ~callbacks() = default;
  };

  /// Orders tasks of the program, or those of a recording if there is one. Then tile states are the recording's.
  explicit dependencies(callbacks& s, recorded_tiles* recorded = nullptr)
      : around_(s), recorded_(recorded), graph_(recorded ? task_graph::recorded_series : 0) {}
  /// Orders tasks while others like this do, and `main` does not: see task_graph. `series`: that of its numbers, from 1
  /// to task_graph::series_max.
  dependencies(callbacks& s, dependencies& main, std::uint64_t series)
      : around_(s), recorded_(nullptr), graph_(main.graph_, series) {}
  dependencies(const dependencies&) = delete;
  dependencies& operator=(const dependencies&) = delete;

  /// The edges between the tasks that have been ordered and have not retired.
  task_graph& graph() { return graph_; }
  const task_graph& graph() const { return graph_; }

  /// Orders a newly submitted task after those before it, in program order. Afterwards `task.pending` counts its
  /// unfinished predecessors (plus what the caller put there, at least one); others may lower it at once if it is
  /// early. Combine tasks and gates made on the way are appended to `made`, already ordered. A task with mark_early is
  /// an early successor of all that it comes after.
  void order(task_record& task, std::vector<task_record*>& made);
  /// See gated_reads::allow.
  void allow_gates(bool are) { gates_.allow(are); }
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
  /// successors and poisons its outputs, but not a view of the program's that was never granted where all it was to
  /// write had a value: nothing has been done to that.
  template <class Ready, class Fewer>
  void retire(task_record& task, Ready&& ready, Fewer&& fewer) {
    const bool failed = task.error && !leaves_all_as_it_was(task);
    if (failed) {
      poison_outputs(task);
      note_failure_at_views(task);
    }
    graph_.retire(
        task, failed, [&](task_record& next) { fail_successor(task, next); }, std::forward<Ready>(ready),
        std::forward<Fewer>(fewer));
  }
  template <class Ready>
  void retire(task_record& task, Ready&& ready) {
    retire(task, std::forward<Ready>(ready), [](task_record&) {});
  }

 private:
  void order_accesses(task_record&, std::vector<task_record*>& made);
  template <class F>
  bool any_use(array_core&, F&&);
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
  template <class F>
  void each_piece(const access&, F&&);
  bool has_value(task_record&, const access&);
  void note_failure_at_views(const task_record& failed);
  static bool leaves_all_as_it_was(const task_record&);
  void poison_outputs(task_record&);
  void fail_successor(const task_record& failed, task_record& next);
  void complain_uninitialized(task_record&, const array_core&, const box4&);

  // The task that the one which is being ordered says it comes after: the last of them, by number. 0: none.
  struct named {
    const task_record* by = nullptr;
    std::uint64_t number = 0;
  };
  // True if an edge leads from one to the other, as far as is known.
  bool waits_for(const task_record& task, const task_ref& r) const {
    return graph_.is_linked(r, task) || (&task == named_.by && r.sequence == named_.number && named_.number != 0);
  }

  callbacks& around_;
  recorded_tiles* recorded_;
  task_graph graph_;
  gated_reads gates_{graph_, around_};
  named named_;
  std::uint64_t reductions_ = 0;  // that have been opened
  std::unordered_set<array_core*> reduced_outside_;
};

}  // namespace troupe::logic
