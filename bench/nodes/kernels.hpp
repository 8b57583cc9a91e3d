// Kernels that the nodes of the benchmark run for each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "../taskbench/steps.hpp"
#include "contender.hpp"

#include <array>
#include <cstdint>
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

/// A task of a graph in steps: which one it is, whose outputs it reads, and how long it computes.
struct step_call {
  std::uint64_t iterations = 0;
  std::uint32_t step = 0;
  std::uint16_t at = 0;
  std::array<std::uint16_t, 5> others{};
};

/// Throws unless the input is what that point of the step before has made.
inline void check_input(const step_call& c, std::size_t i, troupe::view<const std::uint64_t, 1> in) {
  if (in(0) != c.step - 1 || in(1) != c.others[i])
    throw std::runtime_error("an input was not what the step before had made");
}
inline void compute_step(const step_call& c, troupe::view<std::uint64_t, 1> out) {
  compute_steps(c.iterations);
  out(0) = c.step;
  out(1) = c.at;
}

using number_in = troupe::in<std::uint64_t, 1>;
using numbers_seen = troupe::view<const std::uint64_t, 1>;

/// Computes and fills its output: a task of the first step.
inline constexpr auto step_of_none =
    troupe::kernel<step_call, troupe::out<std::uint64_t, 1>>("bench.step_of_none")
        .on(troupe::cpu, [](step_call c, troupe::view<std::uint64_t, 1> out) { compute_step(c, out); });
/// Checks the outputs of three points of the step before (some may be the same), computes, fills its own.
inline constexpr auto step_of_three =
    troupe::kernel<step_call, number_in, number_in, number_in, troupe::out<std::uint64_t, 1>>("bench.step_of_three")
        .on(troupe::cpu,
            [](step_call c, numbers_seen a, numbers_seen b, numbers_seen d, troupe::view<std::uint64_t, 1> out) {
              std::size_t i = 0;
              for (const auto* in : {&a, &b, &d}) check_input(c, i++, *in);
              compute_step(c, out);
            });
/// The same with five.
inline constexpr auto step_of_five =
    troupe::kernel<step_call, number_in, number_in, number_in, number_in, number_in, troupe::out<std::uint64_t, 1>>(
        "bench.step_of_five")
        .on(troupe::cpu, [](step_call c, numbers_seen a, numbers_seen b, numbers_seen d, numbers_seen e, numbers_seen f,
                            troupe::view<std::uint64_t, 1> out) {
          std::size_t i = 0;
          for (const auto* in : {&a, &b, &d, &e, &f}) check_input(c, i++, *in);
          compute_step(c, out);
        });

}  // namespace bench
