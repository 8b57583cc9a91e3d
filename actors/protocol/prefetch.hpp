// What this file is for: asking for cache lines before they are needed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

namespace troupe::detail {

/// Prefetches one cache line that will be written: a plain prefetch would share it with the core that wrote it last,
/// and the write would have to ask again.
inline void prefetch_line(const char* p) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*p));  // without the flag that allows it compilers emit the plain one
#else
  __builtin_prefetch(p, 1);
#endif
}

/// Prefetches the first `Lines` cache lines at `p`. Spelt out, as compilers drop loops that only prefetch.
template <std::size_t Lines>
inline void prefetch(const void* p) noexcept {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (prefetch_line(static_cast<const char*>(p) + 64 * I), ...); }
  (std::make_index_sequence<Lines>());
}

}  // namespace troupe::detail
