// What this file is for: how many bytes an item of a stream counts as.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <ranges>
#include <type_traits>

#include <troupe/array.hpp>

namespace troupe::stream {

/// The bytes for which an item counts in bounds of edges and batches. Specialise it for types of your own that point to
/// memory: a struct that holds a vector counts as its own size otherwise. Must not throw.
template <class T>
struct item_bytes {
  static constexpr bool is_its_size = true;
  static std::size_t of(const T&) noexcept { return sizeof(T); }
};

/// Containers with their elements: strings, vectors.
template <class T>
requires std::ranges::sized_range<const T> &&(!std::is_trivially_copyable_v<T>)struct item_bytes<T> {
  static std::size_t of(const T& items) noexcept {
    using element = std::ranges::range_value_t<const T>;
    if constexpr (std::is_trivially_copyable_v<element>) {
      return sizeof(T) + std::ranges::size(items) * sizeof(element);
    } else {
      std::size_t sum = sizeof(T);
      for (const auto& x : items) sum += item_bytes<element>::of(x);
      return sum;
    }
  }
};

/// Pointers with what they point to.
template <class T>
struct item_bytes<std::unique_ptr<T>> {
  static std::size_t of(const std::unique_ptr<T>& p) noexcept { return sizeof p + (p ? item_bytes<T>::of(*p) : 0); }
};
template <class T>
struct item_bytes<std::shared_ptr<T>> {
  static std::size_t of(const std::shared_ptr<T>& p) noexcept { return sizeof p + (p ? item_bytes<T>::of(*p) : 0); }
};

/// Arrays with their elements, wherever they are.
template <class T, int N>
struct item_bytes<array<T, N>> {
  static std::size_t of(const array<T, N>& a) noexcept {
    return sizeof a + (a ? static_cast<std::size_t>(a.volume()) * sizeof(T) : 0);
  }
};

}  // namespace troupe::stream
