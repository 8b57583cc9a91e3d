// What this file is for: keeping account of host memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/host_budget.hpp"

#include <algorithm>

#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/region.hpp"

namespace troupe::logic {

using detail::access;

namespace {
bool writes(const access& x) { return x.mode == access_mode::write || x.mode == access_mode::update; }
}  // namespace

// ---- needs of a task ------------------------------------------------------------------------------------------------

budgeted_tile& host_budget::entry_of(array_core& a, std::uint32_t tile) {
  if (!a.budgeted) a.budgeted = std::make_unique<detail::budgeted_tiles>(a.tile_count);
  budgeted_tile& p = a.budgeted->tiles[tile];
  p.array = &a;
  p.tile = tile;
  return p;
}

void host_budget::add_needs(const task_record& t) {
  const auto add = [&](const access& x, std::uint32_t tile, bool whole) {
    budgeted_tile& p = entry_of(*x.array, tile);
    const bool contents = x.mode != access_mode::write || !whole, changed = writes(x);
    if (p.seen != seen_) {
      p.seen = seen_;
      p.index = static_cast<std::uint32_t>(needs_.size());
      needs_.push_back({&p, contents, changed});
      return;
    }
    need& n = needs_[p.index];
    n.contents = n.contents || contents;
    n.changed = n.changed || changed;
  };
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.array->spec.adopted || x.mode == access_mode::reduce) continue;
    if (!x.where) {
      add(x, x.tile, true);
      continue;
    }
    each_touched(*x.where, [&](const box4& b) {
      x.array->each_tile(
          b, [&](std::uint32_t tile, const box4& tile_box) { add(x, tile, intersect(b, tile_box) == tile_box); });
    });
  }
}

std::span<const host_budget::need> host_budget::needs_of(const task_record& t) {
  ++seen_;
  needs_.clear();
  add_needs(t);
  return needs_;
}

std::uint64_t host_budget::bytes_together(const task_record& a, const task_record& b) {
  ++seen_;
  needs_.clear();
  add_needs(a);
  add_needs(b);
  std::uint64_t bytes = 0;
  for (const need& n : needs_) bytes += bytes_of(*n.tile);
  return bytes;
}

std::uint64_t host_budget::missing(std::span<const need> needs) {
  std::uint64_t bytes = 0;
  for (const need& n : needs)
    if (is_missing(*n.tile)) bytes += bytes_of(*n.tile);
  return bytes;
}

void host_budget::reserve(std::span<const need> needs) {
  for (const need& n : needs) {
    budgeted_tile& p = *n.tile;
    if (p.at == stage::here && p.users == 0) unlist(p);
    if (p.at == stage::nowhere || p.at == stage::on_disk) {
      take_room(p);
      p.at = p.at == stage::on_disk && n.contents ? stage::coming : stage::here;
      p.trouble = nullptr;
    }
    if (!n.contents) p.saved = false;
    ++p.users;
  }
}

void host_budget::let_go(std::span<const need> needs) {
  for (const need& n : needs) {
    if (n.changed) n.tile->saved = false;
    if (--n.tile->users == 0 && n.tile->at == stage::here) list(*n.tile);
  }
}

// ---- one tile -------------------------------------------------------------------------------------------------------

bool host_budget::is_spare(const budgeted_tile& p) {
  if (p.array->coherence && p.array->coherence->tiles[p.tile].dirty_in != detail::host_space) return false;
  return p.saved || !p.array->bytes[p.tile].data.load(std::memory_order_acquire);
}

void host_budget::drop(budgeted_tile& p) {
  unlist(p);
  give_room(p);
  p.at = p.saved ? stage::on_disk : stage::nowhere;
}

void host_budget::leave(budgeted_tile& p) {
  unlist(p);
  p.at = stage::leaving;
  leaving_ += bytes_of(p);
}

void host_budget::has_left(budgeted_tile& p) {
  leaving_ -= bytes_of(p);
  give_room(p);
  p.moving = {};
  p.at = stage::on_disk;
  p.saved = true;
}

