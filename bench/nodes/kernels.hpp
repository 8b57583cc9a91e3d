// What the nodes of the benchmark run for each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "contender.hpp"

namespace bench {

inline constexpr auto nothing = troupe::kernel<>("bench.nothing").on(troupe::cpu, [] {});

inline constexpr auto update_nothing =
    troupe::kernel<troupe::inout<int, 1>>("bench.update_nothing").on(troupe::cpu, [](troupe::view<int, 1>) {});

/// Adds up one number of each MiB.
inline constexpr auto look_through =
    troupe::kernel<troupe::in<std::uint64_t, 1>, troupe::out<std::uint64_t, 1>>("bench.look_through")
        .on(troupe::cpu, [](troupe::view<const std::uint64_t, 1> a, troupe::view<std::uint64_t, 1> sum) {
          sum(0) = 0;
          for (troupe::index_t i = a.lo(0); i < a.hi(0); i += sampled_every) sum(0) += a(i);
        });

}  // namespace bench
