// What this file is for: mapping memory, aligned for large pages where these are wanted.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/large_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace troupe::detail {

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::byte* map_memory(std::size_t bytes, bool large) noexcept {
  const std::size_t spare = large ? large_page : 0;
  void* const got = ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* const p = static_cast<std::byte*>(got);
  if (!large) return p;
  const auto rounded = [](std::size_t n) { return (n + page_size() - 1) / page_size() * page_size(); };
  const std::size_t head = (large_page - reinterpret_cast<std::uintptr_t>(p) % large_page) % large_page;
  const std::size_t end = head + rounded(bytes), all = rounded(bytes + spare);
  if (head != 0) ::munmap(p, head);
  if (end < all) ::munmap(p + end, all - end);
  ::madvise(p + head, bytes, MADV_HUGEPAGE);
  return p + head;
}

void use_large_pages(std::byte* memory, std::size_t bytes) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (at + large_page - 1) / large_page * large_page;
  const std::uintptr_t end = (at + bytes) / large_page * large_page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace troupe::detail
