// The search for METG(50 %).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "metg.hpp"

#include <algorithm>
#include <cmath>

namespace bench {

// From long bodies to short ones, until less than half of the time is useful: between the last two, linear in the
// body's logarithm. A contender that reaches half with the shortest body gets that ("at most").
std::optional<double> metg50(const std::function<std::optional<double>(double body_us)>& efficiency) {
  constexpr double longest_us = 1024, shortest_us = 0.25;
  double above = 0;
  for (double body_us = 64; body_us <= longest_us; body_us *= 4) {
    const auto first = efficiency(body_us);
    if (!first) return {};
    if (*first < 0.5) continue;
    above = *first;
    for (double shorter = body_us / 2; shorter >= shortest_us; shorter /= 2) {
      const double here = efficiency(shorter).value_or(0);
      if (here < 0.5) return shorter * std::pow(2.0, (0.5 - here) / std::max(1e-9, above - here));
      above = here;
    }
    return shortest_us;
  }
  return longest_us;
}

}  // namespace bench
