// What this file is for: opening and ending sums, and what of a partial has been filled.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/open_sums.hpp"

namespace troupe::logic {

bool open_sums::has_other(const tile_key& t, detail::combine_fn op) const {
  const auto known = sums_.find(t);
  return known != sums_.end() && known->second.op != op;
}

void open_sums::open(const tile_key& t, detail::combine_fn op, std::uint32_t home) {
  sums_.try_emplace(t, sum{home, op, {}});
}

box_list open_sums::fill(const tile_key& t, std::uint32_t part, const box4& b) {
  box_list& filled = sums_.at(t).filled[part];
  box_list fresh = without(box_list{b}, filled);
  filled.insert(filled.end(), fresh.begin(), fresh.end());
  return fresh;
}

std::optional<open_sums::ended> open_sums::end(const tile_key& t) {
  const auto known = sums_.find(t);
  if (known == sums_.end()) return {};
  const sum s = std::move(known->second);
  sums_.erase(known);
  ended all{s.home, {}};
  for (const auto& [part, boxes] : s.filled)
    for (const box4& b : boxes) all.addends.push_back({part, b, s.op});
  return all;
}

}  // namespace troupe::logic
