// What this file is for: the kernels with which tests of devices see that each task ran once, in order, on its tile.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/troupe.hpp>

namespace test {

using word = std::uint32_t;

/// stir: a = a * factor + i; a run that is missing, comes twice or comes in another order gives other numbers. add: b
/// += a.
inline constexpr auto stir_text = R"(
GPU_KERNEL void stir(GPU_INOUT(unsigned, a), const unsigned factor) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = GPU_AT1(a, i) * factor + (unsigned)i;
}
GPU_KERNEL void add(GPU_IN(unsigned, a), GPU_INOUT(unsigned, b)) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) += GPU_AT1(a, i);
})";
inline void stir_on_core(troupe::view<word, 1> a, word factor) {
  for (troupe::index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = a(i) * factor + static_cast<word>(i);
}
inline void add_on_core(troupe::view<const word, 1> a, troupe::view<word, 1> b) {
  for (troupe::index_t i = b.lo(0); i < b.hi(0); ++i) b(i) += a(i);
}

inline constexpr auto stir = troupe::kernel<troupe::inout<word, 1>, word>("stir")
                                 .on(troupe::cpu, &stir_on_core)
                                 .on(troupe::gpu, troupe::source{stir_text, "stir"});
/// The kernel for devices alone.
inline constexpr auto stir_on_gpu =
    troupe::kernel<troupe::inout<word, 1>, word>("stir").on(troupe::gpu, troupe::source{stir_text, "stir"});

/// triple: b = a * 3, so that what was read shows in what was written.
inline constexpr auto triple_text = R"(
GPU_KERNEL void triple(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = GPU_AT1(a, i) * 3;
})";
inline constexpr auto triple = troupe::kernel<troupe::in<word, 1>, troupe::out<word, 1>>("triple")
                                   .on(troupe::cpu,
                                       [](troupe::view<const word, 1> a, troupe::view<word, 1> b) {
                                         for (troupe::index_t i = b.lo(0); i < b.hi(0); ++i) b(i) = a(i) * 3;
                                       })
                                   .on(troupe::gpu, troupe::source{triple_text, "triple"});

}  // namespace test
