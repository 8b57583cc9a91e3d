// What this file is for: buckets that fill with time, and windows of counters.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/guards.hpp"

#include <algorithm>

namespace troupe::net {

namespace {

template <class Map, class When>
void forget_oldest(Map& all, When&& when) {
  all.erase(std::min_element(all.begin(), all.end(),
                             [&](const auto& a, const auto& b) { return when(a.second) < when(b.second); }));
}

}  // namespace

bool bucket::has_one(guard_time now) {
  const std::chrono::duration<double> passed = now - at_;
  at_ = now;
  left_ = std::min(rate_, left_ + passed.count() * rate_);
  return left_ >= 1;
}

bool rate_limit::allow(std::uint64_t source, guard_time now) {
  // First, so that a flood of forged addresses does not even get an entry.
  if (!all_.has_one(now)) return false;
  auto at = sources_.find(source);
  if (at == sources_.end()) {
    if (sources_.size() == sources_max) forget_oldest(sources_, [](const entry& e) { return e.seen; });
    at = sources_.emplace(source, entry{bucket(each_per_second_, now), now}).first;
  }
  at->second.seen = now;
  if (!at->second.left.has_one(now)) return false;
  at->second.left.take();
  all_.take();
  return true;
}

bool replay_guard::is_new(const node_id& node, std::uint64_t incarnation, std::uint64_t counter, guard_time now) {
  auto at = nodes_.find(node);
  if (at == nodes_.end()) {
    if (nodes_.size() == nodes_max) forget_oldest(nodes_, [](const entry& e) { return e.heard; });
    nodes_.emplace(node, entry{incarnation, counter, 1, now});
    return true;
  }
  entry& e = at->second;
  if (incarnation < e.incarnation) return false;
  if (incarnation > e.incarnation) {
    e = {incarnation, counter, 1, now};
    return true;
  }
  if (counter > e.highest) {
    const std::uint64_t by = counter - e.highest;
    e.seen = by < 64 ? e.seen << by | 1 : 1;
    e.highest = counter;
  } else {
    const std::uint64_t back = e.highest - counter;
    if (back >= 64 || (e.seen >> back & 1) != 0) return false;
    e.seen |= std::uint64_t{1} << back;
  }
  e.heard = now;
  return true;
}

}  // namespace troupe::net