void host_budget::stay(budgeted_tile& p) {
  leaving_ -= bytes_of(p);
  p.moving = {};
  p.at = stage::here;
  p.newer = oldest_;
  p.older = nullptr;
  (oldest_ ? oldest_->older : newest_) = &p;
  oldest_ = &p;
}

void host_budget::has_come(budgeted_tile& p) {
  p.moving = {};
  p.at = stage::here;
  p.saved = true;
  if (p.users == 0) list(p);
}

void host_budget::could_not_come(budgeted_tile& p, std::exception_ptr why) {
  give_room(p);
  p.moving = {};
  p.at = stage::on_disk;
  p.trouble = std::move(why);
}

std::uint64_t host_budget::offset_on_disk(budgeted_tile& p) {
  if (p.offset < 0) p.offset = static_cast<std::int64_t>(disk_.take(bytes_of(p)));
  return static_cast<std::uint64_t>(p.offset);
}

void host_budget::take_room(budgeted_tile& p) {
  const std::uint64_t bytes = bytes_of(p);
  used_ += bytes;
  p.array->budgeted->bytes += bytes;
  if (p.array->dropped) going_ += bytes;
}

void host_budget::give_room(budgeted_tile& p) {
  const std::uint64_t bytes = bytes_of(p);
  used_ -= bytes;
  p.array->budgeted->bytes -= bytes;
  if (p.array->dropped) going_ -= bytes;
}

void host_budget::list(budgeted_tile& p) {
  p.older = newest_;
  p.newer = nullptr;
  (newest_ ? newest_->newer : oldest_) = &p;
  newest_ = &p;
}

void host_budget::unlist(budgeted_tile& p) {
  (p.older ? p.older->newer : oldest_) = p.newer;
  (p.newer ? p.newer->older : newest_) = p.older;
  p.older = p.newer = nullptr;
}

// ---- before a task is accepted --------------------------------------------------------------------------------------

std::uint64_t host_bytes_of(const task_record& t, std::uint64_t enough, const array_core*& largest) {
  std::uint64_t sum = 0, most = 0, reduced = 0, one_box = 0;
  largest = nullptr;
  const auto bytes_in = [](const array_core& a, const box4& touched) {
    box4 hull;
    for (int d = 0; d < rank_max; ++d) {
      const index_t tile = a.spec.tile[d];
      hull.lo[d] = touched.lo[d] / tile * tile;
      hull.hi[d] = std::min((touched.hi[d] + tile - 1) / tile * tile, a.spec.size[d]);
    }
    return static_cast<std::uint64_t>(hull.volume()) * a.spec.element;
  };
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.array->spec.adopted) continue;
    std::uint64_t bytes = 0;
    if (!x.where)
      bytes = x.array->bytes_of(x.tile);
    else
      each_touched(*x.where, [&](const box4& b) {
        const std::uint64_t here = bytes_in(*x.array, b);
        one_box = std::max(one_box, here);
        bytes += here;
      });
    if (bytes > most) {
      most = bytes;
      largest = x.array;
    }
    if (x.mode == access_mode::reduce)
      reduced = std::max(reduced, bytes);
    else
      sum += bytes;
  }
  if (std::max(sum, reduced) <= enough || one_box > enough) return std::max(sum, reduced);
  // The sum may count some tiles twice: count each tile once.
  std::vector<std::pair<const array_core*, std::uint32_t>> tiles;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.array->spec.adopted || x.mode == access_mode::reduce) continue;
    if (!x.where)
      tiles.emplace_back(x.array, x.tile);
    else
      each_touched(*x.where, [&](const box4& b) {
        x.array->each_tile(b, [&](std::uint32_t tile, const box4&) { tiles.emplace_back(x.array, tile); });
      });
  }
  std::sort(tiles.begin(), tiles.end());
  tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
  sum = 0;
  for (const auto& [array, tile] : tiles) sum += array->bytes_of(tile);
  return std::max(sum, reduced);
}

}  // namespace troupe::logic
