// What this file is for: the memory in which all tiles of an array have their places.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/contiguous_tiles.hpp"

#include <sys/mman.h>

#include <cstdint>

#include <troupe/view.hpp>

#include "actors/memory/runtime_state.hpp"

namespace troupe::detail {

namespace {

constexpr std::uintptr_t page = 4096;

std::size_t bytes_of_all(const array_core& a) {
  return static_cast<std::size_t>(a.whole_box().volume()) * a.spec.element;
}

// Returns memory for all tiles; null: there is none. Where devices gain by pinned tiles it is pinned or none at all: the
// limit of what is pinned may have room for some of the tiles.
std::byte* new_piece(runtime_state& rt, std::size_t bytes) noexcept {
  try {
    if (rt.tiles && rt.tiles->pins()) return rt.tiles->allocate_pinned(bytes);
    return rt.host->allocate(bytes, element_align_max);
  } catch (...) {
    return nullptr;
  }
}

void give_back(runtime_state& rt, std::byte* piece, std::size_t bytes) noexcept {
  rt.tiles ? rt.tiles->deallocate(piece, bytes) : rt.host->deallocate(piece, bytes, element_align_max);
}

}  // namespace

bool could_be_contiguous(const array_core& a) {
  if (a.tile_count == 1 || a.spec.adopted || a.tile_bytes_max % element_align_max != 0) return false;
  int cut = 0;
  while (cut < rank_max && a.grid[cut] == 1) {
    if (a.spec.size[cut] != 1) return false;
    ++cut;
  }
  for (int d = cut + 1; d < rank_max; ++d)
    if (a.grid[d] != 1) return false;
  return true;
}

std::byte* place_of(runtime_state& rt, array_core& a, std::uint32_t tile) noexcept {
  if (!a.contiguous.load(std::memory_order_relaxed)) return nullptr;
  if (a.stays_packed.load(std::memory_order_relaxed) && !a.missed.load(std::memory_order_relaxed)) return nullptr;
  std::byte* piece = a.piece.load(std::memory_order_acquire);
  if (!piece) {
    std::byte* const fresh = new_piece(rt, bytes_of_all(a));
    if (!fresh) {
      a.contiguous.store(false, std::memory_order_relaxed);
      return nullptr;
    }
    if (a.piece.compare_exchange_strong(piece, fresh, std::memory_order_acq_rel))
      piece = fresh;
    else
      give_back(rt, fresh, bytes_of_all(a));
  }
  return piece + tile * a.tile_bytes_max;
}

bool is_in_place(const array_core& a, std::uint32_t tile, const std::byte* bytes) {
  const std::byte* const piece = a.piece.load(std::memory_order_acquire);
  return piece && bytes == piece + tile * a.tile_bytes_max;
}

void vacate(runtime_state& rt, array_core& a, std::uint32_t tile) noexcept {
  if (rt.tiles && rt.tiles->pins()) return;  // a driver holds on to the pages
  const auto begin =
      reinterpret_cast<std::uintptr_t>(a.piece.load(std::memory_order_acquire)) + tile * a.tile_bytes_max;
  const std::uintptr_t first = (begin + page - 1) / page * page, end = (begin + a.bytes_of(tile)) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

void free_piece(runtime_state& rt, array_core& a) noexcept {
  if (std::byte* const piece = a.piece.exchange(nullptr, std::memory_order_acq_rel))
    give_back(rt, piece, bytes_of_all(a));
}

}  // namespace troupe::detail
