// What this file is for: memory mapped from the system, and large pages for it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace troupe::detail {

inline constexpr std::size_t large_page = std::size_t{2} << 20;

/// Returns the size of the system's usual pages.
std::size_t page_size() noexcept;
/// Maps memory, which begins with a page; null: there is none. `large`: it begins with a large page, and comes in such
/// pages where the system gives them to those who ask. Unmapped by ::munmap with the same number of bytes.
std::byte* map_memory(std::size_t bytes, bool large) noexcept;
/// True for memory that is larger than what allocators keep for later: it is mapped anew each time, and to touch it
/// first would take as long as to compute with it. Then large pages pay, but not where it is used in parts much smaller
/// than these, as each page becomes resident as a whole.
constexpr bool is_worth_large_pages(std::size_t bytes) { return bytes >= std::size_t{32} << 20; }
/// Has the large pages that lie in this memory asked for.
void use_large_pages(std::byte* memory, std::size_t bytes) noexcept;

}  // namespace troupe::detail
