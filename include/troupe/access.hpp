// What this file is for: how a call says what it touches: access modes, and mappers from chunks to boxes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <troupe/box.hpp>
#include <troupe/error.hpp>

namespace troupe {

/// An access mode says what a task does with a box. `append` is part of the vocabulary, but no executor of this build
/// offers it yet (`error(not_supported)` at the call).
enum class access_mode : unsigned char { read, write, update, reduce, append };

/// A border says what a view shows where its box reaches outside the array.
enum class border : unsigned char {
  refuse,  ///< the call throws `error(out_of_bounds)`
  clip,    ///< the view ends at the array's edge
  clamp,   ///< the nearest element of the array
  wrap,    ///< the array repeats
  fill,    ///< a constant
};

namespace detail {
inline constexpr std::size_t fill_bytes_max = 32;

/// A text for a type, the same for the same type.
template <class T>
constexpr const char* text_of_type() {
  return __PRETTY_FUNCTION__;
}

/// The result of a mapper: a box that may reach outside the array, and the rule for the part that does.
template <int N>
struct mapped {
  box<N> where;
  border edge = border::refuse;
  const void* fill = nullptr;
  std::size_t fill_size = 0;
  const char* fill_type = nullptr;  // as text_of_type has it
};

/// The sum of two numbers, or the nearest number that there is.
constexpr index_t saturated_sum(index_t a, index_t b) {
  using limits = std::numeric_limits<index_t>;
  if (b > 0) return a > limits::max() - b ? limits::max() : a + b;
  return a < limits::min() - b ? limits::min() : a + b;
}
}  // namespace detail

/// The chunk itself, as far as the array reaches: mostly the array and the index space have the same extent.
struct one_to_one {
  template <int N>
  detail::mapped<N> operator()(const box<N>& chunk, const extent<N>&) const {
    return {chunk, border::clip, nullptr, 0};
  }
};

/// The whole array, for every chunk.
struct all {
  template <int K, int N>
  detail::mapped<N> operator()(const box<K>&, const extent<N>& e) const {
    return {whole(e), border::refuse, nullptr, 0};
  }
};

/// The mapper of an access that names none. In `for_each` it means `one_to_one` if array and index space have the same
/// extent, else `all`; in `spawn` it means `all`.
struct unmapped {};

/// The chunk, with the whole extent along dimension `dim`: `slice(1)` gives full rows of a matrix (the panel of A in
/// C = A B), `slice(0)` full columns. A dimension that the array does not have is `error(bad_argument)` at the call.
struct slice {
  explicit constexpr slice(int dimension) : dim(dimension) {}
  int dim;
  template <int N>
  detail::mapped<N> operator()(const box<N>& chunk, const extent<N>& e) const {
    if (dim < 0 || dim >= N)
      throw error(errc::bad_argument, "slice(" + std::to_string(dim) + ") of an array of " + std::to_string(N) +
                                          " dimensions: name one of 0 to " + std::to_string(N - 1));
    box<N> b = chunk;
    b.lo[dim] = 0;
    b.hi[dim] = e[dim];
    return {b, border::clip, nullptr, 0};
  }
};

/// A fixed box, the same for every chunk. A box that leaves the array is `error(out_of_bounds)`.
template <int N>
struct fixed {
  box<N> where;
  template <int K>
  detail::mapped<N> operator()(const box<K>&, const extent<N>&) const {
    return {where, border::refuse, nullptr, 0};
  }
};

template <int N, class T>
struct filled_window;

/// The largest radius of a window that has something beyond the edge, 2^47: as many bytes as a program can address.
inline constexpr index_t window_radius_max = index_t{1} << 47;

/// The chunk widened by a radius along each dimension, as a stencil or convolution reads it. `.clamp()`, `.wrap()` and
/// `.fill(v)` say what lies beyond the edge, for radii up to `window_radius_max`; without one of them the view is
/// clipped at the edge, and any radius is allowed. Other radii, and negative ones, are `error(bad_argument)` at the
/// call, as are views that cannot be addressed; a view for which there is no memory fails the task with
/// `out_of_memory`.
template <int N>
struct window_mapper {
  std::array<index_t, N> radius{};
  border edge = border::clip;
  alignas(16) std::array<std::byte, detail::fill_bytes_max> value{};
  std::size_t value_size = 0;
  const char* value_type = nullptr;

