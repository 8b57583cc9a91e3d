// What this file is for: the choice among the offers for a task.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <optional>

#include "actors/logic/data/directory.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/logic/scheduling/resources.hpp"

namespace troupe::logic {

using detail::task_record;

namespace {
// Number of tasks of a kernel that an executor without samples is given at once (a core group: for each slot); two make
// a sample.
constexpr int tries_per_slot = 2;
// Index that stands for no offer.
constexpr std::size_t none = ~std::size_t{0};

// True if offer `a` is nearer to the task's data. Tiles that the task changes count first: afterwards they are only
// where it has run, and tasks that follow change them there; a tile that it reads is a copy, of use to others too.
bool is_nearer(const offer& a, const offer& b) {
  return a.bytes_changed != b.bytes_changed ? a.bytes_changed < b.bytes_changed : a.transfer_ns < b.transfer_ns;
}
}  // namespace

bool assignment::has_room(const offer& o) const { return !o.waits && !o.guessed && work_.roomy().contains(o.executor); }

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

assignment::outcome assignment::assign_among(task_record& t, const executor_set& among, std::size_t waiting,
                                             bool at_home) {
  if (before_choices_) before_choices_();
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

}  // namespace troupe::logic
