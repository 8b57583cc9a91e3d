// What this file is for: members: what this node says of itself and of others with its heartbeats.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "actors/logic/membership/membership.hpp"

namespace troupe::logic {

using detail::node_beat;
using detail::node_news;

/// Updates what follows from the record; called after each change of it, or of `known`.
void membership::changed(member& m) {
  const bool counts = m.known && !m.record.is_out();
  const std::uint64_t before = std::exchange(m.counted, counts ? record_sums::sum_of(m.record) : 0);
  sums_.replace(m.record.node, before, m.counted);
  if (!is_mesh_) show(m, node_end::said);
}

// Has the next heartbeats tell of the node. Beyond a mesh there may be many changes: the newest first.
void membership::spread(const node_id& n) { rumours_.add(n, !is_mesh_); }

std::uint64_t membership::digest() const { return sums_.total() ^ (self_.is_out() ? 0 : record_sums::sum_of(self_)); }

void membership::tell_news(std::vector<node_record>& to) {
  const std::size_t enough = 2 + static_cast<std::size_t>(std::bit_width(members_.size()));
  rumours_.tell(is_mesh_ ? news_max : news_beyond_max, enough, [&](const node_id& n) {
    const auto found = members_.find(n);
    if (found != members_.end() && found->second.known) to.push_back(found->second.record);
    return found != members_.end();
  });
}

void membership::say_all(const std::vector<node_record>& records) {
  for (const node_id& n : attended())
    if (const member& m = members_.at(n); m.session.up && (m.session.greeted || m.record.is_out()))
      say(n, node_news{false, false, records});
}

node_beat membership::beat_for(const member& m, bool answer, time_point now) const {
  node_beat b{answer, digest(), views_.agreed().rank(), {}, 0, own_time(now), m.signs.sent};
  if (const auto quiet = now - m.signs.heard; is_watched(m) && quiet >= 2 * options_.heartbeat)
    b.deaf_ms = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(quiet).count());
  return b;
}

void membership::beat_to(const member& m, bool answer, time_point now) {
  node_beat b = beat_for(m, answer, now);
  tell_news(b.news);
  say(m.record.node, std::move(b));
}

}  // namespace troupe::logic
