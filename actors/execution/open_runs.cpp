// What this file is for: opening and closing runs, and finding one to join.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/open_runs.hpp"

#include <algorithm>
#include <mutex>

#include "actors/protocol/executor.hpp"

namespace troupe::detail {

std::size_t open_runs::slots_of(const logic::executor_set& scope) const {
  std::size_t n = 0;
  for (const group_state& g : groups_)
    if (scope.contains(g.who->facts().id)) n += static_cast<std::size_t>(g.who->facts().slots);
  return n;
}

// Counts the run in or out for the groups that may join it.
void open_runs::count(const entry& e, int change) {
  groups_[e.owner].own.fetch_add(change, std::memory_order_seq_cst);
  for (group_state& g : groups_)
    if (e.scope.contains(g.who->facts().id)) g.open.fetch_add(change, std::memory_order_seq_cst);
}

void open_runs::open(graph_run& run, std::uint16_t owner, const logic::executor_set& scope) {
  const entry e{&run, owner, scope};
  {
    const std::lock_guard hold(lock_);
    entries_.push_back(e);
  }
  count(e, 1);
}

void open_runs::close(graph_run& run) noexcept {
  entry gone;
  {
    const std::lock_guard hold(lock_);
    const auto it = std::ranges::find(entries_, &run, &entry::run);
    gone = *it;
    entries_.erase(it);
  }
  count(gone, -1);
}

bool open_runs::has_nodes(std::uint16_t group, bool own) const {
  if ((own ? groups_[group].own : groups_[group].open).load(std::memory_order_seq_cst) == 0) return false;
  const std::lock_guard hold(lock_);
  return std::ranges::any_of(entries_, [&](const entry& e) {
    return (own ? e.owner == group : e.scope.contains(group)) && e.run->has_shared();
  });
}

// Runs of the group itself come first: the others wait for its threads.
graph_run::hand* open_runs::join(std::uint16_t group) {
  const std::lock_guard hold(lock_);
  graph_run* found = nullptr;
  for (const entry& e : entries_) {
    if (!e.scope.contains(group) || (found && e.owner != group) || !e.run->has_shared()) continue;
    found = e.run;
    if (e.owner == group) break;
  }
  if (!found) return nullptr;
  graph_run::hand& mine = found->take_hand();
  found->join();
  return &mine;
}

// The caller takes part in the run: it is open.
void open_runs::call_others(const graph_run& run, std::uint16_t group, std::size_t threads) {
  if (groups_.size() == 1 || !run.has_shared()) return;
  logic::executor_set scope;
  {
    const std::lock_guard hold(lock_);
    const auto it = std::ranges::find_if(entries_, [&](const entry& e) { return e.run == &run; });
    if (it != entries_.end()) scope = it->scope;
  }
  for (const auto& other : groups_) {
    const std::uint16_t id = other.who->facts().id;
    if (id == group || !scope.contains(id)) continue;
    for (int n = other.who->sleepers(); n > 0; --n) {
      if (threads-- == 0) return;
      other.who->wake_one();
    }
  }
}

}  // namespace troupe::detail
