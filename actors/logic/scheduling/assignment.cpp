// What this file is for: when a ready task goes to an executor: at once, once there is room, behind others, or again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Files of the class, the lowest first: assignment_offers.cpp, assignment_choice.cpp, this one.
#include "actors/logic/scheduling/assignment.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/protocol/successors.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::logic {

using detail::task_record;

namespace {
// A task that takes surprise_factor times as long as predicted contradicts the prediction, if more than
// surprise_windows windows of work are queued there.
constexpr float surprise_factor = 4, surprise_windows = 2;
// Number of waiting tasks that are searched for one whose data an executor with room has.
constexpr std::size_t looked_at_max = 24;
// A predecessor of an early task costs some instructions that are atomic. Tasks that take less time than many of these
// are early only if they have few.
constexpr float early_ns = 300;
constexpr int few = 2;
// A prediction that grows by so much is not used any more for tasks that were predicted before.
constexpr float much = 4, long_ns = 5'000;

bool has_few_predecessors(const task_record& t) {
  return t.access_count <= few && std::all_of(t.accesses, t.accesses + t.access_count,
                                              [](const detail::access& x) { return !x.array || !x.where; });
}

bool is_worth_an_early_edge(const task_record& t, const run_time& m) {
  return m.predicted_ns() >= early_ns || has_few_predecessors(t);
}
}  // namespace

void assignment::assign_again(task_record& t) {
  const executor_set& now = eligible_.masks_of(t).now;
  if (now.empty() || assign_among(t, now, at_once) != outcome::given) assign(t);
}

void assignment::foresee(task_record& t, std::uint64_t number) {
  std::uint16_t group = 0;
  if (eligible_.groups() > 1) {
    const executor_set& mask = eligible_.masks_of(t).ever;
    if (!mask.has_single()) return;
    group = static_cast<std::uint16_t>(mask.first());
  }
  const run_time& m = model_of(t, facts_[0].kind);
  if (!m.known()) return;
  const bool early = is_worth_an_early_edge(t, m);
  if (!early && facts_.size() > 1) return;  // its `ahead` is still counted
  last_foreseen_ = number;
  t.executor = group;
  t.predicted_ns = m.predicted_ns();
  t.marks |= early ? detail::mark_known | detail::mark_early : detail::mark_known;
}

bool assignment::foresee_aside(task_record& t) const {
  const run_time* const m = model_.find(*t.kernel, size_class_of(bytes_of(t)), facts_[0].kind);
  if (!m || !m->known() || !is_worth_an_early_edge(t, *m)) return false;
  t.executor = 0;
  t.predicted_ns = m->predicted_ns();
  t.marks |= detail::mark_known | detail::mark_early;
  return true;
}

void assignment::assign(task_record& t) {
  if (t.marks & detail::mark_early) {
    if (detail::number_of(t.sequence) <= outdated_) t.predicted_ns = model_of(t, facts_[0].kind).predicted_ns();
    return work_.put_out(t);
  }
  if (facts_.size() == 1 && !t.extra) {
    if ((t.marks & detail::mark_known) && detail::number_of(t.sequence) > outdated_)
      return work_.give(t, 0, t.predicted_ns);  // foreseen
    const run_time& m = model_of(t, facts_[0].kind);
    if (m.known()) t.marks |= detail::mark_known;
    work_.give(t, 0, m.predicted_ns());
    return;
  }
  const eligibility::masks& may = eligible_.masks_of(t);
  const executor_set &mask = may.all, &now = may.now;
  if (mask.has_single() && !now.empty() && !eligible_.may_wait_for_nodes(t)) {
    const auto i = static_cast<std::size_t>(mask.first());
    const run_time& m = model_of(t, facts_[i].kind);
    if (m.known()) t.marks |= detail::mark_known;
    work_.give(t, i, m.known() ? m.predicted_ns() : guess_ns);
    return;
  }
  auto b = backlogs_.begin();
  while (b != backlogs_.end() && !(b->mask == mask)) ++b;
  // At first a task for nodes goes only where its data is nearest (is_far): `refill` may find a waiting task whose data
  // is where the room is.
  const int priority = t.extra ? t.extra->options.priority : 0;
  if (!now.empty() && !comes_behind(mask, priority) &&
      assign_among(t, now, b == backlogs_.end() ? 0 : b->tasks.size(), is_far(now)) == outcome::given)
    return;
  if (b == backlogs_.end()) {
    backlogs_.push_back({.mask = mask});
    b = backlogs_.end() - 1;
  }
  b->tasks.push(&t, priority);
  kept_.fetch_add(1, std::memory_order_seq_cst);
}

// True if a task that only cores may run comes behind others that wait for room there: what has just ended makes the
// next task of its chain ready, which would take the room each time.
bool assignment::comes_behind(const executor_set& mask, int priority) {
  constexpr int none = std::numeric_limits<int>::min();
  if (kept_.load(std::memory_order_relaxed) == 0 || !(mask - eligible_.cores()).empty()) return false;
  return std::ranges::any_of(backlogs_, [&](backlog& b) {
    return b.mask.meets(mask) && !b.tasks.empty() && b.tasks.first_priority(none) >= priority;
  });
}

