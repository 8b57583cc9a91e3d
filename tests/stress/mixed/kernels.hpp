// What this file is for: the kernels of mixed loads, with bodies for cores and a text for devices, for each rank.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The texts are put together by macros, since they must be string literals; MIX and KEY are those of arithmetic.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include <troupe/troupe.hpp>

#include "arithmetic.hpp"

namespace mixed {

template <int N>
area area_of(const troupe::box<N>& b) {
  area a;
  for (std::size_t d = 0; d < static_cast<std::size_t>(N); ++d) {
    a.lo[d] = b.lo[d];
    a.hi[d] = b.hi[d];
  }
  return a;
}
template <int N>
troupe::box<N> box_of(const area& a) {
  troupe::box<N> b;
  for (std::size_t d = 0; d < static_cast<std::size_t>(N); ++d) {
    b.lo[d] = a.lo[d];
    b.hi[d] = a.hi[d];
  }
  return b;
}
/// The element of a view, always checked.
template <class T, int N>
T& element(const troupe::view<T, N>& v, const point& p) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) -> T& {
    return v.at(p[I]...);
  }(std::make_index_sequence<static_cast<std::size_t>(N)>());
}

/// The radius of a stencil, as a scalar of a kernel.
struct reach {
  std::int64_t along[4];
};

