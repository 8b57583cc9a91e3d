// What this file is for: which task may be sent behind which.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/chains.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <troupe/detail/engine.hpp>

#include "actors/execution/reexecution.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/scheduling/admission.hpp"
#include "actors/placement/host_memory.hpp"
#include "actors/placement/notifications.hpp"
#include "actors/protocol/chaining.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::detail {

namespace {

// Most tasks that a device which looks ahead (it is short of memory) is given before their turn.
constexpr std::size_t far_ahead_max = 4096;
// Most tasks that are remembered in `held_back_` for a device without room; others wait until they are ready.
constexpr std::size_t held_back_max = 64;

int priority_of(const task_record& t) { return t.extra ? t.extra->options.priority : 0; }

bool is_calls(const task_record& t) { return t.kind == task_kind::call || t.kind == task_kind::graph_run; }

// True if the task uses copies in the device's memory only, before and after: nothing of it goes through the host's.
bool stays_on_device(const task_record& t) {
  if (!is_calls(t)) return false;
  for (int i = 0; i < t.access_count; ++i)
    if (t.accesses[i].array && !logic::uses_copies(t.accesses[i])) return false;
  return true;
}

bool is_among(const std::vector<promise>& all, const array_core& a, std::uint32_t tile) {
  return std::ranges::any_of(all, [&](const promise& p) { return p.array == &a && p.tile == tile; });
}

bool writes_tiles(const task_record& t) {
  return std::any_of(t.accesses, t.accesses + t.access_count,
                     [](const access& x) { return x.array && logic::is_whole(x) && logic::writes(x); });
}

// True if the task copies from other devices: its result is void if a lender failed, which only its end shows.
bool has_loans(const task_record& t) { return t.extra && !t.extra->loans.empty(); }

// True if the result is copied to this node before the task ends, and until then the node's death is its failure: by
// that time tasks sent behind it might have ended well.
bool ends_at_home(const task_record& t, const executor_facts& where) {
  return where.kind == device_kind::node && !is_repeatable(t);
}

// True if `next` may be counted behind `first`. Not of another priority: the device might begin with the later.
bool may_count(const task_record& first, const task_record& next) {
  // A task that runs once must not have read what might be written otherwise.
  if ((first.marks & mark_uncertain) && next.kernel->repeat == purity::once) return false;
  return (first.marks & mark_chain_head) && !(next.marks & (mark_sent | mark_early)) && is_calls(next) &&
         priority_of(first) == priority_of(next);
}

}  // namespace

void chains::add(bool has_memory) {
  failure_epochs_.push_back(0);
  held_back_.emplace_back();
  if (has_memory) graph_.note_predecessors(&predecessors_);
}

void chains::note_ordered(task_record& t) {
  for (const auto& [first, next, data] : predecessors_)
    if (next == &t) count_ahead(*first, t, data);  // the others are of combine tasks
  predecessors_.clear();
}

// Returns true if `next` is certain to be returned whenever `first` is (a data edge, or `first` is not uncertain), so
// chaining is safe; see mark_uncertain.
bool chains::follows_surely(task_record& first, const task_record& next, bool data) {
  if (data || !(first.marks & mark_uncertain)) return true;
  graph_.each_successor(first, [&](task_record& n, bool d) { data = data || (d && &n == &next); });
  return data;
}

// Counts `first`, which a device has been handed, as ahead of its successor `next`.
void chains::count_ahead(task_record& first, task_record& next, bool data) {
  if (!may_count(first, next) || !follows_surely(first, next, data)) return;
  if (assignment_.facts()[first.executor].kind == device_kind::node) crossings_.count(next, first, data);
  if (next.ahead == 0) next.executor = first.executor;
  if (next.executor != first.executor) return;
  ++next.ahead;
  next.marks |= first.marks & mark_uncertain;
}

// Takes back what `count_ahead` counted for a task that has ended, or that its device has returned.
void chains::count_not_ahead(task_record& first) {
  if (!(first.marks & mark_chain_head)) return;
  crossings_.forget_promises_of(first);
  graph_.each_successor(first, [&](task_record& next, bool data) {
    if (!may_count(first, next)) return;
    crossings_.count_not(next, first);
    if (next.executor == first.executor && next.ahead > 0 && follows_surely(first, next, data)) --next.ahead;
  });
}

void chains::lead_no_more(task_record& t) {
  count_not_ahead(t);
  t.marks &= static_cast<std::uint16_t>(~mark_chain_head);
}

bool chains::leads_nobody(task_record& t) {
  bool alone = true;
  if (t.marks & mark_chain_head)
    graph_.each_successor(t, [&](task_record& next, bool) { alone = alone && !(next.marks & mark_chained); });
  return alone;
}

