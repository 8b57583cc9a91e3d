// What this file is for: views begin where their elements want it: tiles, parts, copies, windows, partials, host views.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "tests/api/nodes/several_nodes.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

constexpr index_t length = 37;

/// So many bytes, aligned to them; a sum of it sees all.
template <std::size_t A>
struct alignas(A) element {
  std::uint32_t x[A / 4];
};
template <std::size_t A>
element<A> element_of(std::uint32_t n) {
  element<A> e{};
  e.x[0] = e.x[A / 4 - 1] = n;
  return e;
}
template <std::size_t A>
struct sum {
  element<A> operator()(element<A> a, const element<A>& b) const {
    for (std::size_t i = 0; i < A / 4; ++i) a.x[i] += b.x[i];
    return a;
  }
};

template <class T, int N>
bool is_aligned(const view<T, N>& v) {
  return reinterpret_cast<std::uintptr_t>(v.data()) % alignof(T) == 0;
}
/// Counts of bodies that have got a view, and of views that are not aligned.
struct tally {
  std::atomic<int> seen{0}, crooked{0};
  template <class T, int N>
  void note(const view<T, N>& v) {
    ++seen;
    if (!is_aligned(v)) ++crooked;
  }
};

template <class Size>
class view_alignment : public testing::Test {};
using sizes = testing::Types<std::integral_constant<std::size_t, 16>, std::integral_constant<std::size_t, 32>,
                             std::integral_constant<std::size_t, 64>>;
TYPED_TEST_SUITE(view_alignment, sizes);

// Several lengths: an allocator that happens to align one of them does not align all.
TYPED_TEST(view_alignment, is_that_of_the_elements_in_tiles_parts_and_copies) {
  constexpr std::size_t A = TypeParam::value;
  runtime rt(options{.threads = 2});
  tally t;
  for (index_t n = 3; n < 60; n += 7) {
    auto many = rt.filled<element<A>>({n}, tiles(2), element_of<A>(1), "many");
    auto one = rt.filled<element<A>>({n}, tiles(n), element_of<A>(1), "one");
    const auto look = [&](view<const element<A>, 1> v) { t.note(v); };
    const auto change = [&](view<element<A>, 1> v) {
      t.note(v);
      for (index_t i = v.lo(0); i < v.hi(0); ++i) ++v(i).x[0];
    };
    rt.spawn(change, update(many));
    rt.spawn(task_options{.retries = 1}, change, update(many));
    rt.spawn(look, read(many));
    rt.spawn(change, update(one));
    rt.spawn(look, read(one));
    rt.spawn(look, read(one.sub({{1}, {n}})));
    rt.spawn(look, read(many.sub({{1}, {n}})));
    rt.wait_all();
    EXPECT_EQ(many.read()(n - 1).x[0], 3u);
  }
  EXPECT_EQ(t.seen, 9 * 7);
  EXPECT_EQ(t.crooked, 0);
}

TYPED_TEST(view_alignment, is_that_of_the_elements_in_windows_with_every_border) {
  constexpr std::size_t A = TypeParam::value;
  runtime rt(options{.threads = 2});
  auto a = rt.filled<element<A>>({length}, tiles(4), element_of<A>(1), "a");
  tally t;
  const auto look = [&](view<const element<A>, 1> v) { t.note(v); };
  rt.for_each(grid(length).chunks(4), look, read(a, window(1)));
  rt.for_each(grid(length).chunks(4), look, read(a, window(1).clamp()));
  rt.for_each(grid(length).chunks(4), look, read(a, window(1).wrap()));
  if constexpr (A <= 32) rt.for_each(grid(length).chunks(4), look, read(a, window(1).fill(element_of<A>(9))));
  rt.wait_all();
  EXPECT_EQ(t.seen, (A <= 32 ? 4 : 3) * 10);
  EXPECT_EQ(t.crooked, 0);
}

