// What this file is for: sizes of pages, and large ones for memory that is so large that it is mapped anew each time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace troupe::detail {

inline constexpr std::size_t large_page = std::size_t{2} << 20;

/// Returns the size of the system's usual pages.
inline std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// Has memory come in large pages where the system gives them to those who ask, if it is larger than what allocators
/// keep for later: to touch it first would take as long as to compute with it. Not for memory that is used in parts
/// much smaller than a large page, as each page becomes resident as a whole.
inline void use_large_pages(std::byte* memory, std::size_t bytes) noexcept {
  constexpr std::size_t least = std::size_t{32} << 20;
  if (bytes < least) return;
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (at + large_page - 1) / large_page * large_page;
  const std::uintptr_t end = (at + bytes) / large_page * large_page;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace troupe::detail