// True if the task follows `first` on its device, or will when there is room for it.
bool chains::follows_here(const task_record& first, const task_record& next) const {
  if (next.executor != first.executor) return false;
  if (next.marks & mark_sent) return true;
  return next.ahead > 0 && next.ahead == next.pending && assignment_.may_run(next, first.executor);
}

void chains::hand_over(std::size_t i) {
  const bool node = assignment_.facts()[i].kind == device_kind::node;
  std::vector<task_record*>& outgoing = assignment_.outgoing(i);
  for (std::size_t k = 0; k < outgoing.size(); ++k) {
    task_record& t = *outgoing[k];
    if (is_internal(t.kind)) continue;
    t.marks |= mark_handed;
    // `extra` is allocated before the hand-over: this loop may read it for successors while the node writes to it.
    if (node && writes_tiles(t)) extra_of(t);
    if (node) note_handed(t);
    const bool is_promised = node && make_promises(t);
    const bool pulls = is_promised || (t.extra && !t.extra->pulls.empty());
    if (!(t.marks & mark_chained)) t.marks &= static_cast<std::uint16_t>(~mark_uncertain);
    if (pulls) t.marks |= mark_uncertain;
    const bool leads = stays_on_device(t) && !has_loans(t) && !ends_at_home(t, assignment_.facts()[i]);
    const bool tells = node && t.extra;
    if (leads) t.marks |= mark_chain_head;
    if (!leads && !tells) continue;
    bool elsewhere = false;
    graph_.each_successor(t, [&](task_record& next, bool data) {
      if (leads) {
        count_ahead(t, next, data);
        send_behind(next);
      }
      elsewhere = elsewhere || (data && next.kind != task_kind::join && !follows_here(t, next));
    });
    if (tells) t.extra->read_elsewhere = elsewhere;
  }
}

namespace {
// Calls f(entry) for each tile that the task writes as a whole.
template <class F>
void each_entry_written(const task_record& t, F&& f) {
  for (int i = 0; i < t.access_count; ++i)
    if (const access& x = t.accesses[i]; x.array && logic::is_whole(x) && logic::writes(x))
      f(x.array->coherence->tiles[x.tile]);
}
}  // namespace

// Notes the writes of a task that is handed to a node.
void chains::note_handed(task_record& t) {
  each_entry_written(t, [&](coherence_entry& entry) {
    if (entry.handed.empty())
      entry.handed_to = t.executor;
    else if (entry.handed_to != t.executor)
      entry.handed_to = coherence_entry::several;
    entry.handed.add({&t, t.sequence}, [](task_ref) { return true; });
  });
}

void chains::note_not_handed(const task_record& t) {
  if (!(t.marks & mark_handed) || assignment_.facts()[t.executor].kind != device_kind::node) return;
  each_entry_written(t, [&](coherence_entry& entry) { entry.handed.remove_first(&t); });
}

// Has other nodes told which boxes they are to send to a task that is about to be handed over, and its own which are to
// come; true if there are any. Those nodes have been handed the tasks that write the boxes, and none yet that comes
// after this one.
bool chains::make_promises(task_record& t) {
  std::vector<promise> boxes = crossings_.take(t);
  if (boxes.empty()) return false;
  extra_of(t);
  for (promise& p : boxes) p.stay = executors_[assignment_.executor_of(p.lender)]->stay();
  const std::vector<promise> told = boxes;
  executors_[t.executor]->expect(t, std::move(boxes));  // first: a promise may be broken at once
  for (const promise& p : told) {
    if (p.shared) continue;
    executor& lender = *executors_[assignment_.executor_of(p.lender)];
    lender.make_promise(p);
    told_.add(lender);
  }
  return true;
}

void chains::send_held_back(std::size_t i) {
  if (held_back_[i].empty() || !assignment_.runs_low(i)) return;
  holding_back_.erase(i);
  for (const task_ref& r : std::exchange(held_back_[i], {}))
    if (graph_.alive(r)) send_behind(*r.task);
}

// True if the task waits for other tasks directly, not only through its data: a node orders by data alone.
bool chains::waits_for_tasks(const task_record& t) const {
  for (int i = 0; i < t.access_count; ++i)
    if (const access& x = t.accesses[i]; !x.array && (!x.task || graph_.alive({x.task, x.task->sequence.acquire()})))
      return true;
  return false;
}

// Sends those that had to wait until each part of a released run was given to its node.
void chains::send_postponed() {
  for (const task_ref& r : std::exchange(postponed_, {}))
    if (graph_.alive(r) && (r.task->phase.load(std::memory_order_relaxed) & phase_mask) == phase_waiting)
      send_behind(*r.task);
}

