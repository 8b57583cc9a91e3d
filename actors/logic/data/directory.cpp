// What this file is for: keeping account of copies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/directory.hpp"

#include "actors/logic/data/assembly.hpp"

namespace troupe::logic {

namespace {
// Calls f(tile, number of its elements that are read, number of its elements).
template <class F>
void each_part_of(const access& x, F&& f) {
  each_touched(*x.where, [&](const box4& b) {
    x.array->each_tile(b, [&](std::uint32_t t, const box4& tb) {
      f(t, static_cast<std::uint64_t>(intersect(b, tb).volume()), static_cast<std::uint64_t>(tb.volume()));
    });
  });
}

bool is_changed(const access& x) { return is_whole(x) && x.mode == access_mode::update; }

// True if nothing is left of what was in the tile once the task has ended well.
bool is_overwritten(const access& x, std::uint32_t tile) {
  if (x.mode != access_mode::write) return false;
  if (is_whole(x)) return true;
  const box4 all = x.array->tile_box(tile);
  index_t written = 0;
  each_touched(*x.where, [&](const box4& b) {
    if (overlap(b, all)) written += intersect(b, all).volume();
  });
  return written == all.volume();
}

// True if elements beyond an edge repeat those at the edge.
bool has_repeated_border(const detail::region& r) {
  return r.edge == border::clamp && !box4{r.limit_lo, r.limit_hi}.contains(box4{r.lo, r.hi});
}
}  // namespace

std::uint64_t parts_read(const task_record& t, const array_core& a, std::uint32_t tile, bool on_device,
                         std::vector<box4>* parts) {
  // The caller's memory is current while the caller holds a view of it.
  const bool for_host = t.kind == detail::task_kind::host_access && !a.spec.adopted;
  const bool for_cores = t.kind == detail::task_kind::graph_run && !on_device;
  if (t.kind != detail::task_kind::call && !for_host && !for_cores) return 0;
  if (parts) parts->clear();
  const box4 whole = a.tile_box(tile);
  std::uint64_t read = 0;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (x.array != &a) continue;
    if (is_whole(x)) {
      if (x.tile == tile) return 0;
      continue;
    }
    bool touches = false;
    each_touched(*x.where, [&](const box4& b) {
      const box4 part = intersect(b, whole);
      if (part.empty()) return;
      touches = true;
      read += static_cast<std::uint64_t>(part.volume());
      if (parts) parts->push_back(part);
    });
    if (touches && (x.mode != access_mode::read || (on_device && has_repeated_border(*x.where)))) return 0;
  }
  return fetches_whole(read, static_cast<std::uint64_t>(whole.volume())) ? 0 : read;
}

std::uint64_t bytes_missing(const task_record& t, memory_space where, sources& from) {
  std::uint64_t bytes = 0;
  const auto add = [&](const coherence_entry* entry, std::uint64_t n) {
    bytes += n;
    from.add(entry && from.reaches(entry->dirty_in) ? entry->dirty_in : host_space, n);
  };
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    const bool needs_contents = x.mode != access_mode::write;
    if (where == host_space) {
      if (!x.array->coherence || !needs_contents) continue;
      if (!is_whole(x) && x.mode == access_mode::read) {
        each_part_of(x, [&](std::uint32_t tile, std::uint64_t part, std::uint64_t whole) {
          if (x.array->coherence->tiles[tile].dirty_in != host_space)
            bytes += (fetches_whole(part, whole) ? whole : part) * x.array->spec.element;
        });
        continue;
      }
      each_tile_of(x, [&](std::uint32_t tile) {
        if (x.array->coherence->tiles[tile].dirty_in == host_space) return;
        bytes += x.array->bytes_of(tile);
        if (is_changed(x)) from.add_changed(x.array->bytes_of(tile));
      });
      continue;
    }
    if (is_whole(x)) {
      if (!needs_contents) continue;
      const coherence_entry* entry = x.array->coherence ? &x.array->coherence->tiles[x.tile] : nullptr;
      if (entry && entry->cached.contains(where)) continue;
      add(entry, x.array->bytes_of(x.tile));
      if (is_changed(x)) from.add_changed(x.array->bytes_of(x.tile));
      continue;
    }
    if (uses_copies(x)) {
      each_part_of(x, [&](std::uint32_t tile, std::uint64_t part, std::uint64_t whole) {
        const coherence_entry* entry = x.array->coherence ? &x.array->coherence->tiles[tile] : nullptr;
        if (!entry || !entry->cached.contains(where))
          add(entry, (fetches_whole(part, whole) ? whole : part) * x.array->spec.element);
      });
      continue;
    }
    // Other accesses are assembled on the host: copied in where they are read, out where they are written.
    const auto box = static_cast<std::uint64_t>(view_box(*x.where).volume()) * x.array->spec.element;
    if (needs_contents) add(nullptr, box);
    if (writes(x) || x.mode == access_mode::reduce) add(nullptr, box);
  }
  return bytes;
}

