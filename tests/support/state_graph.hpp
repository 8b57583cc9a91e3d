// What this file is for: a model of threads, explored in every order: can its end be reached from all that can happen?
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace test {

/// What exploring a model has found.
struct state_findings {
  std::size_t states = 0;
  std::size_t stuck = 0;   ///< states from which the end cannot be reached
  std::size_t broken = 0;  ///< states that must not be
};

/// Visits all states that can be reached, of which the bytes alone are compared. A model has `first()`;
/// `is_over(state)`; `is_broken(state)`; and `each_step(state, f)`, which calls `f(next state)` for each step that some
/// thread can take. From a state that is over or broken no step is taken.
template <class Model>
state_findings explore_states(const Model& m) {
  using state = decltype(m.first());
  static_assert(std::has_unique_object_representations_v<state>, "bytes alone are compared");
  struct same {
    bool operator()(const state& a, const state& b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
  };
  struct hash {
    std::size_t operator()(const state& s) const {
      std::uint64_t h = 0xcbf29ce484222325u;
      const auto* const p = reinterpret_cast<const unsigned char*>(&s);
      for (std::size_t i = 0; i < sizeof s; ++i) h = (h ^ p[i]) * 0x100000001b3u;
      return h;
    }
  };
  std::unordered_map<state, std::uint32_t, hash, same> known;
  std::vector<const state*> all;
  std::vector<std::vector<std::uint32_t>> before;
  const auto number = [&](const state& x) {
    const auto [place, is_new] = known.try_emplace(x, static_cast<std::uint32_t>(all.size()));
    if (is_new) {
      all.push_back(&place->first);
      before.emplace_back();
    }
    return place->second;
  };
  state_findings found;
  std::vector<std::uint32_t> reached;
  number(m.first());
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (m.is_broken(*all[i])) {
      ++found.broken;
      reached.push_back(i);  // counted once, as broken
      continue;
    }
    if (m.is_over(*all[i])) {
      reached.push_back(i);
      continue;
    }
    m.each_step(*all[i], [&](const state& next) { before[number(next)].push_back(i); });
  }
  std::vector<bool> ends(all.size());
  for (const std::uint32_t i : reached) ends[i] = true;
  while (!reached.empty()) {
    const std::uint32_t i = reached.back();
    reached.pop_back();
    for (const std::uint32_t b : before[i])
      if (!ends[b]) {
        ends[b] = true;
        reached.push_back(b);
      }
  }
  found.states = all.size();
  found.stuck = static_cast<std::size_t>(std::count(ends.begin(), ends.end(), false));
  return found;
}

}  // namespace test
