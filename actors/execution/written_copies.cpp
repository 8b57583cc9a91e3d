// What this file is for: boxes are copied out of their tiles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/written_copies.hpp"

#include <optional>

#include "actors/logic/data/directory.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

struct box_in_tile {
  std::uint32_t tile;
  logic::box4 where;
};

// Returns the box that an access writes and its tile; nothing if it lies in several tiles or is empty.
std::optional<box_in_tile> box_of(const access& x) {
  if (!x.array || !logic::writes(x)) return {};
  if (logic::is_whole(x)) return box_in_tile{x.tile, x.array->tile_box(x.tile)};
  const logic::box4 b = logic::view_box(*x.where);
  if (b.empty()) return {};
  const std::uint32_t tile = x.array->tile_at(b.lo);
  if (!x.array->tile_box(tile).contains(b)) return {};
  return box_in_tile{tile, b};
}

}  // namespace

std::size_t ask_for_copy(task_record& t, int access, std::size_t bytes_max) {
  const auto& x = t.accesses[access];
  const auto p = box_of(x);
  if (!p || static_cast<std::size_t>(p->where.volume()) > bytes_max / x.array->spec.element) return 0;
  t.extra->written.push_back({access, {}});
  return static_cast<std::size_t>(p->where.volume()) * x.array->spec.element;
}

void make_written_copies(runtime_state& rt, task_record& t) noexcept {
  for (written_copy& w : t.extra->written) {
    access& x = t.accesses[w.access];
    try {
      const box_in_tile p = *box_of(x);
      w.bytes.clear();
      w.bytes.reserve(static_cast<std::size_t>(p.where.volume()) * x.array->spec.element);
      for (const auto& row : rows_of(rt, *x.array, p.tile, p.where, false))
        w.bytes.insert(w.bytes.end(), row.begin(), row.end());
    } catch (...) {  // for want of memory
      w.bytes.clear();
    }
  }
}

}  // namespace troupe::detail
