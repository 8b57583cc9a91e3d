// What this file is for: other nodes in placement: they join, pause, and send once the turn has been left.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>
#include <vector>

#include "actors/logic/data/directory.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

// Leaves the turn, then calls the executors and listeners that were told something in it.
void placement::leave_and_tell() {
  const notifications::calls calls = notifications_.take([&](const notifications::tile& t) -> executor* {
    const memory_space in = t.array->coherence->tiles[t.number].dirty_in;
    if (in == host_space || in == no_space) return nullptr;
    executor& of = executors_[assignment_.executor_of(in)];
    return of.facts().kind == device_kind::node ? &of : nullptr;
  });
  turns_.leave();
  calls.make();
}

void placement::admit_node(executor& e, int slots, logic::edge_cost in, logic::edge_cost out, bool lends,
                           const std::vector<resource>& has) {
  turns_.take();
  leaving_.erase(e.facts().id);
  admission_.add_node(e.facts().id, has);
  assignment_.restore(e.facts().id, slots);
  if (log_) log_->note_joined(e.facts().id);
  transfers_.add_node(e.facts(), in, out, lends);
  std::vector<task_record*> kept;  // tasks kept while this node was no candidate
  assignment_.drop_kept([&](task_record& t) { kept.push_back(&t); });
  for (task_record* t : kept) assign(*t);
  try_absent();
  serve(nullptr);  // leaves the turn
}

// Uses transfers like those that a task waits for, and not accesses in program order: all that has been spawned and not
// started would have to run before those.
std::size_t placement::fetch_home(const executor& e, std::span<const std::pair<array_core*, std::uint32_t>> all) {
  std::size_t coming = 0;
  settle_accounts();  // what has ended there may still be in the mailbox
  with_turn([&] {
    for (const auto& [a, tile] : all) {
      coherence_entry& entry = a->coherence->tiles[tile];
      if (entry.dirty_in != e.facts().space) continue;
      ++coming;
      if (deps_.graph().alive(entry.moving)) continue;
      transfers_.fetch(*a, tile, entry);
    }
  });
  return coming;
}

void placement::note_far(const executor& e, bool is) {
  with_turn([&] { chains_.note_far(e.facts().id, is); });
}

void placement::note_leaving(const executor& e) {
  with_turn([&] {
    leaving_.insert(e.facts().id);
    assignment_.pause(e.facts().id, true);
    admission_.look_again();
    std::vector<task_record*> kept;
    assignment_.drop_kept([&](task_record& t) { kept.push_back(&t); });
    for (task_record* t : kept) assign(*t);
  });
}

void placement::pause(const executor& e, bool paused) {
  with_turn([&] {
    assignment_.pause(e.facts().id, paused);
    admission_.look_again();
  });
}

void placement::correct_link(memory_space node, std::uint64_t bytes, std::chrono::nanoseconds there,
                             std::chrono::nanoseconds back, std::chrono::nanoseconds round_trip) {
  const auto ns = [](std::chrono::nanoseconds t) { return static_cast<float>(t.count()); };
  with_turn([&] {
    assignment_.correct_link(host_space, node, bytes, ns(there), ns(round_trip));
    assignment_.correct_link(node, host_space, bytes, ns(back), ns(round_trip));
  });
}

// ---- what nodes tell of what they have to do ------------------------------------------------------------------------

void placement::know_others(const executor& e, std::chrono::nanoseconds busy) {
  with_turn([&] { assignment_.know_others(e.facts().id, static_cast<float>(busy.count())); });
}

// Counts queued tasks outside of the turn: executors may have to ask their threads.
load_report placement::load(std::span<const task_listener* const> owners) {
  load_report r;
  std::size_t queued = 0;
  float unplaced_ns = 0;
  std::vector<std::pair<std::size_t, std::size_t>> devices;  // their numbers, and how many tasks each has not begun
  for (std::size_t i = 0; i < executors_.size(); ++i) {
    const executor& e = executors_[i];
    if (e.facts().kind == device_kind::node) continue;
    r.slots += e.facts().slots;
    const std::size_t here = e.unstarted();
    queued += here;
    unplaced_ns += e.unplaced().ns;
    if (e.facts().kind == device_kind::cpu)
      r.busy += e.slots_in_use();
    else
      devices.emplace_back(i, here);
  }
  with_turn([&] {
    logic::assignment::load all = assignment_.given();
    all.ns += unplaced_ns;
    for (const auto& [i, unstarted] : devices)
      r.busy += std::clamp(assignment_.under_way(i) - static_cast<int>(unstarted), 0, executors_[i].facts().slots);
    for (const task_listener* o : owners) {
      const float ns = std::max(0.0f, all.ns - assignment_.given(o).ns) / static_cast<float>(std::max(1, r.slots));
      r.others.emplace_back(static_cast<std::int64_t>(ns));
    }
  });
  r.queued = queued + assignment_.kept();
  return r;
}

}  // namespace troupe::detail
