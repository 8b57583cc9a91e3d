// What this file is for: keeping a reservation's holders as the bodies that were seen to run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/backfill.hpp"

namespace troupe::logic {

void backfill::look(std::span<const holding> running, const request& first, time now) {
  ++looks_;
  line_.begin_round();
  for (const holding& h : running) {
    known& k = known_[h.who];
    k.seen = looks_;
    if (k.passes || k.since == h.since) continue;
    line_.end(h.who);
    line_.hold(h.who, h.slots, h.since, h.lasts);
    k.since = h.since;
  }
  std::erase_if(known_, [&](const auto& k) {
    if (k.second.passes || k.second.seen == looks_) return false;
    line_.end(k.first);
    return true;
  });
  line_.keep(first.who, first.slots, first.free, line_.when_back(first.slots - first.free, now).at, now);
}

void backfill::passes(const void* who, time now, time lasts) {
  line_.end(who);
  line_.hold(who, 1, now, lasts);
  known_[who] = {now, true, looks_};
}

void backfill::ended(const void* who) {
  line_.end(who);
  known_.erase(who);
}

}  // namespace troupe::logic
