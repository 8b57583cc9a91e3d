// What this file is for: what programs of imagined nodes compute: the kernels that their nodes offer.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <unordered_map>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "tests/support/hashed_bodies.hpp"

namespace test {

using troupe::access_mode;
using troupe::box;
using troupe::index_t;
using troupe::view;

/// Returns an element of a blur; `at` takes coordinates beyond the edge.
template <class F>
word blurred(const F& at, index_t y, index_t x, word salt) {
  word h = salt;
  for (index_t v = -1; v <= 1; ++v)
    for (index_t u = -1; u <= 1; ++u) h = mix(h, at(y + v, x + u));
  return h;
}

/// How often each call has been begun, by its salt, in all nodes.
inline std::unordered_map<word, int>& begun() {
  static std::unordered_map<word, int> all;
  return all;
}

namespace kernels {

using troupe::cpu;
using troupe::in;
using troupe::inout;
using troupe::kernel;
using troupe::out;
using troupe::red;
using seen = view<const word, 2>;
using made = view<word, 2>;

inline constexpr auto write = kernel<out<word, 2>, word>("imagined.write").on(cpu, [](made to, word salt) {
  ++begun()[salt];
  produce(to, access_mode::write, salt);
});
inline constexpr auto change = kernel<inout<word, 2>, word>("imagined.change").on(cpu, [](made to, word salt) {
  ++begun()[salt];
  produce(to, access_mode::update, salt);
});
inline constexpr auto derive =
    kernel<in<word, 2>, out<word, 2>, word>("imagined.derive").on(cpu, [](seen from, made to, word salt) {
      ++begun()[salt];
      produce(to, access_mode::write, digest(from, salt));
    });
inline constexpr auto combine = kernel<in<word, 2>, in<word, 2>, inout<word, 2>, word>("imagined.combine")
                                    .on(cpu, [](seen a, seen b, made to, word salt) {
                                      ++begun()[salt];
                                      produce(to, access_mode::update, digest(b, digest(a, salt)));
                                    });
inline constexpr auto two = kernel<in<word, 2>, out<word, 2>, inout<word, 2>, word>("imagined.two")
                                .on(cpu, [](seen from, made first, made second, word salt) {
                                  ++begun()[salt];
                                  const word h = digest(from, salt);
                                  produce(first, access_mode::write, h);
                                  produce(second, access_mode::update, h + 1);
                                });
inline constexpr auto add =
    kernel<in<word, 2>, red<word, 2>, word>("imagined.add").on(cpu, [](seen from, made to, word salt) {
      ++begun()[salt];
      produce(to, access_mode::reduce, digest(from, salt));
    });
inline constexpr auto blur =
    kernel<in<word, 2>, out<word, 2>, word>("imagined.blur").on(cpu, [](seen from, made to, word salt) {
      for (index_t y = to.lo(0); y < to.hi(0); ++y)
        for (index_t x = to.lo(1); x < to.hi(1); ++x)
          to(y, x) = blurred([&](index_t v, index_t u) { return from(v, u); }, y, x, salt);
    });
inline constexpr auto once = kernel<inout<word, 2>, word>("imagined.once")
                                 .on(cpu,
                                     [](made to, word salt) {
                                       ++begun()[salt];
                                       produce(to, access_mode::update, salt);
                                     })
                                 .once();
inline constexpr auto fail = kernel<inout<word, 2>, word>("imagined.fail").on(cpu, [](made to, word salt) {
  ++begun()[salt];
  produce(to, access_mode::update, ~salt);
  throw std::runtime_error("it always fails");
});

inline const troupe::offer offered{write, change, derive, combine, two, add, blur, once, fail};

}  // namespace kernels

}  // namespace test
