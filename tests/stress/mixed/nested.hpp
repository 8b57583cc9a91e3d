// What this file is for: the value of what a body does beside its arithmetic, without a runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan.hpp"

namespace mixed {

inline constexpr index scratch_size = 24, scratch_tile = 5;

/// As nested_work (bodies.hpp) with a runtime.
inline word nested_value(const nesting& n, word salt, int depth) {
  if (depth == 0) return mix(salt, 7);
  word h = salt;
  for (int i = 0; i < n.width; ++i) {
    const word below = nested_value(n, mix(salt, static_cast<word>(i)), depth - 1);
    h = mix(h, n.what == nesting::kind::continuation ? mix(below, 3) : below);
  }
  if (n.what == nesting::kind::scratch) {
    // Filled with h, changed twice, read by the host.
    word all = h;
    for (index i = 0; i < scratch_size; ++i) {
      const point p{i, 0, 0, 0};
      word x = changed(action::write, 0, h, p);
      x = changed(action::update, x, h + 1, p);
      x = changed(action::update, x, h + 2, p);
      all = mix(all, x);
    }
    h = all;
  }
  return h;
}

}  // namespace mixed
