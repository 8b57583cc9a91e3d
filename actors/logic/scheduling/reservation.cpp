// What this file is for: when holders will have given enough back, and which requests end before that.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/reservation.hpp"

#include <algorithm>

namespace troupe::logic {

namespace {
// Number of holders that are looked at to find when enough is back; quantities in smaller pieces get a time that is a
// little early.
constexpr std::size_t looked_at_max = 256;
// Number of doublings after which no task passes any more.
constexpr int doublings_max = 40;
}  // namespace

void reservation::hold(const void* who, double amount, time now, time lasts) {
  const bool guessed = lasts == unknown;
  bool passed = false;
  if (kept_) {
    if (ends_in_time(now, lasts))
      passed = true;
    else
      beside_ -= amount;
  }
  if (!who || amount <= 0) return;
  if (guessed && passed) ++guessed_;
  const time taken_for = guessed ? (passed ? guess_ : 0) : lasts;
  const auto at = holders_.emplace(now + std::min(taken_for, never - now),
                                   holder{who, amount, now, passed, false, guessed && passed});
  of_.emplace(who, at);
}

void reservation::end(const void* who) {
  const auto found = of_.find(who);
  if (found == of_.end()) return;
  if (found->second->second.guessed) --guessed_;
  holders_.erase(found->second);
  of_.erase(found);
}

// Holders that are over their predicted time come first in `holders_`, but end after others: the ends are sorted again.
reservation::opening reservation::when_back(double lacks, time now) const {
  if (lacks <= 0) return {now, true};
  std::vector<std::pair<time, std::pair<double, bool>>> ends;
  double in_time = 0;
  for (const auto& h : holders_) {
    if (ends.size() == looked_at_max || in_time >= lacks) break;
    const bool over = h.first <= now;
    ends.push_back({end_of(h, now), {h.second.amount, !over}});
    if (!over) in_time += h.second.amount;
  }
  std::ranges::sort(ends);
  opening o{now, true};
  for (const auto& [at, h] : ends) {
    lacks -= h.first;
    o.at = at;
    o.sure = o.sure && h.second;
    if (lacks <= 0) return o;
  }
  if (ends.size() == looked_at_max) return o;
  return {};
}

double reservation::back_by(time at, time now) const {
  double back = 0;
  std::size_t seen = 0;
  for (const auto& h : holders_) {
    if (h.first > at || ++seen > looked_at_max) break;
    if (end_of(h, now) <= at) back += h.second.amount;
  }
  return back;
}

// True if the reservation could begin without the holders that have passed it. While it also waits for others, they do
// no harm.
bool reservation::is_put_off(double asks, double free) const {
  for (const auto& h : holders_)
    if (h.second.passed) free += h.second.amount;
  return free >= asks;
}

void reservation::keep(const void* who, double asks, double free, time at, time now) {
  if (who != next_) late_ = 0;
  next_ = who;
  if (is_put_off(asks, free)) {
    for (auto& h : holders_) {
      if (h.first > now) break;
      if (!h.second.passed || h.second.late) continue;
      h.second.late = true;
      late_ = std::min(late_ + 1, doublings_max);
    }
  }
  kept_ = true;
  at_ = at == never ? now : at;  // unknown: then no task ends before it
  beside_ = std::min(free, free + back_by(at_, now) - asks);
}

bool reservation::ends_in_time(time now, time lasts) const {
  if (lasts == unknown) {
    if (guess_ == unknown || guessed_ != 0) return false;
    lasts = guess_;
  }
  return late_ < doublings_max && at_ > now && lasts <= (at_ - now) >> late_;
}

reservation::time reservation::look_at(time now, time step) const { return std::max(at_, now + step); }

}  // namespace troupe::logic