  /// Shows the nearest element of the array beyond the edge.
  constexpr window_mapper clamp() const { return with(border::clamp); }
  /// Repeats the array beyond the edge.
  constexpr window_mapper wrap() const { return with(border::wrap); }
  /// Shows `v` beyond the edge. `v` must have the array's element type: `fill(1.0f)` for an array of float. Another
  /// type does not compile; if the mapper has become a plain `window_mapper`, which can hold any value, it is
  /// `error(bad_argument)` at the call.
  template <class T>
  filled_window<N, T> fill(const T& v) const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= detail::fill_bytes_max,
                  "fill values are trivially copyable and at most 32 bytes");
    filled_window<N, T> copy{with(border::fill)};
    std::memcpy(copy.value.data(), &v, sizeof v);
    copy.value_size = sizeof v;
    copy.value_type = detail::text_of_type<T>();
    return copy;
  }

  detail::mapped<N> operator()(const box<N>& chunk, const extent<N>&) const {
    box<N> b = chunk;
    for (int d = 0; d < N; ++d) {
      if (radius[d] < 0 || (edge != border::clip && radius[d] > window_radius_max)) refuse(d);
      b.lo[d] = detail::saturated_sum(b.lo[d], -radius[d]);
      b.hi[d] = detail::saturated_sum(b.hi[d], radius[d]);
    }
    return {b, edge, value.data(), value_size, value_type};
  }

 private:
  [[noreturn]] void refuse(int d) const {
    throw error(
        errc::bad_argument,
        "window: radius " + std::to_string(radius[d]) + " along dimension " + std::to_string(d) +
            (radius[d] < 0 ? ": it is how far to look to either side, 0 or more"
                           : ": 2^47 at most (window_radius_max), but for windows that are clipped at the edge"));
  }
  constexpr window_mapper with(border rule) const {
    window_mapper copy = *this;
    copy.edge = rule;
    return copy;
  }
};

/// A window that shows a value of this type beyond the edge; see `window_mapper::fill`.
template <int N, class T>
struct filled_window : window_mapper<N> {
  using fill_type = T;
};

/// A mapper that fills has a value of the array's element type: write `window(1).fill(1.0f)` for an array of float, not
/// `fill(1)`.
template <class M, class T>
concept fills_with = !requires { typename M::fill_type; } || std::is_same_v<typename M::fill_type, T>;

/// A window of the given radius along each dimension: `window(15, 15).clamp()`.
template <class... I>
constexpr window_mapper<sizeof...(I)> window(I... radius) {
  window_mapper<sizeof...(I)> w;
  w.radius = {static_cast<index_t>(radius)...};
  return w;
}

/// A mapper is a pure function from a chunk of the index space to the box of an array that the chunk touches. It knows
/// nothing of devices or threads; the same chunk must always give the same box. Plain functions may return a `box<N>`;
/// one that leaves the array is `error(out_of_bounds)`. `spawn` has no index space: its accesses are of whole
/// (sub-)arrays, and a mapper other than `all` is `error(bad_argument)`.
template <class M, int K, int N>
concept mapper = requires(const M& m, const box<K>& chunk, const extent<N>& e) {
  { m(chunk, e) } -> std::convertible_to<detail::mapped<N>>;
}
|| requires(const M& m, const box<K>& chunk, const extent<N>& e) {
  { m(chunk, e) } -> std::convertible_to<box<N>>;
};

template <class T, int N>
class array;

namespace detail {

template <class T, class Op>
void combine(void* into, const void* from, std::size_t count) {
  auto* a = static_cast<T*>(into);
  auto* b = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_arithmetic_v<T>)
      a[i] = static_cast<T>(Op{}(a[i], b[i]));  // sums of small integers are of another type
    else
      a[i] = Op{}(a[i], b[i]);
  }
}

