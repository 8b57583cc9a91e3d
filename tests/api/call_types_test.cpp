// What this file is for: what the types of a call decide: what bodies get, which values fill, what shares a cost model.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <concepts>
#include <optional>
#include <stdexcept>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;

using ints = view<int, 1>;

// ---- futures of nothing ---------------------------------------------------------------------------------------------

TEST(future_of_nothing, passes_nothing_to_the_body) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({2}, tiles(2), 1, "a");
  const future<void> first = rt.spawn([](ints v) { v(0) = 5; }, update(a));
  const future<int> number = rt.spawn([] { return 3; });
  EXPECT_EQ(rt.spawn([](view<const int, 1> v) { return v(0); }, first, read(a)).get(), 5);
  EXPECT_EQ(rt.spawn([](int n, int m) { return n + m; }, number, first, 4).get(), 7);
  EXPECT_EQ(rt.spawn([](task_context& c, int m) { return c.attempt() + m; }, first, 4, first).get(), 5);
  EXPECT_EQ(rt.spawn([] { return 8; }, first).get(), 8);
  EXPECT_EQ(rt.spawn([](task_context& c) { return c.attempt(); }, first).get(), 1);
}

TEST(future_of_nothing, may_still_be_taken_as_a_parameter) {
  runtime rt(options{.threads = 1});
  const future<void> first = rt.spawn([] {});
  EXPECT_EQ(rt.spawn([](auto&&, int n) { return n; }, first, 4).get(), 4);
  EXPECT_EQ(rt.spawn([](auto&&... all) { return sizeof...(all); }, first, 4).get(), 2u);
}

TEST(future_of_nothing, that_failed_fails_the_task_after_it) {
  runtime rt(options{.threads = 1});
  const future<void> first = rt.spawn([] { throw std::runtime_error("no"); });
  EXPECT_EQ(code_of([&] { rt.spawn([](int n) { return n; }, first, 4).get(); }), errc::dependency_failed);
}

TEST(future_of_nothing, orders_the_chunks_of_a_for_each_and_recorded_calls) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({8}, tiles(4), 1, "a");
  int seen = 0;
  const future<void> first = rt.spawn([&] { seen = 7; });
  rt.for_each(grid(8), [&](ints v) { v(v.lo(0)) = seen; }, first, update(a)).get();
  EXPECT_EQ(a.read()(4), 7);
  const graph g = rt.record([&](recorder& r) {
    const auto f = r.spawn([&] { seen = 9; });
    r.spawn([&](ints v) { v(0) = seen; }, f, update(a));
  });
  rt.run(g).get();
  EXPECT_EQ(a.read()(0), 9);
}

// ---- values that fill -----------------------------------------------------------------------------------------------

template <class T, class V>
concept may_fill = requires(const array<T, 1>& a, V v) { read(a, window(1).fill(v)); };

static_assert(may_fill<float, float> && may_fill<int, int> && may_fill<double, double>);
static_assert(!may_fill<float, int>, "four bytes of an int are no float");
static_assert(!may_fill<float, double> && !may_fill<int, unsigned> && !may_fill<double, long>);

TEST(fill, of_another_type_in_a_mapper_without_one_is_an_error) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<float>({3}, tiles(3), 0, "a");
  const auto use = [&](const window_mapper<1>& w) {
    rt.for_each(grid(3), [](view<const float, 1>) {}, read(a, w)).get();
  };
  EXPECT_EQ(code_of([&] { use(window(1).fill(1)); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { use(window(1).fill(1u)); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { use(window(1).fill(1.0f)); }), std::nullopt);
  EXPECT_EQ(code_of([&] { use(window(1).fill(1).clamp()); }), std::nullopt);
  const auto composed = [](const box<1>& c, const extent<1>& e) { return window(1).fill(1)(c, e); };
  EXPECT_EQ(code_of([&] { rt.for_each(grid(3), [](view<const float, 1>) {}, read(a, composed)); }), errc::bad_argument);
}

TEST(fill, shows_its_value_beyond_the_edge) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<float>({3}, tiles(3), 2, "a");
  float seen = 0;
  rt.for_each(
        grid(3).chunks(3), [&](view<const float, 1> v) { seen = v(-1) + v(3) + v(0); }, read(a, window(1).fill(1.5f)))
      .get();
  EXPECT_EQ(seen, 5.0f);
}

// ---- cost models ----------------------------------------------------------------------------------------------------

TEST(closures, get_text_between_quotes_as_a_pointer) {
  runtime rt(options{.threads = 1});
  EXPECT_EQ(rt.spawn([](const char* s, int n) { return s[n]; }, "some words", 5).get(), 'w');
  static const int numbers[] = {1, 2, 3};
  EXPECT_EQ(rt.spawn([](const int* n) { return n[2]; }, numbers).get(), 3);
}

TEST(closures, of_different_types_have_cost_models_of_their_own) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  const auto one = [] {};
  const auto other = [] {};  // of another type, with the same signature
  for (int i = 0; i < 20; ++i) rt.spawn(one).get();
  const auto known = rt.spawn(one);
  const auto unknown = rt.spawn(other);
  rt.wait_all();
  EXPECT_TRUE(rt.explain(known).predicted);
  EXPECT_FALSE(rt.explain(unknown).predicted);
}

template <int N>
struct functor {
  int operator()() const { return N; }
};

TEST(closures, of_a_template_have_cost_models_of_their_own) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  for (int i = 0; i < 20; ++i) rt.spawn(functor<1>()).get();
  const auto known = rt.spawn(functor<1>());
  const auto unknown = rt.spawn(functor<2>());
  rt.wait_all();
  EXPECT_TRUE(rt.explain(known).predicted);
  EXPECT_FALSE(rt.explain(unknown).predicted);
}

}  // namespace
