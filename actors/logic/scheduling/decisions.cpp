// What this file is for: remembering choices among offers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/decisions.hpp"

#include <chrono>
#include <utility>

namespace troupe::logic {

void decisions::note(std::uint64_t task, std::span<const offer> offers, std::size_t chosen) {
  if (kept_max_ == 0) return;
  const bool full = kept_.size() >= kept_max_;
  decision& d = full ? kept_[oldest_] : kept_.emplace_back();
  if (full && ++oldest_ == kept_max_) oldest_ = 0;
  d.task = task;
  d.offers.assign(offers.begin(), offers.end());
  d.chosen = chosen;
}

void decisions::note_move(std::uint64_t task, std::uint16_t executor) {
  for (std::size_t n = kept_.size(); n > 0; --n) {
    decision& d = kept_[(oldest_ + n - 1) % kept_.size()];
    if (d.task != task) continue;
    for (std::size_t k = 0; k < d.offers.size(); ++k)
      if (d.offers[k].executor == executor) d.chosen = k;
    return;
  }
}

std::vector<candidate> decisions::candidates(std::uint64_t task, std::span<const detail::executor_facts> facts) const {
  std::vector<candidate> all;
  const auto ns = [](float v) { return std::chrono::nanoseconds(static_cast<std::int64_t>(v)); };
  for (std::size_t n = 0; n < kept_.size(); ++n) {
    const decision& d = kept_[(oldest_ + n) % kept_.size()];
    if (d.task != task) continue;
    for (std::size_t i = 0; i < d.offers.size(); ++i) {
      const offer& o = d.offers[i];
      all.push_back({facts[o.executor].shown_name(), ns(o.queue_ns + o.others_ns), ns(o.transfer_ns), ns(o.run_ns),
                     o.bytes_missing, o.bytes_direct, i == d.chosen});
    }
  }
  return all;
}

}  // namespace troupe::logic
