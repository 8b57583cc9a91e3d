// What this file is for: a tile's bytes in host memory with room around them, in which windows are shown.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "actors/logic/data/array_core.hpp"

namespace troupe::detail {

/// How far windows reach beyond a tile along each dimension, as array_core::halo keeps it: eight bits for each.
struct halo {
  static constexpr index_t max = 255;
  std::array<index_t, rank_max> reach{};

  static halo of(std::uint32_t packed) {
    halo h;
    for (int d = 0; d < rank_max; ++d) h.reach[static_cast<std::size_t>(d)] = (packed >> (8 * d)) & max;
    return h;
  }
  std::uint32_t packed() const {
    std::uint32_t p = 0;
    for (int d = 0; d < rank_max; ++d) p |= static_cast<std::uint32_t>(reach[static_cast<std::size_t>(d)]) << (8 * d);
    return p;
  }
  /// Returns what covers both.
  static halo larger(std::uint32_t packed, const halo&);
  /// Returns how far a view reaches beyond the tile that lies inside of it.
  static halo between(const logic::box4& view, const logic::box4& tile);
  bool covers(const halo&) const;
};

/// The memory of one tile: rows that are longer than the tile's, and rows before and behind. A window that contains the
/// tile is shown there: its rim is copied into the room, its inside stays where it is. Tasks that read the same
/// window at the same time share the rim; others have to make a copy of the window, as if there were no room.
///
/// Threads: `show` and `leave` any; nobody writes the tile, or what the rim is copied from, between the two.
class tile_room {
 public:
  /// Throws error(out_of_memory).
  tile_room(runtime_state&, const array_core&, const logic::box4& tile, const halo&);
  ~tile_room();
  tile_room(const tile_room&) = delete;
  tile_room& operator=(const tile_room&) = delete;

  /// The tile's first element.
  std::byte* data() const { return data_; }
  /// Distances between neighbours, in elements.
  const std::array<index_t, rank_max>& stride() const { return stride_; }
  /// Bytes allocated.
  std::size_t bytes() const { return bytes_; }
  const halo& reach() const { return reach_; }
  /// Returns the element of the tile or of the room around it at these coordinates of the array.
  std::byte* element(const logic::point4& p) const;

  /// Has the rim of a view of the array copied here by `fill()`, unless it is there, and returns true: it stays until
  /// `leave`. False: another view is shown, or another thread is about to show one. Passes on what `fill` throws; then
  /// nothing is shown. The array is that of the tile, or a stand-in whose tile it is for a while.
  template <class F>
  bool show(const array_core& a, const region& r, const logic::box4& view, F&& fill) {
    const std::unique_lock hold(lock_, std::try_to_lock);
    if (!hold) return false;
    if (users_ != 0) {
      if (!shows(a, r, view)) return false;
    } else {
      fill();
      note(a, r, view);
    }
    ++users_;
    return true;
  }
  void leave() noexcept {
    const std::lock_guard hold(lock_);
    --users_;
  }

 private:
  bool shows(const array_core&, const region&, const logic::box4& view) const;
  void note(const array_core&, const region&, const logic::box4& view);

  runtime_state& rt_;
  const std::size_t element_;
  const logic::box4 tile_;
  const halo reach_;
  std::array<index_t, rank_max> stride_{};
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* data_ = nullptr;

  std::mutex lock_;
  int users_ = 0;
  const array_core* of_ = nullptr;
  logic::box4 view_, limit_;  // what is shown, while there are users
  border edge_ = border::clip;
  std::array<std::byte, fill_bytes_max> constant_{};
};

}  // namespace troupe::detail
