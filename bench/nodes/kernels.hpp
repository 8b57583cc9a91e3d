// Kernels that the nodes of the benchmark run for each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "../taskbench/steps.hpp"
#include "contender.hpp"

#include <cstdint>
#include <span>
#include <stdexcept>

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

/// A task of a graph in steps: which one it is, and how long it computes.
struct step_call {
  std::uint64_t iterations = 0;
  std::uint32_t step = 0, at = 0;
};

/// Checks the outputs of points of the step before, computes and fills its own.
inline constexpr auto step_of_any =
    troupe::kernel<step_call, std::span<const std::uint32_t>, troupe::in_all<std::uint64_t, 1>,
                   troupe::out<std::uint64_t, 1>>("bench.step_of_any")
        .on(troupe::cpu,
            [](step_call c, std::span<const std::uint32_t> points,
               std::span<const troupe::view<const std::uint64_t, 1>> inputs, troupe::view<std::uint64_t, 1> out) {
              for (std::size_t i = 0; i < inputs.size(); ++i)
                if (inputs[i](0) != c.step - 1 || inputs[i](1) != points[i])
                  throw std::runtime_error("an input was not what the step before had made");
              compute_steps(c.iterations);
              out(0) = c.step;
              out(1) = c.at;
            });

}  // namespace bench
