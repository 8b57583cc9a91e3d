// What this file is for: double mapping, first fit, gaps with a pattern, fills that make wrong reads visible.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sim/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace troupe::soft_gpu {

namespace {

constexpr std::size_t unit = 256;
constexpr int fresh = 0xFF, freed = 0xDB, gap = 0xA5;

}  // namespace

device_memory::device_memory(std::size_t capacity) {
  // Gaps and fragments need addresses of their own, so that a request for the whole capacity can succeed. Pages that
  // nobody touches cost nothing.
  const std::size_t span = 2 * capacity + (std::size_t{1} << 20);
  const int file = ::memfd_create("troupe-sim", MFD_CLOEXEC);
  if (file < 0) return;
  if (::ftruncate(file, static_cast<off_t>(span)) == 0) {
    void* va = ::mmap(nullptr, span, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    void* alias = ::mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (va != MAP_FAILED && alias != MAP_FAILED) {
      va_ = static_cast<std::byte*>(va);
      alias_ = static_cast<std::byte*>(alias);
      capacity_ = capacity;
      span_ = span;
      holes_.emplace(0, span);
    } else {
      if (va != MAP_FAILED) ::munmap(va, span);
      if (alias != MAP_FAILED) ::munmap(alias, span);
    }
  }
  ::close(file);
}

device_memory::~device_memory() {
  if (!va_) return;
  ::munmap(va_, span_);
  ::munmap(alias_, span_);
}

device_memory::lease device_memory::lease_of(std::size_t offset, const block& b) const {
  return {va_ + offset, b.size, b.requested, b.id};
}

std::optional<device_memory::lease> device_memory::reserve(std::size_t bytes, const void* stream) {
  if (bytes > capacity_) return {};
  const std::size_t size = (bytes + unit - 1) / unit * unit;
  const std::lock_guard lock(mutex_);
  if (used_ + size <= capacity_) {
    const auto hole = std::ranges::find_if(holes_, [&](const auto& h) { return h.second >= size + unit; });
    if (hole != holes_.end()) {
      const auto [offset, room] = *hole;
      holes_.erase(hole);
      if (room > size + unit) holes_.emplace(offset + size + unit, room - size - unit);
      used_ += size;
      const auto at = blocks_.emplace(offset, block{size, bytes, ++ids_, false, nullptr}).first;
      return lease_of(offset, at->second);
    }
  }
  const auto again = std::ranges::find_if(blocks_, [&](const auto& b) {
    return b.second.retired && b.second.stream == stream && stream && b.second.size >= size;
  });
  if (again == blocks_.end()) return {};
  again->second = {again->second.size, bytes, ++ids_, false, nullptr};
  return lease_of(again->first, again->second);
}

void device_memory::prepare(const lease& l) const {
  std::byte* at = alias(l.address);
  std::memset(at, fresh, l.requested);
  std::memset(at + l.requested, gap, l.size - l.requested + unit);
}

std::optional<device_memory::lease> device_memory::retire(void* p, const void* stream) {
  if (!contains(p)) return {};
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(p) - va_);
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(offset);
  if (at == blocks_.end() || at->second.retired) return {};
  at->second.retired = true;
  at->second.stream = stream;
  return lease_of(offset, at->second);
}

bool device_memory::release(const lease& l) {
  std::byte* at = alias(l.address);
  const bool intact =
      std::all_of(at + l.requested, at + l.size + unit, [](std::byte b) { return b == static_cast<std::byte>(gap); });
  std::memset(at, freed, l.size);
  const auto offset = static_cast<std::size_t>(at - alias_);
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(offset);
  if (found != blocks_.end() && found->second.id == l.id) {
    used_ -= found->second.size;
    blocks_.erase(found);
    give_back(offset, l.size + unit);
  }
  return intact;
}

void device_memory::give_back(std::size_t offset, std::size_t size) {
  const auto next = holes_.upper_bound(offset);
  if (next != holes_.end() && next->first == offset + size) {
    size += next->second;
    holes_.erase(next);
  }
  const auto after = holes_.upper_bound(offset);
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  holes_.emplace(offset, size);
}

void device_memory::release_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [offset, b] : blocks_) std::memset(alias_ + offset, freed, b.size);
  blocks_.clear();
  holes_.clear();
  if (span_) holes_.emplace(0, span_);
  used_ = 0;
}

bool device_memory::contains(const void* p) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(p), begin = reinterpret_cast<std::uintptr_t>(va_);
  return va_ && at >= begin && at - begin < span_;
}

std::byte* device_memory::alias(const void* p) const noexcept {
  return alias_ + (static_cast<const std::byte*>(p) - va_);
}

bool device_memory::live(const void* p, std::size_t bytes) const {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - va_);
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(offset);
  if (after == blocks_.begin()) return false;
  const auto& [begin, b] = *std::prev(after);
  return !b.retired && offset - begin <= b.requested && bytes <= b.requested - (offset - begin);
}

std::size_t device_memory::live_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(blocks_, [](const auto& b) { return !b.second.retired; }));
}

std::size_t device_memory::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace troupe::soft_gpu
