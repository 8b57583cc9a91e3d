// What this file is for: operators of the standard library for each type of number.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/reduction_operators.hpp"

#include <functional>
#include <type_traits>

namespace troupe::detail {

namespace {

template <class T>
combine_fn among(std::uint16_t code) {
  const auto is = [code](combine_fn f) { return f->code == code ? f : nullptr; };
  if (const combine_fn f = is(&operator_for<T, std::plus<>>)) return f;
  if (const combine_fn f = is(&operator_for<T, std::multiplies<>>)) return f;
  if constexpr (std::is_integral_v<T>) {
    if (const combine_fn f = is(&operator_for<T, std::bit_and<>>)) return f;
    if (const combine_fn f = is(&operator_for<T, std::bit_or<>>)) return f;
    if (const combine_fn f = is(&operator_for<T, std::bit_xor<>>)) return f;
  }
  return nullptr;
}

template <class... T>
combine_fn among_all(std::uint16_t code) {
  combine_fn found = nullptr;
  ((found = found ? found : among<T>(code)), ...);
  return found;
}

}  // namespace

combine_fn combiner_of(std::uint16_t code) {
  if (code == 0) return nullptr;
  return among_all<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t,
                   std::uint64_t, float, double>(code);
}

}  // namespace troupe::detail
