// What this file is for: what must hold of the shapes of a kernel's arrays, said once and checked at every call.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/box.hpp>

namespace troupe {

/// A shape rule is one relation between the shapes of a kernel's arrays; `kernel::requiring` takes it, and the
/// functions below make it. Why: a body that takes the size of one array for that of another runs outside its memory if
/// a caller gets it wrong, or if another member of the cluster does so on purpose.
///
/// Rules are checked when the call is made (`error(bad_argument)`) and again on the node that is to run it, before the
/// body begins. They hold for boxes as the body sees them: those of a chunk in `for_each`, after clipping; windows with
/// their borders. `a` and `b` are the places of arguments among the kernel's parameters, from 0, values counted too.
struct shape_rule {
  enum class what : std::uint8_t { same_shape, same_size, covers, not_empty, has_size };
  what is = what::not_empty;
  std::uint8_t a = 0, b = 0;          ///< parameters
  std::uint8_t a_dim = 0, b_dim = 0;  ///< dimensions, of same_size and has_size
  index_t size = 0;                   ///< of has_size, the margin of covers
  friend constexpr bool operator==(const shape_rule&, const shape_rule&) = default;
};

/// Arrays `a` and `b` have the same rank, and the same size along each dimension.
constexpr shape_rule same_shape(int a, int b) {
  return {shape_rule::what::same_shape, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 0, 0, 0};
}
/// Dimension `a_dim` of `a` is as large as dimension `b_dim` of `b`: `same_size(0, 1, 1, 0)` for the factors of a
/// product.
constexpr shape_rule same_size(int a, int a_dim, int b, int b_dim) {
  return {shape_rule::what::same_size,      static_cast<std::uint8_t>(a),     static_cast<std::uint8_t>(b),
          static_cast<std::uint8_t>(a_dim), static_cast<std::uint8_t>(b_dim), 0};
}
/// Arrays `a` and `b` have the same rank, and every coordinate of `b`, and those up to `margin` beyond it along each
/// dimension, are coordinates of `a`: what a stencil of that radius reads. A margin is not negative.
constexpr shape_rule covers(int a, int b, index_t margin = 0) {
  return {shape_rule::what::covers, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 0, 0, margin};
}
/// Array `a` has at least one element.
constexpr shape_rule not_empty(int a) {
  return {shape_rule::what::not_empty, static_cast<std::uint8_t>(a), 0, 0, 0, 0};
}
/// Array `a` has exactly `size` elements along dimension `dim`.
constexpr shape_rule has_size(int a, int dim, index_t size) {
  return {shape_rule::what::has_size, static_cast<std::uint8_t>(a), 0, static_cast<std::uint8_t>(dim), 0, size};
}

namespace detail {
/// Rules of one kernel, at most.
inline constexpr int shape_rules_max = 8;
}  // namespace detail

}  // namespace troupe
