// What this file is for: finding and making the host bytes of tiles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/host_tiles.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "actors/memory/contiguous_tiles.hpp"
#include "actors/memory/large_pages.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/memory/tile_room.hpp"

namespace troupe::detail {

using logic::box4;

std::array<index_t, rank_max> host_strides(const array_core& a, std::uint32_t tile) {
  if (const tile_room* const room = a.bytes[tile].room.load(std::memory_order_acquire)) return room->stride();
  const box4 tile_box = a.tile_box(tile);
  std::array<index_t, rank_max> s;
  index_t step = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    s[d] = step;
    step *= a.spec.adopted ? a.spec.size[d] : tile_box.size(d);
  }
  return s;
}

std::array<index_t, rank_max> packed_strides(const box4& b) {
  std::array<index_t, rank_max> s;
  index_t step = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    s[d] = step;
    step *= b.size(d);
  }
  return s;
}

std::byte* new_tile_bytes(runtime_state& rt, std::size_t bytes) {
  std::byte* const p = rt.tiles ? rt.tiles->allocate(bytes) : rt.host->allocate(bytes, element_align_max);
  if (is_worth_large_pages(bytes)) use_large_pages(p, bytes);
  return p;
}

namespace {
void count_bytes(runtime_state& rt, std::size_t bytes) {
  const std::size_t now = rt.array_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t most = rt.array_bytes_max.load(std::memory_order_relaxed);
  while (now > most && !rt.array_bytes_max.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}
}  // namespace

void give_back_bytes(runtime_state& rt, std::byte* p, std::size_t bytes) noexcept {
  rt.tiles ? rt.tiles->deallocate(p, bytes) : rt.host->deallocate(p, bytes, element_align_max);
}

std::byte* host_tile(runtime_state& rt, array_core& a, std::uint32_t t, bool overwritten) {
  std::atomic<std::byte*>& slot = a.bytes[t].data;
  if (std::byte* p = slot.load(std::memory_order_acquire)) return p;
  const box4 b = a.tile_box(t);
  if (a.spec.adopted) {
    index_t offset = 0, step = 1;
    for (int d = rank_max - 1; d >= 0; --d) {
      offset += b.lo[d] * step;
      step *= a.spec.size[d];
    }
    auto* p = static_cast<std::byte*>(a.spec.adopted) + static_cast<std::size_t>(offset) * a.spec.element;
    slot.store(p, std::memory_order_release);
    return p;
  }
  std::byte* const place = take_place(rt, a, t);
  std::unique_lock<std::mutex> hold;
  if (rt.bounded || (place && a.spec.fill)) {
    hold = std::unique_lock(rt.makers[(a.id + t) % rt.makers.size()]);
    if (std::byte* p = slot.load(std::memory_order_acquire)) {
      if (place) leave_place(rt, a, t, p);
      return p;
    }
  }
  const auto count = static_cast<std::size_t>(b.volume());
  const std::size_t bytes = count * a.spec.element;
  std::byte* const fresh = place ? place : new_tile_bytes(rt, bytes);
  if (a.spec.fill && !overwritten)
    rt.host->fill(fresh, static_cast<const std::byte*>(a.spec.fill), a.spec.element, count);
  std::byte* expected = nullptr;
  if (!slot.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) {
    place ? leave_place(rt, a, t, expected) : give_back_bytes(rt, fresh, bytes);
    return expected;
  }
  count_bytes(rt, bytes);
  return fresh;
}

void free_host_tile(runtime_state& rt, array_core& a, std::uint32_t t) noexcept { take_host_tile(rt, a, t); }

loose_bytes new_loose_bytes(runtime_state& rt, std::size_t bytes) { return {new_tile_bytes(rt, bytes), {&rt, bytes}}; }

loose_bytes take_host_tile(runtime_state& rt, array_core& a, std::uint32_t t) noexcept {
  return exchange_host_tile(rt, a, t, {});
}

loose_bytes exchange_host_tile(runtime_state& rt, array_core& a, std::uint32_t t, loose_bytes fresh) noexcept {
  const std::size_t bytes = a.bytes_of(t);
  const std::unique_ptr<tile_room> room(a.bytes[t].room.exchange(nullptr, std::memory_order_acq_rel));
  std::byte* const place = fresh ? take_place(rt, a, t) : nullptr;
  if (place) std::memcpy(place, fresh.get(), bytes);
  std::byte* const now = place ? place : fresh.release();
  std::byte* const old = a.bytes[t].data.exchange(now, std::memory_order_acq_rel);
  if (old) rt.array_bytes.fetch_sub(room ? room->bytes() : bytes, std::memory_order_relaxed);
  if (now) count_bytes(rt, bytes);
  if (old && is_in_place(a, t, old)) {
    leave_place(rt, a, t, now);
    return {nullptr, {&rt, bytes}};
  }
  return {room ? nullptr : old, {&rt, bytes}};
}

bool owns_its_bytes(const array_core& a, std::uint32_t t) {
  const std::byte* const bytes = a.bytes[t].data.load(std::memory_order_acquire);
  return bytes && !a.spec.adopted && !a.bytes[t].room.load(std::memory_order_acquire) && !is_in_place(a, t, bytes);
}

void make_room(runtime_state& rt, array_core& a, std::uint32_t t) noexcept {
  const std::uint32_t wanted = a.halo.load(std::memory_order_relaxed);
  if (wanted == 0 || a.stays_packed.load(std::memory_order_relaxed)) return;
  const halo reach = halo::of(wanted);
  const tile_room* const now = a.bytes[t].room.load(std::memory_order_acquire);
  if (now && now->reach().covers(reach)) return;
  const box4 tile = a.tile_box(t);
  double times = 1;  // as large; much where windows reach far along different dimensions
  for (int d = 0; d < rank_max; ++d)
    times *= 1 + 2 * static_cast<double>(reach.reach[static_cast<std::size_t>(d)]) / static_cast<double>(tile.size(d));
  if (times > 2) return;
  std::unique_ptr<tile_room> room;
  try {
    room = std::make_unique<tile_room>(rt, a, tile, reach);
  } catch (...) {
    return;
  }
  free_host_tile(rt, a, t);
  count_bytes(rt, room->bytes());
  a.bytes[t].data.store(room->data(), std::memory_order_release);
  a.bytes[t].room.store(room.release(), std::memory_order_release);
}

void move_to_place(runtime_state& rt, array_core& a, std::uint32_t t) noexcept {
  if (a.places.load(std::memory_order_relaxed) != placing::always || !owns_its_bytes(a, t)) return;
  std::byte* const place = take_place(rt, a, t);
  if (!place) return;
  give_back_bytes(rt, a.bytes[t].data.exchange(place, std::memory_order_acq_rel), a.bytes_of(t));
}

void free_host_tiles(runtime_state& rt, array_core& a) noexcept {
  if (a.spec.adopted) return;
  for (std::uint32_t t = 0; t < a.tile_count; ++t) {
    std::atomic<std::byte*>& data = a.bytes[t].data;
    const std::byte* const now = data.load(std::memory_order_acquire);
    if (!now) continue;
    if (is_in_place(a, t, now)) {  // freed with all others below, and not page by page
      data.store(nullptr, std::memory_order_relaxed);
      rt.array_bytes.fetch_sub(a.bytes_of(t), std::memory_order_relaxed);
    } else {
      free_host_tile(rt, a, t);
    }
  }
  free_piece(rt, a);
}

}  // namespace troupe::detail
