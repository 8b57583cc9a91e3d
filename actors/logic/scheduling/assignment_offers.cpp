// What this file is for: which executors are weighed for a task, and what each of them offers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/logic/scheduling/resources.hpp"

namespace troupe::logic {

using detail::task_record;

namespace {
// Number of tasks for each slot, of a kernel that has not been timed anywhere, that an executor with a memory of its
// own is given: one that runs and some that keep it busy until their time is known here; more for a device, which gives
// back those that it has not begun. A core group gets a window of them, since idle executors take over tasks that have
// not begun there.
constexpr int guesses_per_slot = 8, guesses_per_slot_of_node = 4;
// Number of nodes up to which all are weighed.
constexpr int nodes_few = 8;
}  // namespace

void assignment::add(const detail::executor_facts& f) {
  work_.add(f.slots, f.kind);
  facts_.push_back(f);
  spaces_.add(f.space, f.id);
  eligible_.add(f);
  if (f.kind != device_kind::node) near_.insert(f.id);
  if (f.shares_cores()) on_cores_.insert(f.id);
}

std::uint64_t assignment::bytes_of(const task_record& t) {
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

float assignment::predicted_ns(const task_record& t) {
  const executor_set& mask = eligible_.masks_of(t).all;
  if (mask.empty()) return 0;
  return model_of(t, facts_[static_cast<std::size_t>(mask.first())].kind).predicted_ns();
}

std::uint64_t assignment::missing_bytes(const task_record& t, detail::memory_space where) const {
  return bytes_missing(t, where);
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

// True if executor i has enough tasks of unknown duration. With a free slot it may always have one more: those that it
// tries may wait for that one.
bool assignment::tries_enough(std::size_t i) const {
  const int each = eligible_.is_node(i) ? guesses_per_slot_of_node : guesses_per_slot;
  return facts_[i].space != detail::host_space && work_.tries(i) >= each * work_.slots(i) && !work_.free().contains(i);
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

}  // namespace troupe::logic
