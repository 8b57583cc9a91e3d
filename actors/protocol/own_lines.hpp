// What this file is for: memory for what many threads read, on cache lines that nothing else is on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <new>

namespace troupe::detail {

/// An allocator of whole cache lines, for containers that every thread reads all the time. A small block of malloc
/// shares its line with whatever was allocated before and after it; if a thread writes that, each reader waits for the
/// line at each look. (A list of one executor, read once for each task submitted, made submitting a third slower.)
template <class T>
struct own_lines {
  using value_type = T;
  /// Lines are fetched in pairs.
  static constexpr std::size_t line = 128;

  own_lines() = default;
  template <class U>
  own_lines(const own_lines<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new (whole(n), std::align_val_t{line})); }
  void deallocate(T* p, std::size_t n) noexcept { ::operator delete (p, whole(n), std::align_val_t{line}); }
  bool operator==(const own_lines&) const { return true; }

 private:
  static std::size_t whole(std::size_t n) { return (n * sizeof(T) + line - 1) / line * line; }
};

}  // namespace troupe::detail
