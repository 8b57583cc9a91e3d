// What this file is for: versions of tiles are copied home while nodes go on with them, so that less is lost with a
// node.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The log says which tiles (logic/lineage). The node sends what the tile holds after the tasks that it has been sent by
// then; later tasks do not wait. The version arrives in memory of its own, which takes the place of the host's bytes of
// the tile: these are of an older version, and only the log needs them.
#include <algorithm>

#include "actors/logic/data/directory.hpp"
#include "actors/placement/placement.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {
// Bytes of tiles that each node is asked to save at a time.
constexpr std::uint64_t save_bytes = 64u << 20;
}  // namespace

// Collects the tiles that the log wants saved; leave_and_tell asks the nodes for them once the turn has been left.
void placement::save_some() {
  for (const auto& [id, tile] : log_->to_save(save_bytes)) {
    const auto known = logged_.find(id);
    if (known == logged_.end() || !known->second->keep()) {
      log_->not_saved(id, tile);
      continue;
    }
    notifications_.add_save(*known->second, tile);
  }
}

// Replaces the host's version of a tile by one that a node has saved. Drops it if the tile is being transferred
// otherwise, or the log does not need it any more, or under a budget there is no room: a tile that is current elsewhere
// keeps its room, unless it is leaving.
void placement::take_home(memory_space from, saved_tile& s) {
  array_core& a = *s.array;
  tile_home& home = a.homes->tiles[s.tile];
  const bool has_room = !host_memory_ || host_memory::keeps_room(a, s.tile);
  if (!has_room || home.dirty_in != from || deps_.alive(home.moving) || !log_->is_wanted({a.id, s.tile, s.version})) {
    log_->not_saved(a.id, s.tile);
    return;
  }
  put_aside(a, s.tile, true);
  if (a.spec.adopted) {
    const std::byte* bytes = s.bytes.get();
    for (const auto& row : rows_of(link_, a, s.tile, a.tile_box(s.tile), true)) {
      std::copy_n(bytes, row.size(), row.data());
      bytes += row.size();
    }
  } else {
    exchange_host_tile(link_, a, s.tile, std::move(s.bytes));
  }
  log_->leaves_home(a.id, s.tile);
  log_->came_home(a.id, s.tile, s.version);
  drop_unwanted();
  if (home.version.load(std::memory_order_relaxed) == s.version) home.dirty_in = host_space;
}

void placement::report_saved(const executor& e, std::uint64_t times, std::span<saved_tile> all) {
  with_turn([&] {
    for (saved_tile& s : all)
      if (times == joined_[e.facts().id])
        take_home(e.facts().space, s);
      else
        log_->not_saved(s.array->id, s.tile);
    save_some();
  });
}

void placement::report_not_saved(std::span<const std::pair<array_core*, std::uint32_t>> all) {
  with_turn([&] {
    for (const auto& [a, tile] : all) log_->not_saved(a->id, tile, false);  // not at once again: most are in error
  });
}

}  // namespace troupe::detail
