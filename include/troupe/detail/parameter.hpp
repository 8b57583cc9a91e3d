// What this file is for: what a kernel's signature says of each parameter.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
template <class T, int N>
struct in_all;
template <class T, int N>
struct out_all;
template <class T, int N>
struct inout_all;

namespace detail {

/// How many arrays a list has, as it is told beside them.
using list_length = std::uint32_t;

template <class T, int N>
void give(argument_sink& to, const view<T, N>& v) {
  to.array(v.raw(), N, sizeof(T));
}
template <class T, int N>
void give(argument_sink& to, std::span<const view<T, N>> list) {
  const auto count = static_cast<list_length>(list.size());
  to.value(&count, sizeof count);
}
template <class T>
void give(argument_sink& to, std::span<const T> values) {
  if constexpr (std::is_trivially_copyable_v<T>) to.value(values.data(), values.size_bytes());
}
template <class T>
void give(argument_sink& to, const T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) to.value(&value, sizeof(T));
}

template <class T>
inline constexpr bool is_span = false;
template <class T, std::size_t Size>
inline constexpr bool is_span<std::span<T, Size>> = true;
/// A type whose values a parameter `std::span<const T>` passes; of others it passes the span itself.
template <class T>
concept listed_value = std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t);

/// The traits of a parameter: what the body gets for it (`type`), how it accesses an array or each of a list of arrays
/// (`mode`, below 0: it is none), of which rank (0: it is none), and whether it means the same in another process
/// (`travels`).
template <class P>
struct parameter {  // a value
  using type = P;
  static constexpr int mode = -1, rank = 0;
  static constexpr bool is_list = false;
  static constexpr bool travels = std::is_trivially_copyable_v<P> && !std::is_pointer_v<P> &&
                                  !std::is_member_pointer_v<P> && !is_span<std::remove_cv_t<P>>;
};
template <listed_value T>
struct parameter<std::span<const T>> {  // a list of values
  using type = std::span<const T>;
  static constexpr int mode = -1, rank = 0;
  static constexpr bool is_list = true, travels = parameter<T>::travels;
};
template <class T, int N, access_mode Mode>
struct array_parameter {
  using type = view<T, N>;
  static constexpr int mode = static_cast<int>(Mode), rank = N;
  static constexpr bool is_list = false, travels = true;
};
template <class T, int N>
struct parameter<in<T, N>> : array_parameter<const T, N, access_mode::read> {};
template <class T, int N>
struct parameter<out<T, N>> : array_parameter<T, N, access_mode::write> {};
template <class T, int N>
struct parameter<inout<T, N>> : array_parameter<T, N, access_mode::update> {};
template <class T, int N>
struct parameter<red<T, N>> : array_parameter<T, N, access_mode::reduce> {};
template <class T, int N, access_mode Mode>
struct arrays_parameter {
  using type = std::span<const view<T, N>>;
  static constexpr int mode = static_cast<int>(Mode), rank = N;
  static constexpr bool is_list = true, travels = true;
};
template <class T, int N>
struct parameter<in_all<T, N>> : arrays_parameter<const T, N, access_mode::read> {};
template <class T, int N>
struct parameter<out_all<T, N>> : arrays_parameter<T, N, access_mode::write> {};
template <class T, int N>
struct parameter<inout_all<T, N>> : arrays_parameter<T, N, access_mode::update> {};

constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t h = 1469598103934665603ull) {
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

}  // namespace detail

}  // namespace troupe
