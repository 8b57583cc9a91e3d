// What this file is for: what the tiles of a recording have been through, beside what live ones have.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/recorded_effect.hpp"
#include "actors/logic/data/tile_history.hpp"

namespace troupe::logic {

using detail::array_core;
using detail::tile_history;

/// Tile states of a recording, separate from the live ones.
struct recorded_tiles {
  struct key {
    array_core* array;
    std::uint32_t tile;
    bool operator==(const key&) const = default;
  };
  struct hash {
    std::size_t operator()(const key& k) const {
      return std::hash<const void*>{}(k.array) ^ (std::size_t{k.tile} * 0x9e3779b97f4a7c15ull);
    }
  };
  std::unordered_map<key, tile_history, hash> states;
  std::unordered_map<const tile_history*, recorded_effect> effects;  // of those that are read before they are written
  std::unordered_map<array_core*, detail::reduction*> open;

  /// Returns what the recording's calls read of the tile that was there before.
  recorded_effect effect_of(const tile_history& s) const {
    const auto known = effects.find(&s);
    return known == effects.end() ? recorded_effect() : known->second;
  }
};

}  // namespace troupe::logic
