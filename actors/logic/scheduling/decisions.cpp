// What this file is for: remembering choices among offers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/decisions.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

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
  struct found {
    const offer* made;
    bool chosen;
  };
  std::vector<found> all;
  bool latest = true;
  for (std::size_t n = kept_.size(); n > 0; --n) {
    const decision& d = kept_[(oldest_ + n - 1) % kept_.size()];
    if (d.task != task) continue;
    for (std::size_t i = 0; i < d.offers.size(); ++i)
      if (std::ranges::none_of(all, [&](const found& f) { return f.made->executor == d.offers[i].executor; }))
        all.push_back({&d.offers[i], latest && i == d.chosen});
    latest = false;
  }
  std::ranges::sort(all, {}, [](const found& f) { return f.made->executor; });
  std::vector<candidate> told;
  const auto ns = [](float v) { return std::chrono::nanoseconds(static_cast<std::int64_t>(v)); };
  for (const auto& [made, chosen] : all)
    told.push_back({facts[made->executor].shown_name(), ns(made->queue_ns + made->others_ns), ns(made->transfer_ns),
                    ns(made->run_ns), made->bytes_missing, made->bytes_direct, chosen});
  return told;
}

}  // namespace troupe::logic