space_set spaces_with_data_of(const task_record& t) {
  space_set spaces;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.array->coherence) continue;
    each_tile_of(x, [&](std::uint32_t tile) {
      const coherence_entry& entry = x.array->coherence->tiles[tile];
      entry.cached.add_to(spaces);
      if (entry.dirty_in != host_space && entry.dirty_in != detail::no_space) spaces.insert(entry.dirty_in);
    });
  }
  return spaces;
}

std::uint64_t bytes_at_once(const task_record& t) {
  // Returns the tile that the access is, or inside which a part is read in place; -1 where there are several or none.
  const auto tile_of = [](const access& x) {
    if (is_whole(x)) return static_cast<std::int64_t>(x.tile);
    const box4 b = view_box(*x.where);
    if (!uses_copies(x) || b.empty() || !is_plain(*x.where)) return std::int64_t{-1};
    const std::uint32_t tile = x.array->tile_at(b.lo);
    return x.array->tile_box(tile).contains(b) ? static_cast<std::int64_t>(tile) : -1;
  };
  std::uint64_t bytes = 0;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    const std::int64_t tile = tile_of(x);
    bool seen = false;  // counted with another access
    for (int k = 0; k < t.access_count && tile >= 0 && !seen; ++k) {
      const access& other = t.accesses[k];
      seen = k != i && other.array == x.array && tile_of(other) == tile && (k < i || (is_whole(other) && !is_whole(x)));
    }
    if (!seen)
      bytes += is_whole(x) ? x.array->bytes_of(x.tile)
                           : static_cast<std::uint64_t>(view_box(*x.where).volume()) * x.array->spec.element;
  }
  return bytes;
}

std::exception_ptr lost_input(const task_record& t) {
  std::exception_ptr why;
  for (int i = 0; i < t.access_count && !why; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.array->coherence) continue;
    each_tile_of(x, [&](std::uint32_t tile) {
      const std::exception_ptr& lost = x.array->coherence->tiles[tile].lost;
      if (lost && !why && !is_overwritten(x, tile)) why = lost;
    });
  }
  return why;
}

bool touches_lost(const task_record& t) {
  bool any = false;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.array->coherence) continue;
    each_tile_of(x, [&](std::uint32_t tile) { any = any || x.array->coherence->tiles[tile].lost; });
  }
  return any;
}

void note_sent(const task_record& t, memory_space where, bool parts) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    array_core& a = *x.array;
    leaves_host(a);
    a.coherence->spaces.insert(where);
    if (is_whole(x))
      a.coherence->tiles[x.tile].cached.insert(where);
    else if (uses_copies(x))
      each_part_of(x, [&](std::uint32_t tile, std::uint64_t part, std::uint64_t whole) {
        if (parts ? part == whole : fetches_whole(part, whole)) a.coherence->tiles[tile].cached.insert(where);
      });
  }
}

void note_done(const task_record& t, memory_space where) {
  // A failed task changes nothing: its outputs are not read before they are written again, and the space with a dirty
  // copy keeps it until it is asked to give it up.
  if (t.error) return;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.array->coherence || !writes(x)) continue;
    each_tile_of(x, [&](std::uint32_t tile) {
      coherence_entry& entry = x.array->coherence->tiles[tile];
      entry.version.store(entry.version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      entry.dirty_in = is_whole(x) ? where : host_space;
      if (entry.lost && (is_whole(x) || is_overwritten(x, tile))) entry.lost = nullptr;
      entry.boxes = nullptr;
      entry.cached.clear();
      if (entry.dirty_in != host_space) entry.cached.insert(where);
    });
  }
}

}  // namespace troupe::logic