/// Returns the number by which other nodes know an operator of the standard library on integers or floating point
/// numbers of 1 to 8 bytes: the operator's, and the type's in the lower eight bits. 0: they do not know it.
template <class T, class Op>
constexpr std::uint16_t operator_code() {
  constexpr auto is = []<template <class> class F>(std::type_identity<F<void>>) {
    return std::is_same_v<Op, F<void>> || std::is_same_v<Op, F<T>>;
  };
  constexpr bool is_known = (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8) ||
                            std::is_same_v<T, float> || std::is_same_v<T, double>;
  constexpr unsigned type = sizeof(T) | (std::is_floating_point_v<T> ? 0x20u : std::is_signed_v<T> ? 0x10u : 0u);
  constexpr unsigned op = is(std::type_identity<std::plus<>>())         ? 1
                          : is(std::type_identity<std::multiplies<>>()) ? 2
                          : is(std::type_identity<std::bit_and<>>())    ? 3
                          : is(std::type_identity<std::bit_or<>>())     ? 4
                          : is(std::type_identity<std::bit_xor<>>())    ? 5
                                                                        : 0;
  return is_known && op != 0 ? static_cast<std::uint16_t>(op << 8 | type) : std::uint16_t{0};
}

/// The operator of a reduction.
struct reduction_operator {
  /// Adds `count` elements of `from` into `into`.
  void (*combine)(void* into, const void* from, std::size_t count);
  std::uint16_t code = 0;  ///< see operator_code
};
using combine_fn = const reduction_operator*;

template <class T, class Op>
inline constexpr reduction_operator operator_for{&combine<T, Op>, operator_code<T, Op>()};

/// One argument of a call that names an array. Lives for the full expression of the call only.
template <class T, int N, access_mode Mode, class Mapper>
struct access_argument {
  static constexpr access_mode mode = Mode;
  const array<T, N>* target;
  Mapper map;
  combine_fn combiner = nullptr;
  alignas(16) std::array<std::byte, fill_bytes_max> identity{};
};

}  // namespace detail

/// The task reads the mapped box.
template <class T, int N, class M = unmapped>
  requires fills_with<M, T>
auto read(const array<T, N>& a, M map = {}) {
  return detail::access_argument<T, N, access_mode::read, M>{&a, std::move(map), nullptr, {}};
}
/// The task writes every element of the mapped box; what was there before is not seen.
template <class T, int N, class M = unmapped>
  requires fills_with<M, T>
auto write(const array<T, N>& a, M map = {}) {
  return detail::access_argument<T, N, access_mode::write, M>{&a, std::move(map), nullptr, {}};
}
/// The task reads the mapped box and changes it in place.
template <class T, int N, class M = unmapped>
  requires fills_with<M, T>
auto update(const array<T, N>& a, M map = {}) {
  return detail::access_argument<T, N, access_mode::update, M>{&a, std::move(map), nullptr, {}};
}
/// The task contributes to the array by an associative, commutative operator. Bodies see a private partial that starts
/// at `identity`; partials are combined, also with the old contents of the array, by a task of the runtime, which needs
/// a core like others: when it is next read, when its last handle goes, or, in memory that is borrowed, when the
/// runtime ends after all its tasks. A call of a `for_each` reduces into the whole array. Tasks that reduce into one
/// array with the same operator run concurrently. `Op` is stateless: `T operator()(T, T)`. Where one of them fails, or
/// is cancelled, the array is in error, with what others have contributed, until it is written again; the others end as
/// they would. So it is where old elements are in error. On other nodes any operator may be used; partials of operators
/// of the standard library on numbers are added up there, others are sent one by one.
template <class T, int N, class Op>
auto reduce(const array<T, N>& a, Op, std::type_identity_t<T> identity) {
  static_assert(std::is_empty_v<Op> && std::is_default_constructible_v<Op>, "reduce() takes a stateless operator");
  static_assert(sizeof(T) <= detail::fill_bytes_max, "elements of a reduction have at most 32 bytes");
  detail::access_argument<T, N, access_mode::reduce, all> r{&a, {}, &detail::operator_for<T, Op>, {}};
  std::memcpy(r.identity.data(), &identity, sizeof identity);
  return r;
}
/// `reduce` for sums, with 0 as the identity.
template <class T, int N>
auto reduce(const array<T, N>& a, std::plus<> op = {}) {
  return reduce(a, op, T{});
}
/// The task appends elements. Declared, not yet available (`error(not_supported)`).
template <class T>
auto append(const array<T, 1>& a) {
  return detail::access_argument<T, 1, access_mode::append, all>{&a, {}, nullptr, {}};
}

}  // namespace troupe