TYPED_TEST(view_alignment, is_that_of_the_elements_in_partials_of_reductions) {
  constexpr std::size_t A = TypeParam::value;
  if constexpr (A <= 32) {
    runtime rt(options{.threads = 2});
    tally t;
    for (index_t n = 1; n < 12; ++n) {
      auto total = rt.filled<element<A>>({n}, tiles(n), element<A>{}, "total");
      for (int i = 0; i < 4; ++i)
        rt.spawn(
            task_options{.retries = i % 2},
            [&](view<element<A>, 1> v) {
              t.note(v);
              v(0) = sum<A>()(v(0), element_of<A>(1));
            },
            reduce(total, sum<A>(), element<A>{}));
      EXPECT_EQ(total.read()(0).x[A / 4 - 1], 4u);
    }
    EXPECT_EQ(t.seen, 44);
    EXPECT_EQ(t.crooked, 0);
  } else {
    static_assert(sizeof(element<A>) > 32, "too large for a reduction");
  }
}

TYPED_TEST(view_alignment, is_that_of_the_elements_in_host_views) {
  constexpr std::size_t A = TypeParam::value;
  runtime rt(options{.threads = 1});
  for (index_t n = 3; n < 60; n += 7) {
    auto a = rt.filled<element<A>>({n}, tiles(2), element_of<A>(1), "a");
    EXPECT_TRUE(is_aligned(a.read())) << n;
    EXPECT_TRUE(is_aligned(a.update())) << n;
    EXPECT_TRUE(is_aligned(a.write())) << n;
    EXPECT_TRUE(is_aligned(a.sub({{1}, {n}}).read())) << n;
  }
}

TYPED_TEST(view_alignment, is_that_of_the_elements_with_little_memory_and_a_disk) {
  constexpr std::size_t A = TypeParam::value;
  options o{.threads = 2};
  o.memory_bytes = 24 * A;
  o.spill_directory = testing::TempDir();
  runtime rt(o);
  auto a = rt.filled<element<A>>({40}, tiles(4), element_of<A>(1), "a");
  tally t;
  for (int round = 0; round < 3; ++round)
    rt.for_each(
          grid(40).chunks(4),
          [&](view<element<A>, 1> v) {
            t.note(v);
            for (index_t i = v.lo(0); i < v.hi(0); ++i) ++v(i).x[0];
          },
          update(a))
        .get();
  EXPECT_EQ(a.sub({{36}, {40}}).read()(3).x[0], 4u);
  EXPECT_EQ(t.seen, 30);
  EXPECT_EQ(t.crooked, 0);
}

using wide = element<32>;
constexpr auto crooked_views =
    kernel<in<wide, 1>, in<wide, 1>, red<wide, 1>, inout<wide, 1>>("view_alignment.crooked")
        .on(cpu, [](view<const wide, 1> a, view<const wide, 1> w, view<wide, 1> partial, view<wide, 1> to) {
          partial(0).x[0] += !is_aligned(a) + !is_aligned(w) + !is_aligned(partial) + !is_aligned(to);
          partial(0).x[1] += 1;
          ++to(to.lo(0)).x[0];
        });

const offer offered{crooked_views};

TEST(view_alignment_elsewhere, is_that_of_the_elements_on_another_node) {
  test::several_nodes n(1);
  auto a = n.a.filled<wide>({length}, tiles(3), element_of<32>(1), "a");
  auto to = n.a.filled<wide>({length}, tiles(4), element_of<32>(1), "to");
  auto seen = n.a.filled<wide>({3}, tiles(3), wide{}, "seen");
  n.a.for_each(test::on("b"), grid(length).chunks(5), crooked_views, read(a, all()), read(a, window(2).wrap()),
               reduce(seen, sum<32>(), wide{}), update(to))
      .get();
  const auto v = seen.read();
  EXPECT_EQ(v(0).x[0], 0u);
  EXPECT_EQ(v(0).x[1], 8u);
}

}  // namespace
