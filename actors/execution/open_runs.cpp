// What this file is for: opening and closing runs, and finding one to join.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/open_runs.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace troupe::detail {

open_runs::seat open_runs::add(executor& group) {
  seats_.emplace_back(group);
  return seats_.size() - 1;
}

std::size_t open_runs::slots_of(const logic::executor_set& who) const {
  std::size_t n = 0;
  for (const group& g : seats_)
    if (who.contains(g.who->facts().id)) n += static_cast<std::size_t>(g.who->facts().slots);
  return n;
}

void open_runs::open(graph_run& run, seat owner, const logic::executor_set& who) {
  entry e{&run, owner, std::vector<bool>(seats_.size())};
  for (seat s = 0; s < seats_.size(); ++s) e.for_seat[s] = s == owner || who.contains(seats_[s].who->facts().id);
  const std::vector<bool> for_seat = e.for_seat;
  {
    std::lock_guard hold(lock_);
    entries_.push_back(std::move(e));
  }
  seats_[owner].own.fetch_add(1, std::memory_order_seq_cst);
  for (seat s = 0; s < seats_.size(); ++s)
    if (for_seat[s]) seats_[s].open.fetch_add(1, std::memory_order_seq_cst);
}

void open_runs::close(graph_run& run) noexcept {
  entry gone{};
  {
    std::lock_guard hold(lock_);
    const auto it = std::ranges::find(entries_, &run, &entry::run);
    if (it == entries_.end()) return;
    gone = std::move(*it);
    entries_.erase(it);
  }
  seats_[gone.owner].own.fetch_sub(1, std::memory_order_relaxed);
  for (seat s = 0; s < seats_.size(); ++s)
    if (gone.for_seat[s]) seats_[s].open.fetch_sub(1, std::memory_order_relaxed);
}

bool open_runs::has_nodes(seat s, bool own) const {
  if ((own ? seats_[s].own : seats_[s].open).load(std::memory_order_seq_cst) == 0) return false;
  std::lock_guard hold(lock_);
  return std::ranges::any_of(entries_, [&](const entry& e) {
    return (own ? e.owner == s : static_cast<bool>(e.for_seat[s])) && e.run->has_shared();
  });
}

// Runs of the group itself come first: its threads are who the others wait for.
graph_run::hand* open_runs::join(seat s) {
  std::lock_guard hold(lock_);
  graph_run* found = nullptr;
  for (const entry& e : entries_) {
    if (!e.for_seat[s] || (found && e.owner != s) || !e.run->has_shared()) continue;
    found = e.run;
    if (e.owner == s) break;
  }
  if (!found) return nullptr;
  graph_run::hand& mine = found->take_hand();
  found->join();
  return &mine;
}

void open_runs::call_others(const graph_run& run, seat s, std::size_t threads) {
  if (seats_.size() == 1 || threads == 0) return;
  std::vector<bool> who;
  {
    std::lock_guard hold(lock_);
    const auto it = std::ranges::find(entries_, &run, [](const entry& e) { return static_cast<const graph_run*>(e.run); });
    if (it == entries_.end()) return;
    who = it->for_seat;
  }
  for (seat other = 0; other < seats_.size(); ++other) {
    if (other == s || !who[other]) continue;
    executor& e = *seats_[other].who;
    for (int n = e.sleepers(); n > 0; --n) {
      if (threads-- == 0) return;
      e.wake_one();
    }
  }
}

}  // namespace troupe::detail
