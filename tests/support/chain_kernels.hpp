// What this file is for: the kernels of chains, whose results show whether each step ran once and in its place.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A step of a chain hashes what the step before has left: a step that is missing, comes twice or comes in another order
// gives another number.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdint>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

namespace test {

inline std::uint64_t hashed(std::uint64_t x, std::uint64_t by) {
  x ^= by + 0x9e3779b97f4a7c15u + (x << 6) + (x >> 2);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

/// Takes a core for about so many microseconds.
inline void toil(std::uint64_t us) {
  volatile std::uint64_t sink = 1;
  for (std::uint64_t i = 0; i < us * 400; ++i) sink = hashed(sink, i);
}

/// A step of a chain: its number, and what it costs.
inline constexpr auto link_on =
    troupe::kernel<troupe::inout<std::uint64_t, 1>, std::uint64_t, std::uint64_t>("system.link_on")
        .on(troupe::cpu, [](troupe::view<std::uint64_t, 1> a, std::uint64_t step, std::uint64_t us) {
          toil(us);
          for (troupe::index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = hashed(a(i), step);
        });

/// Adds a number that depends on what is read.
inline constexpr auto weigh =
    troupe::kernel<troupe::in<std::uint64_t, 1>, troupe::red<std::uint64_t, 1>, std::uint64_t>("system.weigh")
        .on(troupe::cpu,
            [](troupe::view<const std::uint64_t, 1> a, troupe::view<std::uint64_t, 1> total, std::uint64_t us) {
              toil(us);
              for (troupe::index_t i = a.lo(0); i < a.hi(0); ++i) total(0) += hashed(a(i), 7);
            });

/// Ends any process in which it runs, but the one with that number.
inline constexpr auto end_process = troupe::kernel<troupe::inout<std::uint64_t, 1>, std::int64_t>("system.end_process")
                                        .on(troupe::cpu, [](troupe::view<std::uint64_t, 1> a, std::int64_t spared) {
                                          if (getpid() != spared) raise(SIGKILL);
                                          a(a.lo(0)) += 1;
                                        });

/// A step of a chain that also looks at other data.
inline constexpr auto mix_in =
    troupe::kernel<troupe::in<std::uint64_t, 1>, troupe::inout<std::uint64_t, 1>>("system.mix_in")
        .on(troupe::cpu, [](troupe::view<const std::uint64_t, 1> from, troupe::view<std::uint64_t, 1> a) {
          for (troupe::index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = hashed(a(i), from(from.lo(0)));
        });

}  // namespace test