namespace texts {

#define MIXED_COMMON                                                                                                   \
  "unsigned long mixed_mix(unsigned long h, unsigned long x);"                                                         \
  "unsigned long mixed_mix(unsigned long h, unsigned long x) {"                                                        \
  "  x += h + 0x9e3779b97f4a7c15UL;"                                                                                   \
  "  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9UL;"                                                                      \
  "  x = (x ^ (x >> 27)) * 0x94d049bb133111ebUL;"                                                                      \
  "  return x ^ (x >> 31);"                                                                                            \
  "}\n"
// Keys of a point (i, j, k, l).
#define MIXED_K0(i) "((unsigned long)(" i ") * 0x9e3779b185ebca87UL)"
#define MIXED_K1(i) "((unsigned long)(" i ") * 0xc2b2ae3d27d4eb4fUL)"
#define MIXED_K2(i) "((unsigned long)(" i ") * 0x165667b19e3779f9UL)"
#define MIXED_K3(i) "((unsigned long)(" i ") * 0x27d4eb2f165667c5UL)"
#define MIXED_KEY1 MIXED_K0("i")
#define MIXED_KEY2 MIXED_K0("i") "+" MIXED_K1("j")
#define MIXED_KEY3 MIXED_K0("i") "+" MIXED_K1("j") "+" MIXED_K2("k")
#define MIXED_KEY4 MIXED_K0("i") "+" MIXED_K1("j") "+" MIXED_K2("k") "+" MIXED_K3("l")
// The work-item's point in the box of `a`, and whether it is inside.
#define MIXED_AT1(a) "const long i = GPU_LO(" a ",0) + GPU_GLOBAL_ID(0); if (i < GPU_HI(" a ",0)) {"
#define MIXED_AT2(a)                                                                                                   \
  "const long j = GPU_LO(" a ",1) + GPU_GLOBAL_ID(0), i = GPU_LO(" a ",0) + GPU_GLOBAL_ID(1);"                         \
  "if (i < GPU_HI(" a ",0) && j < GPU_HI(" a ",1)) {"
#define MIXED_AT3(a)                                                                                                   \
  "const long k = GPU_LO(" a ",2) + GPU_GLOBAL_ID(0), j = GPU_LO(" a ",1) + GPU_GLOBAL_ID(1),"                         \
  " i = GPU_LO(" a ",0) + GPU_GLOBAL_ID(2);"                                                                           \
  "if (i < GPU_HI(" a ",0) && j < GPU_HI(" a ",1) && k < GPU_HI(" a ",2)) {"
#define MIXED_AT4(a)                                                                                                   \
  "const long l = GPU_LO(" a ",3) + GPU_GLOBAL_ID(0), k = GPU_LO(" a ",2) + GPU_GLOBAL_ID(1),"                         \
  " j = GPU_LO(" a ",1) + GPU_GLOBAL_ID(2) % GPU_SIZE(" a ",1), i = GPU_LO(" a ",0) + GPU_GLOBAL_ID(2) / GPU_SIZE(" a  \
  ",1);"                                                                                                               \
  "if (i < GPU_HI(" a ",0) && j < GPU_HI(" a ",1) && k < GPU_HI(" a ",2) && l < GPU_HI(" a ",3)) {"

#define MIXED_STIR(N, AT, KEY, ELEMENT)                                                                                \
  "GPU_KERNEL void mixed_stir" #N "(GPU_INOUT(unsigned long, a), const unsigned long h) {\n" AT("a")                   \
      "const unsigned long key = " KEY ";" ELEMENT " = " ELEMENT " * (h | 1UL) + mixed_mix(h, key); } }\n"

inline constexpr const char* stir[] = {
    MIXED_COMMON MIXED_STIR(1, MIXED_AT1, MIXED_KEY1, "GPU_AT1(a,i)"),
    MIXED_COMMON MIXED_STIR(2, MIXED_AT2, MIXED_KEY2, "GPU_AT2(a,i,j)"),
    MIXED_COMMON MIXED_STIR(3, MIXED_AT3, MIXED_KEY3, "GPU_AT3(a,i,j,k)"),
    MIXED_COMMON MIXED_STIR(4, MIXED_AT4, MIXED_KEY4, "GPU_AT4(a,i,j,k,l)"),
};
inline constexpr const char* stir_names[] = {"mixed_stir1", "mixed_stir2", "mixed_stir3", "mixed_stir4"};

// A loop around; q_lo and q_hi stay within what the view shows.
#define MIXED_LOOP(q, p, d)                                                                                            \
  "for (long " q " = " p " - r.along[" #d "] < GPU_LO(x," #d ") ? GPU_LO(x," #d ") : " p " - r.along[" #d "]; " q      \
  " <= " p " + r.along[" #d "] && " q " < GPU_HI(x," #d "); ++" q ") "

#define MIXED_STENCIL(N, AT, KEY, LOOPS, SOURCE, TARGET)                                                               \
  "typedef struct { long along[4]; } mixed_reach;\n"                                                                   \
  "GPU_KERNEL void mixed_stencil" #N                                                                                   \
  "(GPU_IN(unsigned long, x), GPU_OUT(unsigned long, y), const mixed_reach r, const unsigned long salt) {\n" AT("y")   \
      "const unsigned long key = " KEY "; unsigned long h = mixed_mix(salt, key);\n" LOOPS "h = h * 31UL + " SOURCE    \
      ";\n" TARGET " = h; } }\n"

inline constexpr const char* stencil[] = {
    MIXED_COMMON MIXED_STENCIL(1, MIXED_AT1, MIXED_KEY1, MIXED_LOOP("ii", "i", 0), "GPU_AT1(x,ii)", "GPU_AT1(y,i)"),
    MIXED_COMMON MIXED_STENCIL(2, MIXED_AT2, MIXED_KEY2, MIXED_LOOP("ii", "i", 0) MIXED_LOOP("jj", "j", 1),
                               "GPU_AT2(x,ii,jj)", "GPU_AT2(y,i,j)"),
    MIXED_COMMON MIXED_STENCIL(3, MIXED_AT3, MIXED_KEY3,
                               MIXED_LOOP("ii", "i", 0) MIXED_LOOP("jj", "j", 1) MIXED_LOOP("kk", "k", 2),
                               "GPU_AT3(x,ii,jj,kk)", "GPU_AT3(y,i,j,k)"),
    MIXED_COMMON MIXED_STENCIL(4, MIXED_AT4, MIXED_KEY4,
                               MIXED_LOOP("ii", "i", 0) MIXED_LOOP("jj", "j", 1) MIXED_LOOP("kk", "k", 2)
                                   MIXED_LOOP("ll", "l", 3),
                               "GPU_AT4(x,ii,jj,kk,ll)", "GPU_AT4(y,i,j,k,l)"),
};
inline constexpr const char* stencil_names[] = {"mixed_stencil1", "mixed_stencil2", "mixed_stencil3",
                                                "mixed_stencil4"};

// The first group has a bin for each work-item, of which there are 256.
#define MIXED_FOLD(N, LOOPS, KEY, ELEMENT)                                                                             \
  "GPU_KERNEL void mixed_fold" #N                                                                                      \
  "(GPU_IN(unsigned long, x), GPU_INOUT(unsigned long, bins), const unsigned long salt) {\n"                           \
  "const long me = (GPU_LOCAL_ID(2) * GPU_LOCAL_SIZE(1) + GPU_LOCAL_ID(1)) * GPU_LOCAL_SIZE(0) + GPU_LOCAL_ID(0);\n"   \
  "if (GPU_GROUP_ID(0) == 0 && GPU_GROUP_ID(1) == 0 && GPU_GROUP_ID(2) == 0 && me < GPU_SIZE(bins,0)) {\n"             \
  "unsigned long sum = 0;\n" LOOPS "{ const unsigned long key = " KEY                                                  \
  "; if ((long)(key % (unsigned long)GPU_SIZE(bins,0)) == me) sum += mixed_mix(salt ^ " ELEMENT ", key); }\n"          \
  "GPU_AT1(bins, GPU_LO(bins,0) + me) += sum; } }\n"
#define MIXED_ALL(q, d) "for (long " q " = GPU_LO(x," #d "); " q " < GPU_HI(x," #d "); ++" q ") "

inline constexpr const char* fold[] = {
    MIXED_COMMON MIXED_FOLD(1, MIXED_ALL("i", 0), MIXED_KEY1, "GPU_AT1(x,i)"),
    MIXED_COMMON MIXED_FOLD(2, MIXED_ALL("i", 0) MIXED_ALL("j", 1), MIXED_KEY2, "GPU_AT2(x,i,j)"),
    MIXED_COMMON MIXED_FOLD(3, MIXED_ALL("i", 0) MIXED_ALL("j", 1) MIXED_ALL("k", 2), MIXED_KEY3, "GPU_AT3(x,i,j,k)"),
    MIXED_COMMON MIXED_FOLD(4, MIXED_ALL("i", 0) MIXED_ALL("j", 1) MIXED_ALL("k", 2) MIXED_ALL("l", 3), MIXED_KEY4,
                            "GPU_AT4(x,i,j,k,l)"),
};
inline constexpr const char* fold_names[] = {"mixed_fold1", "mixed_fold2", "mixed_fold3", "mixed_fold4"};

#undef MIXED_COMMON
#undef MIXED_K0
#undef MIXED_K1
#undef MIXED_K2
#undef MIXED_K3
#undef MIXED_KEY1
#undef MIXED_KEY2
#undef MIXED_KEY3
#undef MIXED_KEY4
#undef MIXED_AT1
#undef MIXED_AT2
#undef MIXED_AT3
#undef MIXED_AT4
#undef MIXED_STIR
#undef MIXED_LOOP
#undef MIXED_STENCIL
#undef MIXED_FOLD
#undef MIXED_ALL

}  // namespace texts

