// What this file is for: two kernels with bodies for cores and all accelerators, whose results tell which ran when.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/troupe.hpp>

namespace test {

using troupe::cpu, troupe::gpu, troupe::in, troupe::index_t, troupe::inout, troupe::kernel, troupe::out, troupe::source;

using word = std::uint32_t;
using words = troupe::view<word, 1>;
using cwords = troupe::view<const word, 1>;

// b = a * factor + addend
inline constexpr auto scale = kernel<in<word, 1>, out<word, 1>, word, word>("scale")
                                  .on(cpu,
                                      [](cwords a, words b, word factor, word addend) {
                                        for (index_t i = b.lo(0); i < b.hi(0); ++i) b(i) = a(i) * factor + addend;
                                      })
                                  .on(gpu, source{R"(
GPU_KERNEL void scale(GPU_IN(unsigned, a), GPU_OUT(unsigned, b), const unsigned factor, const unsigned addend) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = GPU_AT1(a, i) * factor + addend;
})",
                                                  "scale"});

// a = a * factor + i
inline constexpr auto stir = kernel<inout<word, 1>, word>("stir")
                                 .on(cpu,
                                     [](words a, word factor) {
                                       for (index_t i = a.lo(0); i < a.hi(0); ++i)
                                         a(i) = a(i) * factor + static_cast<word>(i);
                                     })
                                 .on(gpu, source{R"(
GPU_KERNEL void stir(GPU_INOUT(unsigned, a), const unsigned factor) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = GPU_AT1(a, i) * factor + (unsigned)i;
})",
                                                 "stir"});

}  // namespace test
