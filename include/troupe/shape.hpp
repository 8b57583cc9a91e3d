// What this file is for: what must hold of the shapes of a kernel's arrays, said once and checked at every call.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A body that takes the size of one array for that of another runs outside its memory when a caller gets it wrong, or when
// another member of the cluster does so on purpose. `kernel::requiring` says such relations. They are looked at when the
// call is made (`error(bad_argument)`) and once more on the node that is to run it, before its body begins. They are about
// boxes as the body sees them: of a chunk in `for_each`, after clipping; windows with their borders.
// Arguments are named by their places among the kernel's parameters, from 0, values counted too.
#pragma once

#include <cstdint>

#include <troupe/box.hpp>

namespace troupe {

/// One relation. Made by the functions below.
struct shape_rule {
  enum class what : std::uint8_t { same_shape, same_size, covers, not_empty, has_size };
  what is = what::not_empty;
  std::uint8_t a = 0, b = 0;          ///< parameters
  std::uint8_t a_dim = 0, b_dim = 0;  ///< dimensions, of same_size and has_size
  index_t size = 0;                   ///< of has_size, the margin of covers
  friend constexpr bool operator==(const shape_rule&, const shape_rule&) = default;
};

/// Both have the same rank, and the same size along each dimension.
constexpr shape_rule same_shape(int a, int b) {
  return {shape_rule::what::same_shape, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 0, 0, 0};
}
/// Along one dimension of each they have the same size: `same_size(0, 1, 1, 0)` for the factors of a product.
constexpr shape_rule same_size(int a, int a_dim, int b, int b_dim) {
  return {shape_rule::what::same_size,      static_cast<std::uint8_t>(a),     static_cast<std::uint8_t>(b),
          static_cast<std::uint8_t>(a_dim), static_cast<std::uint8_t>(b_dim), 0};
}
/// Both have the same rank, and every coordinate of `b` is one of `a`, and so are those up to `margin` beyond `b` along each
/// dimension: what a stencil of that radius reads. No margin is negative.
constexpr shape_rule covers(int a, int b, index_t margin = 0) {
  return {shape_rule::what::covers, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 0, 0, margin};
}
/// It has at least one element.
constexpr shape_rule not_empty(int a) {
  return {shape_rule::what::not_empty, static_cast<std::uint8_t>(a), 0, 0, 0, 0};
}
/// It is so large along that dimension.
constexpr shape_rule has_size(int a, int dim, index_t size) {
  return {shape_rule::what::has_size, static_cast<std::uint8_t>(a), 0, static_cast<std::uint8_t>(dim), 0, size};
}

namespace detail {
/// Of one kernel, at most.
inline constexpr int shape_rules_max = 8;
}  // namespace detail

}  // namespace troupe
