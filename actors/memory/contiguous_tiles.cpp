// What this file is for: the memory in which all tiles of an array have their places.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/contiguous_tiles.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>

#include <troupe/view.hpp>

#include "actors/memory/host_tiles.hpp"
#include "actors/memory/large_pages.hpp"
#include "actors/memory/runtime_state.hpp"

namespace troupe::detail {

namespace {

std::size_t bytes_of_all(const array_core& a) {
  return static_cast<std::size_t>(a.whole_box().volume()) * a.spec.element;
}

// Larger pieces are mapped, as allocators keep what is freed of such sizes in each thread's share of the heap: hundreds
// of MiB were left of a loop that made arrays and dropped them.
constexpr std::size_t allocated_max = std::size_t{1} << 20;

// Smaller tiles would each make a large page resident.
bool wants_large_pages(const array_core& a) {
  return a.tile_bytes_max >= large_page / 2 && is_worth_large_pages(bytes_of_all(a));
}

bool pins(const runtime_state& rt) { return rt.tiles && rt.tiles->pins(); }

// Returns memory for all tiles; null: there is none. Where devices gain by pinned tiles it is pinned or none at all:
// the limit of what is pinned may have room for some of the tiles.
std::byte* new_piece(runtime_state& rt, array_core& a) noexcept {
  const std::size_t bytes = bytes_of_all(a);
  a.piece_mapped = !pins(rt) && bytes > allocated_max;
  if (a.piece_mapped) return map_memory(bytes, wants_large_pages(a));
  try {
    return pins(rt) ? rt.tiles->allocate_pinned(bytes) : rt.host->allocate(bytes, element_align_max);
  } catch (...) {
    return nullptr;
  }
}

void give_back_piece(runtime_state& rt, const array_core& a, std::byte* piece) noexcept {
  const std::size_t bytes = bytes_of_all(a);
  if (a.piece_mapped)
    ::munmap(piece, bytes);
  else
    give_back_bytes(rt, piece, bytes);
}

// Gives back the pages that only a place lies on.
void give_back_pages(std::byte* place, std::size_t bytes) noexcept {
  const std::size_t page = page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(place);
  const std::uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

std::mutex& lock_of(runtime_state& rt, const array_core& a) { return rt.pieces[a.id % rt.pieces.size()]; }

}  // namespace

placing first_placing(const runtime_state& rt, const array_core& a) {
  if (rt.bounded || a.tile_count == 1 || a.spec.adopted || a.tile_bytes_max % element_align_max != 0)
    return placing::never;
  int cut = 0;
  while (cut < rank_max && a.grid[cut] == 1) {
    if (a.spec.size[cut] != 1) return placing::never;
    ++cut;
  }
  for (int d = cut + 1; d < rank_max; ++d)
    if (a.grid[d] != 1) return placing::never;
  return pins(rt) ? placing::if_missed : placing::always;
}

std::byte* take_place(runtime_state& rt, array_core& a, std::uint32_t tile) noexcept {
  if (a.places.load(std::memory_order_relaxed) != placing::always) return nullptr;
  const std::lock_guard hold(lock_of(rt, a));
  std::byte* piece = a.piece.load(std::memory_order_relaxed);
  if (!piece) {
    piece = new_piece(rt, a);
    if (!piece) {
      a.places.store(placing::never, std::memory_order_relaxed);  // it is not asked for again with every tile
      return nullptr;
    }
    a.piece.store(piece, std::memory_order_release);
  }
  ++a.in_place;
  return piece + tile * a.tile_bytes_max;
}

void leave_place(runtime_state& rt, array_core& a, std::uint32_t tile, const std::byte* now) noexcept {
  const std::lock_guard hold(lock_of(rt, a));
  std::byte* const piece = a.piece.load(std::memory_order_relaxed);
  std::byte* const place = piece + tile * a.tile_bytes_max;
  if (--a.in_place == 0) {
    a.piece.store(nullptr, std::memory_order_release);
    give_back_piece(rt, a, piece);
  } else if (now != place && !pins(rt)) {  // pinned pages stay: a driver holds on to them
    give_back_pages(place, a.bytes_of(tile));
  }
}

bool is_in_place(const array_core& a, std::uint32_t tile, const std::byte* bytes) {
  const std::byte* const piece = a.piece.load(std::memory_order_acquire);
  return piece && bytes == piece + tile * a.tile_bytes_max;
}

void free_piece(runtime_state& rt, array_core& a) noexcept {
  if (std::byte* const piece = a.piece.exchange(nullptr, std::memory_order_acq_rel)) give_back_piece(rt, a, piece);
}

}  // namespace troupe::detail
