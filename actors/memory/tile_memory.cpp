// What this file is for: slabs: mapped, pinned, cut into tiles, given back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/tile_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "actors/memory/large_pages.hpp"

namespace troupe::detail {

namespace {

// Bounds of a slab's size, which is that of all earlier slabs together: small programs pin little, and large ones
// seldom.
constexpr std::size_t slab_min = std::size_t{4} << 20, slab_max = std::size_t{64} << 20;
constexpr std::size_t align = element_align_max;

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// Maps memory, aligned for large pages where it is large: these are pinned faster, as the driver has fewer to look at.
std::byte* map(std::size_t bytes) noexcept { return map_memory(bytes, bytes >= large_page); }

}  // namespace

tile_memory::~tile_memory() {
  for (const auto& [p, s] : slabs_) ::munmap(p, s.bytes);
}

void tile_memory::pin_for(std::vector<std::unique_ptr<devices::page_pinning>> pinnings, std::uint64_t bytes_max) {
  pinnings_ = std::move(pinnings);
  wanted_ = pinnings_.empty() ? 0 : bytes_max;
  limit_ = wanted_;
}

// ---- tiles ----------------------------------------------------------------------------------------------------------

std::byte* tile_memory::allocate(std::size_t bytes) {
  if (std::byte* p = allocate_pinned(bytes)) return p;
  return host_.allocate(bytes, align);
}

std::byte* tile_memory::allocate_pinned(std::size_t bytes) {
  if (limit_.load(std::memory_order_relaxed) == 0 || bytes == 0) return nullptr;
  if (std::byte* p = take(bytes)) return p;
  const std::lock_guard one(growing_);
  if (std::byte* p = take(bytes)) return p;  // another thread has added a slab
  return grow(bytes) ? take(bytes) : nullptr;
}

void tile_memory::deallocate(std::byte* p, std::size_t bytes) noexcept {
  std::unique_lock hold(lock_);
  const auto after = slabs_.upper_bound(p);
  if (after != slabs_.begin()) {
    const auto& [begin, s] = *std::prev(after);
    if (p < begin + s.bytes) {
      slab& in = std::prev(after)->second;
      in.used.give(static_cast<std::uint64_t>(p - begin), bytes);
      --in.tiles;
      return;
    }
  }
  hold.unlock();
  host_.deallocate(p, bytes, align);
}

// Takes bytes from a slab with room; null: none has any.
std::byte* tile_memory::take(std::size_t bytes) {
  const std::lock_guard hold(lock_);
  for (auto& [begin, s] : slabs_) {
    if (s.bytes - s.used.used() < bytes) continue;
    const std::uint64_t at = s.used.take(bytes);
    if (s.used.end() <= s.bytes) {
      ++s.tiles;
      return begin + at;
    }
    s.used.give(at, bytes);
  }
  return nullptr;
}

// ---- slabs: with growing_ held --------------------------------------------------------------------------------------

bool tile_memory::grow(std::size_t bytes) {
  const std::size_t least = rounded(bytes, page_size());
  if (least < bytes) return false;
  if (room() < least) give_back(take_empty());
  if (room() < least) return false;
  const auto usual = std::clamp<std::size_t>(pinned_bytes(), slab_min, slab_max);
  const auto size = std::max<std::size_t>(least, std::min<std::uint64_t>(usual, room() / page_size() * page_size()));
  std::byte* const p = make_slab(size);
  if (!p) return false;
  const std::lock_guard hold(lock_);
  slabs_.try_emplace(p, size);
  return true;
}

// Maps a slab and pins it for the devices that can; null if none can.
std::byte* tile_memory::make_slab(std::size_t bytes) noexcept {
  std::byte* const p = map(bytes);
  if (!p) return nullptr;
  bool any = false;
  for (const auto& pinning : pinnings_) any = pinning->pin(p, bytes) != devices::page_pinning::outcome::refused || any;
  if (any) {
    pinned_ += bytes;
    return p;
  }
  limit_ = pinned_.load();  // the driver gives no more: it is not asked again for every tile
  ::munmap(p, bytes);
  return nullptr;
}

tile_memory::slabs tile_memory::take_empty() noexcept {
  slabs empty;
  const std::lock_guard hold(lock_);
  for (auto s = slabs_.begin(); s != slabs_.end();) {
    const auto one = s++;
    if (one->second.tiles == 0) empty.insert(slabs_.extract(one));
  }
  return empty;
}

void tile_memory::give_back(slabs empty) noexcept {
  for (const auto& [p, s] : empty) {
    for (const auto& pinning : pinnings_) pinning->unpin(p);
    ::munmap(p, s.bytes);
    pinned_ -= s.bytes;
  }
}

// Unpins after growing_ is free again: the driver may wait for the device, and no allocation is to wait for that.
void tile_memory::tidy() noexcept {
  std::unique_lock one(growing_);
  slabs empty = take_empty();
  one.unlock();
  give_back(std::move(empty));
}

void tile_memory::pin_again() {
  {
    const std::lock_guard one(growing_);
    std::vector<std::pair<std::byte*, std::size_t>> all;
    {
      const std::lock_guard hold(lock_);
      for (const auto& [p, s] : slabs_) all.emplace_back(p, s.bytes);
    }
    for (const auto& [p, bytes] : all)
      for (const auto& pinning : pinnings_) pinning->pin(p, bytes);
    limit_ = wanted_;
  }
  const std::lock_guard hold(outside_lock_);
  for (const auto& [number, o] : outside_)
    for (auto* const pinning : o.by) pinning->pin(o.begin, o.bytes);
}

void tile_memory::unpin_all() noexcept {
  const std::scoped_lock both(growing_, outside_lock_);
  limit_ = wanted_ = 0;
  give_back(take_empty());
  for (const auto& [number, o] : outside_)
    for (auto* const pinning : o.by) pinning->unpin(o.begin);
  outside_.clear();
  const std::lock_guard hold(lock_);
  for (const auto& [p, s] : slabs_)
    for (const auto& pinning : pinnings_) pinning->unpin(p);
  pinnings_.clear();
  pinned_ = 0;
}

// ---- memory of others -----------------------------------------------------------------------------------------------

std::pair<unsigned long, bool> tile_memory::pin_outside(std::byte* p, std::size_t bytes) {
  if (bytes == 0) return {0, false};
  const std::lock_guard hold(outside_lock_);
  outside o{p, bytes, {}};
  o.by.reserve(pinnings_.size());
  const auto at = outside_.try_emplace(outside_ever_ + 1, std::move(o)).first;  // allocates before anything is pinned
  bool gains = false;
  for (const auto& pinning : pinnings_) {
    const auto outcome = pinning->pin(p, bytes);
    gains = gains || outcome != devices::page_pinning::outcome::refused;
    if (outcome == devices::page_pinning::outcome::pinned) at->second.by.push_back(pinning.get());
  }
  if (!at->second.by.empty()) return {++outside_ever_, gains};
  outside_.erase(at);
  return {0, gains};
}

void tile_memory::unpin_outside(unsigned long number) noexcept {
  const std::lock_guard hold(outside_lock_);
  const auto at = outside_.find(number);
  if (at == outside_.end()) return;  // the devices are gone
  for (auto* const pinning : at->second.by) pinning->unpin(at->second.begin);
  outside_.erase(at);
}

}  // namespace troupe::detail
