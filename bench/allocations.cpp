// Counts heap allocations by standing in front of glibc's malloc for the whole process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Why not only operator new: half of the peers are C and call malloc. Why not __malloc_hook: glibc removed it.
// The count costs about a nanosecond: one slot per thread, no shared cache line.
#include "allocations.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

namespace bench {
std::uint64_t allocations() { return 0; }
bool allocations_counted() { return false; }
}  // namespace bench

#else

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

struct alignas(64) slot {
  std::atomic<std::uint64_t> count{0};
};
// Threads share a slot only when 4096 others started between them; a rare lost count is the price of no lock prefix.
constinit std::array<slot, 4096> slots{};
constinit std::atomic<std::uint32_t> slots_given{0};
constinit thread_local std::uint32_t my_slot = UINT32_MAX;  // constant initialisation: no allocation behind it

inline void count_one() {
  if (my_slot == UINT32_MAX) my_slot = slots_given.fetch_add(1, std::memory_order_relaxed) % slots.size();
  auto& count = slots[my_slot].count;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept {
  count_one();
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  count_one();
  return __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) noexcept {
  count_one();
  return __libc_realloc(old, size);
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  count_one();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count_one();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  count_one();
  void* block = __libc_memalign(alignment, size);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

void free(void* block) noexcept { __libc_free(block); }

}  // extern "C"

namespace bench {

std::uint64_t allocations() {
  std::uint64_t total = 0;
  for (const auto& slot : slots) total += slot.count.load(std::memory_order_relaxed);
  return total;
}

bool allocations_counted() { return true; }

}  // namespace bench

#endif