/// a = a * (h | 1) + mix(h, key)
template <int N>
inline constexpr auto stir_kernel =
    troupe::kernel<troupe::inout<word, N>, word>(texts::stir_names[N - 1])
        .on(troupe::cpu,
            [](troupe::view<word, N> a, word h) {
              for_points(area_of<N>(a.bounds()),
                         [&](const point& p) { element(a, p) = changed(action::update, element(a, p), h, p); });
            })
        .on(troupe::gpu, troupe::source{texts::stir[N - 1], texts::stir_names[N - 1]});

/// y = what is around, in order.
template <int N>
inline constexpr auto stencil_kernel =
    troupe::kernel<troupe::in<word, N>, troupe::out<word, N>, reach, word>(texts::stencil_names[N - 1])
        .on(troupe::cpu,
            [](troupe::view<const word, N> x, troupe::view<word, N> y, reach r, word salt) {
              const area seen = area_of<N>(x.bounds());
              for_points(area_of<N>(y.bounds()), [&](const point& p) {
                word h = mix(salt, key(p));
                area around{p, p};
                for (std::size_t d = 0; d < 4; ++d) {
                  const index far = d < static_cast<std::size_t>(N) ? r.along[d] : 0;
                  around.lo[d] = p[d] - far;
                  around.hi[d] = p[d] + far + 1;
                }
                for_points(around, [&](const point& q) {
                  if (seen.contains(q)) h = h * 31 + element(x, q);
                });
                element(y, p) = h;
              });
            })
        .on(troupe::gpu, troupe::source{texts::stencil[N - 1], texts::stencil_names[N - 1]});

/// Sums into bins; at most 256 of them.
template <int N>
inline constexpr auto fold_kernel =
    troupe::kernel<troupe::in<word, N>, troupe::red<word, 1>, word>(texts::fold_names[N - 1])
        .on(troupe::cpu,
            [](troupe::view<const word, N> x, troupe::view<word, 1> bins, word salt) {
              for_points(area_of<N>(x.bounds()), [&](const point& p) {
                bins.at(bins.lo(0) + one_of(key(p), bins.size(0))) += mix(salt ^ element(x, p), key(p));
              });
            })
        .on(troupe::gpu, troupe::source{texts::fold[N - 1], texts::fold_names[N - 1]});

}  // namespace mixed
