// What this file is for: edges between tasks, which other threads may take in or turn down meanwhile.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/task_graph.hpp"

#include <atomic>
#include <unordered_set>

namespace troupe::logic {

namespace {
// True if a task has been linked to another one for what is asked now, as the last of its successors. A step of a
// stencil overwrites what those read that it reads from: half of its edges would be there twice.
bool waits_already(const task_record& to, const task_record& from, bool data) {
  if (detail::successors_added(from) == 0) return false;
  const detail::successor newest = detail::newest_successor(from);
  return newest.task == &to && (newest.data || !data);
}
}  // namespace

class task_graph::list_lock {
 public:
  list_lock(const task_graph& g, std::uint64_t sequence)
      : lock_(g.beside_ && detail::series_of(sequence) != g.series_ ? g.beside_ : nullptr) {
    if (lock_) lock_->lock();
  }
  ~list_lock() {
    if (lock_) lock_->unlock();
  }
  list_lock(const list_lock&) = delete;
  list_lock& operator=(const list_lock&) = delete;

 private:
  detail::spin_lock* const lock_;
};

void task_graph::begin(task_record& task) {
  added_.clear();
  if (!(task.marks & detail::mark_early)) return;
  detail::share(task);  // a chunk of a for_each comes with a successor
  // Its predecessors may end meanwhile: those that are found are counted in one step.
  found_ = 0;
  task.pending.store(task.pending.load(std::memory_order_relaxed) + being_ordered, std::memory_order_relaxed);
}

void task_graph::end(task_record& task) {
  settle();
  if (task.marks & detail::mark_early) task.pending.fetch_sub(being_ordered - found_, std::memory_order_acq_rel);
}

bool task_graph::add_to_living(task_ref from, task_record& to, bool data) {
  const list_lock hold(*this, from.sequence);
  if (detail::is_sealed(*from.task)) return false;
  if (waits_already(to, *from.task, data)) return true;
  const bool early = (to.marks & detail::mark_early) != 0;
  if (added_.size() == added_.capacity()) added_.reserve(2 * added_.size() + 16);  // nothing is thrown halfway
  const std::uint32_t place = detail::add_successor(*from.task, {&to, data, early}, blocks_);
  if (detail::is_shared(*from.task)) added_.push_back({from.task, &to, from.sequence, place});
  linked_.add(from, to);
  if (predecessors_) predecessors_->push_back({from.task, &to, data});
  if (early)
    ++found_;
  else
    to.pending.store(to.pending.load(std::memory_order_relaxed) + 1,
                     std::memory_order_relaxed);  // nobody else writes it
  return true;
}

// Takes back the block that was added to a list which had none when it was sealed: nobody else knows of it.
void task_graph::take_back_block(const added& a) {
  if (a.place < detail::successors_inside) return;
  if (detail::sealed_count(a.from->pending.load(std::memory_order_relaxed)) > detail::successors_inside) return;
  blocks_.give(std::exchange(a.from->more_successors, nullptr));
}

// Takes back the edges from tasks that have released their successors since.
void task_graph::settle() {
  if (added_.empty()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const added& a : added_) {
    if (detail::is_added(*a.from, a.place)) continue;
    {
      const list_lock hold(*this, a.sequence);
      take_back_block(a);
    }
    if (a.to->marks & detail::mark_early)
      --found_;
    else
      a.to->pending.store(a.to->pending.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  added_.clear();
}

bool task_graph::reaches(task_record& from, const task_record* to, const kept_behind& add_kept_behind) const {
  const auto is_meant = [&](const task_record& t) {
    if (to) return &t == to;
    return &t != &from && (!is_internal(t.kind) || t.kind == detail::task_kind::farewell);
  };
  std::unordered_set<const task_record*> seen{&from};
  std::vector<task_record*> open{&from}, kept;
  while (!open.empty()) {
    task_record* t = open.back();
    open.pop_back();
    if (is_meant(*t)) return true;
    if (add_kept_behind) add_kept_behind(*t, *t, kept);
    each_successor(*t, [&](task_record& next, bool) {
      if (seen.insert(&next).second) open.push_back(&next);
      if (add_kept_behind) add_kept_behind(*t, next, kept);
    });
    for (task_record* next : std::exchange(kept, {}))
      if (seen.insert(next).second) open.push_back(next);
  }
  return false;
}

}  // namespace troupe::logic
