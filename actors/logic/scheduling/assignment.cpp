// What this file is for: which executors are weighed for a task, and the choice among the offers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/assignment.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/dependencies.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/logic/scheduling/resources.hpp"

namespace troupe::logic {

using detail::task_record;

namespace {
// Run time assumed for a kernel that has not been timed, so that a first flood spreads over the executors.
constexpr float guess_ns = 10'000.0f;
// Number of tasks of a kernel that an executor without samples is given at once (a core group: for each slot); two make
// a sample.
constexpr int tries_per_slot = 2;
// Number of tasks for each slot, of a kernel that has not been timed anywhere, that an executor with a memory of its
// own is given: one that runs and some that keep it busy until their time is known here; more for a device, which gives
// back those that it has not begun. A core group gets a window of them, since idle executors take over tasks that have
// not begun there.
constexpr int guesses_per_slot = 8, guesses_per_slot_of_node = 4;
// A task that takes surprise_factor times as long as predicted contradicts the prediction, if more than
// surprise_windows windows of work are queued there.
constexpr float surprise_factor = 4, surprise_windows = 2;
// Index that stands for no offer.
constexpr std::size_t none = ~std::size_t{0};
// Value of `waiting` for a task that does not wait for room.
constexpr std::size_t at_once = ~std::size_t{0};
// Number of waiting tasks that are searched for one whose data an executor with room has.
constexpr std::size_t looked_at_max = 24;
// Number of samples of a kernel after which only one in eight is learned.
constexpr std::uint32_t samples_before_thinning = 64;
// Number of nodes that are weighed for a task, half of them with some of its data if there are any.
constexpr int nodes_weighed = 4;
// Number of nodes up to which all are weighed.
constexpr int nodes_few = 8;

// True if offer `a` is nearer to the task's data. Tiles that the task changes count first: afterwards they are only
// where it has run, and tasks that follow change them there; a tile that it reads is a copy, of use to others too.
bool is_nearer(const offer& a, const offer& b) {
  return a.bytes_changed != b.bytes_changed ? a.bytes_changed < b.bytes_changed : a.transfer_ns < b.transfer_ns;
}
}  // namespace

void assignment::add(const detail::executor_facts& f) {
  work_.add(f.slots, f.kind);
  facts_.push_back(f);
  spaces_.add(f.space, f.id);
  eligible_.add(f);
  if (f.kind != device_kind::node) near_.insert(f.id);
  if (f.shares_cores()) on_cores_.insert(f.id);
}

float assignment::predicted_ns(const task_record& t) {
  const executor_set& mask = eligible_.masks_of(t).all;
  if (mask.empty()) return 0;
  return model_of(t, facts_[static_cast<std::size_t>(mask.first())].kind).predicted_ns();
}

std::uint64_t assignment::missing_bytes(const task_record& t, detail::memory_space where) const {
  return bytes_missing(t, where);
}

std::uint64_t assignment::bytes_of(const task_record& t) const {
  std::uint64_t bytes = 0;
  for (int i = 0; i < t.access_count; ++i) {
    const detail::access& x = t.accesses[i];
    if (!x.array) continue;
    if (!x.where)
      bytes += x.array->tile_bytes_max;
    else
      bytes += static_cast<std::uint64_t>(view_box(*x.where).volume()) * x.array->spec.element;
  }
  return bytes;
}

run_time& assignment::model_of(const task_record& t, device_kind kind) {
  return model_.of(*t.kernel, size_class_of(bytes_of(t)), kind);
}

// Time for the missing bytes to arrive in space `where`. Data that only another device holds comes over a direct link
// if there is one; else it goes through the host first (homecoming_ns). So the order of costs is: in this device's
// memory, in the memory of a device that it reaches or in the host's, in another device's.
float assignment::arrival_ns(detail::memory_space where, const sources& missing) const {
  float ns = 0;
  if (where == detail::host_space) return ns;
  missing.each([&](detail::memory_space s, std::uint64_t n) {
    if (n != 0) ns += model_.transfer_ns(s, where, n);
  });
  return ns;
}

float assignment::homecoming_ns(const task_record& t, detail::memory_space where) const {
  float ns = 0;
  detail::memory_space from = detail::host_space;
  std::uint64_t bytes = 0;
  const bool on_node = facts()[executor_of(where)].kind == device_kind::node;
  const auto come_home = [&] { ns += model_.transfer_ns(from, detail::host_space, bytes); };
  each_in_the_way(t, where, [&](const array_core& a, std::uint32_t tile, const coherence_entry& entry, wanted w) {
    if (w == wanted::nothing || (w >= wanted::anywhere && reaches(where, entry.dirty_in))) return;
    if (entry.dirty_in != from) {
      come_home();
      from = entry.dirty_in;
      bytes = 0;
    }
    const bool device = where != detail::host_space;
    const std::uint64_t part = device && on_node ? 0 : parts_read(t, a, tile, device);
    bytes += part != 0 ? part * a.spec.element : a.bytes_of(tile);
  });
  come_home();
  return ns;
}

float assignment::hop_ns(detail::memory_space from, detail::memory_space to, std::uint64_t bytes) const {
  if (to == detail::host_space || reaches(to, from)) return model_.transfer_ns(from, to, bytes);
  return model_.transfer_ns(from, detail::host_space, bytes) + model_.transfer_ns(detail::host_space, to, bytes);
}

void assignment::assign_again(task_record& t) {
  const executor_set& now = eligible_.masks_of(t).now;
  if (now.empty() || assign_among(t, now, at_once) != outcome::given) assign(t);
}

void assignment::assign(task_record& t) {
  if (facts_.size() == 1 && !t.extra) {
    const run_time& m = model_of(t, facts_[0].kind);
    if (m.known()) t.marks |= detail::mark_known;
    work_.give(t, 0, m.predicted_ns());
    return;
  }
  const auto& [mask, now] = eligible_.masks_of(t);
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
  if (!now.empty() && assign_among(t, now, b == backlogs_.end() ? 0 : b->tasks.size(), is_far(now)) == outcome::given)
    return;
  if (b == backlogs_.end()) {
    backlogs_.push_back({mask, {}});
    b = backlogs_.end() - 1;
  }
  b->tasks.push(&t, t.extra ? t.extra->options.priority : 0);
  kept_.fetch_add(1, std::memory_order_seq_cst);
}

// Chooses the executors that are weighed. False: all of `among`. True: there are many nodes; then all that are not
// nodes, some of the nodes that have data and some that have room, those with a free slot first. The choice starts with
// another node each time.
bool assignment::look_for_some(const executor_set& among, const space_set& holders) {
  weighed_count_ = 0;
  const auto add = [&](std::size_t i) { weighed_[weighed_count_++] = static_cast<std::uint16_t>(i); };
  if (!among.has_more_than_with(eligible_.nodes(), nodes_few)) {
    among.each(add);
    return false;
  }
  for (int i = near_.next_with(among, 0); i != executor_set::end;
       i = near_.next_with(among, static_cast<std::size_t>(i) + 1))
    add(static_cast<std::size_t>(i));
  int left = nodes_weighed;
  const auto add_some = [&](const executor_set& of, const executor_set& that_are, int down_to) {
    std::size_t from = turn_;
    for (bool wrapped = false; left > down_to;) {
      const int i = of.next_with(that_are, from);
      if (i == executor_set::end || (wrapped && static_cast<std::size_t>(i) >= turn_)) {
        if (wrapped) return;
        wrapped = true;
        from = 0;
        continue;
      }
      from = static_cast<std::size_t>(i) + 1;
      if (near_.contains(static_cast<std::size_t>(i)) || std::ranges::find(weighed(), i) != weighed().end()) continue;
      add(static_cast<std::size_t>(i));
      --left;
    }
  };
  if (!holders.empty()) {
    executor_set have;
    holders.each([&](std::size_t s) {
      if (const std::size_t i = spaces_.executor_of(static_cast<detail::memory_space>(s)); among.contains(i))
        have.insert(i);
    });
    add_some(have, work_.free(), nodes_weighed / 2);
    add_some(have, work_.roomy(), nodes_weighed / 2);
    add_some(have, eligible_.nodes(), nodes_weighed / 2);
  }
  add_some(among, work_.free(), 0);
  add_some(among, work_.roomy(), 0);
  add_some(among, eligible_.nodes(), 0);
  return true;
}

// Makes the offers of the weighed executors; returns true if the task's kernel has been timed on all their kinds.
// `holders`: spaces that hold some of its data.
bool assignment::make_offers(const task_record& t, const space_set& holders, models& m) {
  // The same bytes have to travel to all executors that hold none of the task's data and reach the same of its holders:
  // they are counted once. If no space holds any, these are all executors.
  std::array<detail::memory_space, 32> holding;
  std::size_t holding_count = 0;
  holders.each([&](std::size_t s) {
    if (holding_count++ < holding.size()) holding[holding_count - 1] = static_cast<detail::memory_space>(s);
  });
  const auto reached_from = [&](detail::memory_space where) {
    std::uint32_t reached = 0;
    for (std::size_t k = 0; k < holding_count; ++k)
      reached = reached << 1 | (spaces_.reached_by(where).contains(holding[k]) ? 1 : 0);
    return reached;
  };
  struct missing {
    sources from;
    std::uint64_t bytes = 0;
    float home_ns = 0;
    std::uint32_t reached = 0;
    bool looked_at = false;
  } same, own;
  bool all_known = true;
  const bool slotless = t.extra && logic::slots_of(t.extra->options.resources) == 0;
  offers_.resize(weighed_count_);
  for (std::size_t k = 0; k < weighed_count_; ++k) {
    const std::size_t i = weighed_[k];
    const detail::executor_facts& f = facts_[i];
    const run_time& time = m.of(f.kind);
    all_known &= time.known();
    offer& o = offers_[k];
    o = {.executor = f.id,
         .queue_ns = work_.queue_ns(i),
         .run_ns = time.expected_ns(guess_ns),
         .others_ns = work_.others_ns(i)};
    o.guessed = !time.known() && tries_enough(i) && !slotless;
    if (spaces_.has_one()) continue;
    const bool alike = !holders.contains(f.space) && f.space != detail::host_space;
    missing& lacks = alike ? same : own;
    const std::uint32_t reached = alike && holding_count <= holding.size() ? reached_from(f.space) : 0;
    if (!alike || !same.looked_at || reached != same.reached || holding_count > holding.size()) {
      lacks.from.restart(&spaces_.reached_by(f.space));
      lacks.bytes = bytes_missing(t, f.space, lacks.from);
      lacks.home_ns = homecoming_ns(t, f.space);
      lacks.reached = reached;
      lacks.looked_at = true;
    }
    o.bytes_missing = lacks.bytes;
    o.bytes_changed = lacks.from.changed();
    o.bytes_direct = lacks.from.direct();
    o.transfer_ns = arrival_ns(f.space, lacks.from) + lacks.home_ns;
    if (o.transfer_ns > 0) o.link_ns = work_.moving_ns(i);
  }
  return all_known;
}

// Returns the offer of an executor that has no time for the task's kernel and tries it, if one is to. A guess is not
// compared between cores and devices: such an executor tries a few tasks before it gets more. It does not where an
// executor of known speed with room is done before the data has even arrived, by a link whose speed is known too.
assignment::trial assignment::choose_trial(const task_record& t, models& m, std::size_t waiting, bool all_known) {
  trial chosen{none};
  if (all_known) return chosen;
  float known_ns = std::numeric_limits<float>::max();
  if (!spaces_.has_one())
    for (const offer& o : offers_)
      if (o.queue_ns <= window_ns_ && m.of(o).known()) known_ns = std::min(known_ns, o.finish_ns());
  if (std::ranges::all_of(offers_,
                          [&](const offer& o) { return facts_[o.executor].kind == facts_[offers_[0].executor].kind; }))
    return chosen;
  alternatives others{.waiting = waiting == at_once ? 0 : waiting};
  for (const offer& o : offers_) note_alternative(others, o.executor, m.of(o));
  for (std::size_t k = 0; k < offers_.size(); ++k) {
    offer& o = offers_[k];
    const std::size_t i = o.executor;
    if (m.of(o).known()) continue;
    const bool host = facts_[i].space == detail::host_space;
    // Cores with a free slot may always try: the bodies that run there as trials may wait for this task.
    const bool enough =
        work_.tries(i) >= tries_per_slot * (host ? work_.slots(i) : 1) && !(host && work_.free().contains(i));
    const bool too_far = o.transfer_ns > known_ns && model_.knows_edge(detail::host_space, facts_[i].space);
    std::optional<float> at_stake = 0.0f;
    if (!enough && !too_far && is_device(i))
      at_stake = trials_.stake(i, *t.kernel, m.of(o), facts_[i].shares_cores(), o.transfer_ns, others);
    o.waits = enough || too_far || !at_stake;
    if (!o.waits && o.queue_ns <= window_ns_ &&
        (chosen.offer == none || o.finish_ns() < offers_[chosen.offer].finish_ns()))
      chosen = {k, *at_stake};
  }
  return chosen;
}

assignment::outcome assignment::assign_among(task_record& t, const executor_set& among, std::size_t waiting,
                                             bool at_home) {
  if (waiting != at_once && !among.meets(work_.roomy())) return outcome::kept;
  models m(*this, t);
  const space_set holders = spaces_.has_one() ? space_set() : spaces_with_data_of(t);
  const bool some = look_for_some(among, holders);
  const bool all_known = make_offers(t, holders, m);
  const trial tried = choose_trial(t, m, waiting, all_known);
  if (careful_ && among.meets(on_cores_)) leave_cores_alone(t, m.of(device_kind::cpu).known());
  const std::size_t best = tried.offer != none ? tried.offer : choose(offers_, waiting, among, some);
  if (best == none) return outcome::kept;
  const offer& o = offers_[best];
  if (at_home && tried.offer == none &&
      std::ranges::any_of(offers_, [&](const offer& other) { return is_nearer(other, o); }))
    return outcome::elsewhere;
  if (m.of(o).known()) t.marks |= detail::mark_known;
  if (tried.offer != none && tried.staked_ns > 0) model_of(t, facts_[o.executor].kind).stake(tried.staked_ns);
  if (some && eligible_.is_node(o.executor)) turn_ = o.executor + 1u;
  decisions_.note(t.sequence, offers_, best);
  work_.give(t, o.executor, o.run_ns, o.transfer_ns);
  return outcome::given;
}

// Returns the offer with the earliest finish, if its executor has room. Else an executor that has room may take the
// task if it finishes it before the others would have come to the last of the waiting tasks: it is slower, but would be
// idle meanwhile.
std::size_t assignment::choose(std::span<const offer> offers, std::size_t waiting, const executor_set& among,
                               bool some) const {
  const std::size_t best = best_offer(offers);
  if (has_room(offers[best]) || waiting == at_once) return best;
  // Number of nodes that each weighed node stands for.
  const float nodes_each = some ? static_cast<float>((among & eligible_.nodes()).count()) / nodes_weighed : 1;
  std::size_t chosen = none;
  for (std::size_t j = 0; j < offers.size(); ++j) {
    if (!has_room(offers[j])) continue;
    float rate = 0;  // of the others, in tasks per nanosecond
    for (std::size_t k = 0; k < offers.size(); ++k)
      if (k != j && !offers[k].waits)
        rate += (eligible_.is_node(offers[k].executor) ? nodes_each : 1.0f) *
                static_cast<float>(work_.slots(offers[k].executor)) / std::max(offers[k].run_ns, 1.0f);
    if (offers[j].finish_ns() * rate > static_cast<float>(waiting)) continue;
    if (chosen == none || offers[j].finish_ns() < offers[chosen].finish_ns()) chosen = j;
  }
  return chosen;
}

bool assignment::has_room(const offer& o) const { return !o.waits && !o.guessed && work_.roomy().contains(o.executor); }

// True if executor i has enough tasks of unknown duration. With a free slot it may always have one more: those that it
// tries may wait for that one.
bool assignment::tries_enough(std::size_t i) const {
  const int each = eligible_.is_node(i) ? guesses_per_slot_of_node : guesses_per_slot;
  return facts_[i].space != detail::host_space && work_.tries(i) >= each * work_.slots(i) && !work_.free().contains(i);
}

// Withholds a task from devices that compute on the cores unless it takes less time of the cores there: the cores do
// nothing else while such a device computes.
void assignment::leave_cores_alone(const task_record& t, bool cores_known) {
  constexpr float never = std::numeric_limits<float>::max();
  const float slots = static_cast<float>(std::max(slots_needed(t), 1));
  float cores_ns = never;
  for (const offer& o : offers_)
    if (cores_known && facts_[o.executor].space == detail::host_space)
      cores_ns = std::min(cores_ns, o.run_ns * slots + o.transfer_ns);
  for (offer& o : offers_)
    if (on_cores_.contains(o.executor))
      o.waits |= o.run_ns * static_cast<float>(facts_[o.executor].takes_cores) + o.transfer_ns >= cores_ns;
}

// Adds executor i to the alternatives to a trial. Of late samples only one in eight is seen; see
// samples_before_thinning.
void assignment::note_alternative(alternatives& all, std::size_t i, const run_time& m) const {
  all.cores |= facts_[i].space == detail::host_space;
  if (!m.known() || !(m.predicted_ns() > 0)) return;
  all.tasks_per_ns += static_cast<float>(work_.slots(i)) / m.predicted_ns();
  if (all.run_ns > 0 && all.run_ns <= m.predicted_ns()) return;
  all.run_ns = m.predicted_ns();
  const double seen = m.seen(), thinned = std::max(seen - samples_before_thinning, 0.0);
  all.spent_ns = (seen + 7 * thinned) * static_cast<double>(all.run_ns);
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

void assignment::refill() {
  if (kept_.load(std::memory_order_relaxed) == 0) return;
  for (backlog& b : backlogs_) {
    if (b.tasks.empty() || !b.mask.meets(work_.roomy())) continue;
    const executor_set mask = eligible_.without_paused(b.mask);
    if (is_far(mask)) refill_at_home(b, mask);
    while (!mask.empty() && !b.tasks.empty()) {
      task_record* t = b.tasks.pop();
      if (!t) break;
      if (assign_among(*t, mask, b.tasks.size()) != outcome::given) {
        b.tasks.push_front(t, t->extra ? t->extra->options.priority : 0);
        break;
      }
      kept_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void assignment::finished(task_record& t) {
  if (!(t.marks & detail::mark_sent)) return;
  work_.take_off(t);
  if (!(t.measured_ns > 0)) return;
  if (facts_.size() > 1 && t.measured_ns > surprise_factor * t.predicted_ns) note_surprise(t);
  run_time& m = model_of(t, facts_[t.executor].kind);
  if (m.seen() < samples_before_thinning || learned_.next()) m.learn(t.measured_ns);
  work_.note_measured(t);
}

void assignment::note_surprise(const task_record& t) {
  const std::size_t i = t.executor;
  const float queued_ns = t.measured_ns * static_cast<float>(work_.under_way(i)) / static_cast<float>(work_.slots(i));
  if (queued_ns <= surprise_windows * window_ns_) return;
  surprises_.insert(i);
  surprised_ = true;
}

explanation assignment::explain(const task_record& t) const {
  explanation e;
  e.task = name_of(t);
  if (t.marks & detail::mark_sent) {
    e.executor = facts_[t.executor].shown_name();
    e.predicted = (t.marks & detail::mark_known) != 0;
  }
  if (t.id != 0) e.candidates = decisions_.candidates(t.id, facts_);
  if (e.candidates.empty() && (t.marks & detail::mark_sent))  // one candidate: nothing was weighed
    e.candidates.push_back(
        {e.executor, {}, {}, std::chrono::nanoseconds(static_cast<std::int64_t>(t.predicted_ns)), 0, 0, true});
  if (t.kernel)
    for (const detail::executor_facts& f : facts_)
      if (const std::string_view why = reason_against(*t.kernel, f);
          !why.empty() && (!t.extra || t.extra->executors.contains(f.id)))
        e.candidates.push_back({f.shown_name(), {}, {}, {}, 0, 0, false, std::string(why)});
  if (t.kind == detail::task_kind::join && t.extra) {
    e.chunks = t.extra->chunks;
    for (std::size_t i = 0; i < t.extra->chunks_at.size(); ++i)
      if (const std::uint64_t n = t.extra->chunks_at[i]; n != 0) e.chunks_at.push_back({facts_[i].shown_name(), n});
    e.candidates.clear();
  }
  return e;
}

}  // namespace troupe::logic
