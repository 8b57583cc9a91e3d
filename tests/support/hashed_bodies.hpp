// What this file is for: bodies of tasks that write hashes, the same on views and on a plain array: any change of an
// input or of the order of tasks changes the result.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/troupe.hpp>

namespace test {

using word = std::uint64_t;

// Splitmix64.
inline word mix(word h, word x) {
  x += h + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A box of a plain row-major array. One dimension is a single row.
struct plain_view {
  word* data;
  troupe::index_t width;
  troupe::box<2> where;
  word& operator()(troupe::index_t y, troupe::index_t x) const { return data[y * width + x]; }
};

template <class F>
void for_elements(const plain_view& v, const F& f) {
  for (troupe::index_t y = v.where.lo[0]; y < v.where.hi[0]; ++y)
    for (troupe::index_t x = v.where.lo[1]; x < v.where.hi[1]; ++x) f(v(y, x));
}
template <class T, class F>
void for_elements(const troupe::view<T, 1>& v, const F& f) {
  for (troupe::index_t x = v.lo(0); x < v.hi(0); ++x) f(v.at(x));
}
template <class T, class F>
void for_elements(const troupe::view<T, 2>& v, const F& f) {
  for (troupe::index_t y = v.lo(0); y < v.hi(0); ++y)
    for (troupe::index_t x = v.lo(1); x < v.hi(1); ++x) f(v.at(y, x));
}

/// Returns a digest of what is read.
template <class V>
word digest(const V& v, word h) {
  for_elements(v, [&](const word& x) { h = mix(h, x); });
  return h;
}

/// Writes, updates or adds to each element, as the mode of access says.
template <class V>
void produce(const V& v, troupe::access_mode mode, word h) {
  word at = 0;
  for_elements(v, [&](word& x) {
    const word fresh = mix(h, ++at);
    x = mode == troupe::access_mode::write ? fresh : mode == troupe::access_mode::update ? mix(x, fresh) : x + fresh;
  });
}

}  // namespace test