bool assignment::has_enough(const task_record& t, std::size_t i, bool far) {
  if (work_.outstanding_ns(i) <= window_ns_ || (far && eligible_.masks_of(t).all.has_single())) return false;
  return work_.outstanding_ns(i) > std::max(window_ns_, 1.5f * model_of(t, facts_[i].kind).predicted_ns());
}

// Inputs from the task's predecessors are on executor i, and would have to be brought to the others: they count as all
// that it reads, an upper bound.
bool assignment::assign_behind(task_record& t, std::size_t i) {
  const executor_set& mask = eligible_.masks_of(t).all;
  if (!mask.contains(i) || eligible_.is_paused(i)) return false;
  const run_time& mine = model_of(t, facts_[i].kind);
  if (!mask.has_single()) {
    if (!mine.known()) return false;
    if (before_choices_) before_choices_();
    executor_set others = mask;
    others.erase(i);
    look_for_some(others, {});
    offers_.clear();
    const auto add = [&](std::size_t k) {
      offer o;
      o.executor = facts_[k].id;
      o.queue_ns = work_.queue_ns(k);
      o.others_ns = work_.others_ns(k);
      const run_time& m = model_of(t, facts_[k].kind);
      o.run_ns = m.known() ? m.predicted_ns() : 0;
      return o;
    };
    const detail::memory_space here = facts_[i].space;
    offer own = add(i);
    own.bytes_missing = bytes_missing(t, here);
    own.transfer_ns = model_.transfer_ns(detail::host_space, here, own.bytes_missing);
    offers_.push_back(own);
    bool to_be_tried = false;
    for (const std::uint16_t k : weighed()) {
      offer& o = offers_.emplace_back(add(k));
      o.bytes_missing = bytes_of(t);
      if (reaches(facts_[k].space, here)) o.bytes_direct = o.bytes_missing;
      o.transfer_ns = hop_ns(here, facts_[k].space, o.bytes_missing);
      // An executor of unknown speed is to be tried, unless the data would take longer to arrive there.
      run_time& theirs = model_of(t, facts_[k].kind);
      if (theirs.known() || o.transfer_ns > own.finish_ns()) continue;
      alternatives all;
      others.each([&](std::size_t e) { all.cores |= facts_[e].space == detail::host_space; });
      note_alternative(all, i, mine);
      to_be_tried |= !is_device(k) ||
                     trials_.stake(k, *t.kernel, theirs, facts_[k].shares_cores(), o.transfer_ns, all).has_value();
    }
    if (to_be_tried || best_offer(offers_) != 0) return false;
    decisions_.note(t.sequence, offers_, 0);
  }
  if (mine.known()) t.marks |= detail::mark_known;
  work_.give(t, i, mine.known() ? mine.predicted_ns() : guess_ns);
  return true;
}

void assignment::move(task_record& t, std::size_t i) {
  work_.take_off(t);
  const run_time& m = model_of(t, facts_[i].kind);
  work_.give(t, i, m.known() ? m.predicted_ns() : guess_ns);
  decisions_.note_move(t.sequence, facts_[i].id);
}

void assignment::take_back(task_record& t) {
  work_.take_off(t);
  t.marks &= static_cast<std::uint16_t>(~(detail::mark_sent | detail::mark_known));
  t.ahead = 0;
}

// Gives waiting tasks of one priority to executors that have their data. Otherwise an executor that is done first would
// be given the first waiting task, and its data sent there, while the task whose data the executor has goes to another.
void assignment::refill_at_home(backlog& b, const executor_set& mask) {
  passed_over_.clear();
  const auto priority = [](const task_record& t) { return t.extra ? t.extra->options.priority : 0; };
  while (passed_over_.size() < looked_at_max) {
    task_record* const t = b.tasks.pop();
    if (!t) break;
    const bool same = passed_over_.empty() || priority(*t) == priority(*passed_over_.front());
    const outcome what = same ? assign_among(*t, mask, b.tasks.size() + passed_over_.size(), true) : outcome::kept;
    if (what == outcome::given)
      kept_.fetch_sub(1, std::memory_order_relaxed);
    else
      passed_over_.push_back(t);
    if (what == outcome::kept) break;
  }
  for (auto t = passed_over_.rbegin(); t != passed_over_.rend(); ++t) b.tasks.push_front(*t, priority(**t));
}

