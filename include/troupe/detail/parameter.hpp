// What this file is for: what a kernel's signature says of each parameter.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include <troupe/access.hpp>
#include <troupe/detail/task.hpp>
#include <troupe/view.hpp>

namespace troupe {

template <class T, int N>
struct in;
template <class T, int N>
struct out;
template <class T, int N>
struct inout;
template <class T, int N>
struct red;

namespace detail {

template <class T, int N>
void give(argument_sink& to, const view<T, N>& v) {
  to.array(v.raw(), N, sizeof(T));
}
template <class T>
void give(argument_sink& to, const T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) to.value(&value, sizeof(T));
}

template <class P>
struct parameter {
  using type = P;  // a scalar
  static constexpr int mode = -1;
};
template <class T, int N>
struct parameter<in<T, N>> {
  using type = view<const T, N>;
  static constexpr int mode = static_cast<int>(access_mode::read);
};
template <class T, int N>
struct parameter<out<T, N>> {
  using type = view<T, N>;
  static constexpr int mode = static_cast<int>(access_mode::write);
};
template <class T, int N>
struct parameter<inout<T, N>> {
  using type = view<T, N>;
  static constexpr int mode = static_cast<int>(access_mode::update);
};
template <class T, int N>
struct parameter<red<T, N>> {
  using type = view<T, N>;
  static constexpr int mode = static_cast<int>(access_mode::reduce);
};

/// An array, or a value that means the same in another process.
template <class T>
inline constexpr bool may_travel =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T>;

template <class P>
inline constexpr int rank_of = 0;  // of no array
template <class T, int N>
inline constexpr int rank_of<in<T, N>> = N;
template <class T, int N>
inline constexpr int rank_of<out<T, N>> = N;
template <class T, int N>
inline constexpr int rank_of<inout<T, N>> = N;
template <class T, int N>
inline constexpr int rank_of<red<T, N>> = N;

constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t h = 1469598103934665603ull) {
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

}  // namespace detail

}  // namespace troupe