// True if the task has its data where that executor is as soon as its predecessors have ended, and what it is promised
// has come.
bool chains::has_nothing_in_the_way(task_record& t, std::size_t executor, const std::vector<promise>& promised) {
  const memory_space where = assignment_.facts()[executor].space;
  const bool on_node = assignment_.facts()[executor].kind == device_kind::node;
  bool in_the_way = false;
  logic::each_in_the_way(t, where, [&](array_core& a, std::uint32_t tile, coherence_entry&, logic::wanted) {
    in_the_way = in_the_way || !is_among(promised, a, tile);
  });
  const auto alive = [this](task_ref r) { return graph_.alive(r); };
  logic::each_part_clash(t, where, on_node, alive, [&](task_ref) { in_the_way = true; });
  return !in_the_way && !logic::lost_input(t);
}

// True if some other node has a task that is to write a tile which the task writes: its version would not be known.
bool chains::is_written_elsewhere(const task_record& t, std::size_t i) const {
  if (!crossings_.are_any() || assignment_.facts()[i].kind != device_kind::node) return false;
  bool is = false;
  for (int k = 0; k < t.access_count; ++k) {
    const access& x = t.accesses[k];
    if (!x.array || !x.array->coherence || !logic::is_whole(x) || !logic::writes(x)) continue;
    const coherence_entry& entry = x.array->coherence->tiles[x.tile];
    is = is || (!entry.handed.empty() && entry.handed_to != i);
  }
  return is;
}

bool chains::send_behind(task_record& t) {
  if ((t.marks & (mark_sent | mark_early)) || stopped_) return false;
  const bool crosses = !has_all_here(t) && crossings_.has_all(t);
  if (!has_all_here(t) && !crosses) return false;
  if (crosses && !gangs::is_part(t) && gangs_.has_to_give()) {
    postponed_.push_back({&t, t.sequence});
    return false;
  }
  if (logic::admission::concerns(t) || !stays_on_device(t)) return false;
  std::size_t i = t.executor;
  std::vector<promise> promised;
  if (crosses || (crossings_.has_all(t) && !assignment_.may_run(t, i))) {
    std::optional<crossings::plan> plan = crossings_.find(t);
    if (!plan) return false;
    i = plan->executor;
    promised = std::move(plan->boxes);
  }
  const bool on_node = assignment_.facts()[i].kind == device_kind::node;
  if (on_node && (waits_for_tasks(t) || !gangs_.may_go(t, false))) return false;
  const memory_space where = assignment_.facts()[i].space;
  if (!has_nothing_in_the_way(t, i, promised) || is_written_elsewhere(t, i)) return false;
  if (host_memory_ && !host_memory_->has_room_now(t)) return false;
  // Under a budget it would hold room in host memory all the while.
  const bool far =
      executors_[i]->looks_ahead() && executors_[i]->queued() + assignment_.outgoing(i).size() < far_ahead_max;
  if (assignment_.has_enough(t, i, far)) {
    if (held_back_[i].size() < held_back_max) held_back_[i].push_back({&t, t.sequence});
    holding_back_.insert(i);
    return false;
  }
  if (!assignment_.assign_behind(t, i)) return false;
  if (t.extra) t.extra->pulls.clear();
  if (host_memory_) host_memory_->take_room(t);
  logic::note_parts(t, where, on_node, [this](task_ref r) { return graph_.alive(r); });
  logic::note_sent(t, where, on_node);
  // The node has no version that is current here of the tiles that it is promised boxes of.
  for (const promise& p : promised) p.array->coherence->tiles[p.tile].cached.erase(where);
  crossings_.send(t, std::move(promised));
  gangs_.given(t);
  t.marks |= mark_chained;
  t.phase.fetch_or(epoch_mark(failure_epochs_[i]), std::memory_order_acq_rel);
  return true;
}

bool chains::has_ended_early(task_record& t) {
  if (t.marks & mark_chained) {
    t.marks |= mark_ended_early;
    if (crossings_.are_any() && assignment_.facts()[t.executor].kind == device_kind::node) ended_early_[&t];
    return true;
  }
  if (t.error) advance_epoch(t);
  count_not_ahead(t);
  return false;
}

void chains::note_lost(std::size_t executor, std::span<const std::pair<array_core*, std::uint32_t>> all,
                       const std::exception_ptr& why) {
  for (auto& [t, lost] : ended_early_) {
    if (t->executor != executor) continue;
    for (const auto& [array, tile] : all)
      if (crossings::writes_tile(*t, *array, tile)) lost.push_back({array, tile, why});
  }
}

std::vector<chains::lost_tile> chains::take_lost_of(const task_record& t) {
  const auto known = ended_early_.find(&t);
  if (known == ended_early_.end()) return {};
  std::vector<lost_tile> lost = std::move(known->second);
  ended_early_.erase(known);
  return lost;
}

void chains::note_returned(task_record& t, bool counts) {
  if (counts) advance_epoch(t);
  count_not_ahead(t);
}

void chains::advance_epoch(const task_record& t) {
  if (t.marks & mark_handed) ++failure_epochs_[t.executor];
}

}  // namespace troupe::detail