// Gives room to those that are to come first, whatever they may run on: the highest priority, of these the oldest.
void assignment::refill() {
  if (kept_.load(std::memory_order_relaxed) == 0) return;
  if (before_choices_) before_choices_();
  for (backlog& b : backlogs_) b.is_looked_at = b.waits_for_room = false;
  while (backlog* const b = next_backlog()) {
    const executor_set mask = eligible_.without_paused(b->mask);
    if (!std::exchange(b->is_looked_at, true) && is_far(mask)) {
      refill_at_home(*b, mask);
      continue;
    }
    task_record* const t = mask.empty() ? nullptr : b->tasks.pop();
    if (t && assign_among(*t, mask, b->tasks.size()) == outcome::given) {
      kept_.fetch_sub(1, std::memory_order_relaxed);
      continue;
    }
    if (t) b->tasks.push_front(t, t->extra ? t->extra->options.priority : 0);
    b->waits_for_room = true;
  }
}

// Returns the backlog whose first task comes before those of all others that may have room; null if there is none.
assignment::backlog* assignment::next_backlog() {
  backlog* first = nullptr;
  for (backlog& b : backlogs_) {
    if (b.waits_for_room || b.tasks.empty() || !b.mask.meets(work_.roomy())) continue;
    if (!first) {
      first = &b;
      continue;
    }
    constexpr int none = std::numeric_limits<int>::min();
    const int mine = b.tasks.first_priority(none), best = first->tasks.first_priority(none);
    if (mine > best || (mine == best && detail::number_of((*b.tasks.front())->sequence) <
                                            detail::number_of((*first->tasks.front())->sequence)))
      first = &b;
  }
  return first;
}

void assignment::finished(task_record& t) {
  if (!(t.marks & (detail::mark_sent | detail::mark_early))) return;
  if (t.marks & detail::mark_sent) work_.take_off(t);
  if (!(t.measured_ns > 0)) return;
  work_.note_measured(t);
  if ((t.marks & detail::mark_early) && detail::is_sealed(t)) return;
  const device_kind kind = facts_[t.executor].kind;
  run_time& m = model_of(t, kind);
  const bool is_thinned = m.seen() >= samples_before_thinning, is_learned = !is_thinned || learned_.next();
  if (t.measured_ns > surprise_factor * t.predicted_ns) {
    note_surprise(t.executor, t.measured_ns);
    if (is_thinned) learned_.suspect();  // the next ones: this one alone would count for more than the others
    if (is_thinned && is_learned) learned_.confirm();
  }
  if (is_learned) learn(m, *t.kernel, bytes_of(t), kind, t.measured_ns);
}

void assignment::learn(const detail::timed_call& c) {
  if (c.measured_ns > surprise_factor * c.predicted_ns) note_surprise(c.executor, c.measured_ns);
  const device_kind kind = facts_[0].kind;
  learn(model_.of(*c.kernel, size_class_of(c.bytes), kind), *c.kernel, c.bytes, kind, c.measured_ns);
}

void assignment::learn(run_time& m, const detail::kernel_info& k, std::uint64_t bytes, device_kind kind,
                       float measured_ns) {
  const float before = m.predicted_ns();
  m.learn(measured_ns);
  const float now = m.predicted_ns();
  if (kind != facts_[0].kind || now == before) return;  // only calls for cores are foreseen
  const bool has_grown = before > 0 && now > long_ns + much * before;
  grown_.note(k, bytes, now, has_grown);
  if (has_grown) outdated_ = last_foreseen_;
}

void assignment::note_surprise(std::size_t i, float measured_ns) {
  if (facts_.size() == 1) return;
  const float queued_ns = measured_ns * static_cast<float>(work_.under_way(i)) / static_cast<float>(work_.slots(i));
  if (queued_ns <= surprise_windows * window_ns_) return;
  surprises_.insert(i);
  surprised_ = true;
}

explanation assignment::explain(const task_record& t) const {
  explanation e;
  e.task = name_of(t);
  if (detail::was_placed(t)) {
    e.executor = facts_[t.executor].shown_name();
    e.predicted = (t.marks & detail::mark_known) != 0;
  }
  if (t.id != 0) e.candidates = decisions_.candidates(t.id, facts_);
  if (e.candidates.empty() && !e.executor.empty())  // one candidate: nothing was weighed
    e.candidates.push_back({e.executor,
                            {},
                            {},
                            std::chrono::nanoseconds(static_cast<std::int64_t>(detail::prediction_of(t))),
                            0,
                            0,
                            true});
  if (t.kernel)
    for (const detail::executor_facts& f : facts_)
      if (const std::string_view why = reason_against(*t.kernel, f);
          !why.empty() && (!t.extra || t.extra->executors.contains(f.id)))
        e.candidates.push_back({f.shown_name(), {}, {}, {}, 0, 0, false, std::string(why)});
  if (t.kind == detail::task_kind::join && t.extra) {
    e.chunks = t.extra->chunks;
    for (std::size_t i = 0; i < t.extra->chunks_at.size(); ++i)
      if (const std::uint64_t n = std::atomic_ref(t.extra->chunks_at[i]).load(std::memory_order_relaxed); n != 0)
        e.chunks_at.push_back({facts_[i].shown_name(), n});
    e.candidates.clear();
  }
  return e;
}

}  // namespace troupe::logic
