// What this file is for: an executor that has run dry takes over what another has not started.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Late binding keeps executors within a window of each other as long as predictions hold. This is for when they do not.
#include <algorithm>
#include <array>

#include "actors/placement.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

namespace {
// An executor with nothing to do relieves another of half its queue where that is worth this much, of so many tasks.
constexpr float relief_ns = 5'000.0f;
constexpr std::size_t relief_max = 64;
}  // namespace

bool placement::is_work_elsewhere(const executor* idle) const {
  if (near_.size() < 2 || idle->queued() != 0 || idle->facts().space != host_space) return false;
  const bool stale = is_stale(clock_.ticks());  // then nobody comes for it: some body takes long
  for (const executor* e : near_)
    if (e != idle && e->facts().space == host_space && (e->queued_ns() >= relief_ns || (stale && e->unstarted() != 0)))
      return true;
  return false;
}

void placement::relieve_others(executor& idle) {
  const std::size_t to = idle.facts().id;
  if (idle.facts().space != host_space) return;
  if (idle.queued() != 0 || !assignment_.outgoing(to).empty() || assignment_.kept() != 0) return;
  for (executor* e : near_) {
    if (e == &idle || e->facts().space != host_space || (e->queued_ns() < relief_ns && !was_stale_)) continue;
    std::array<task_record*, relief_max> back;
    const std::size_t half = std::min((e->unstarted() + 1) / 2, back.size());
    const std::size_t n =
        e->take_back(std::span(back.data(), half), [&](const task_record& t) { return assignment_.suits(t, to); });
    for (std::size_t i = n; i != 0; --i) assignment_.move(*back[i - 1], to);
    if (n != 0) return;
  }
}

}  // namespace troupe::detail
