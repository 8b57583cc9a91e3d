// What this file is for: mappers and boxes with numbers that cannot be meant: refused with words, or taken as said.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "tests/support/sanitizers.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using troupe::index_t;

constexpr index_t largest = std::numeric_limits<index_t>::max();

class window_radius : public testing::Test {
 protected:
  template <class M>
  auto error_with(M mapper, index_t chunk = 3) {
    return error_of([&] {
      rt_.for_each(
             task_options{.name = "blur"}, grid(10).chunks(chunk), [](view<const int, 1>) {}, read(a_, mapper))
          .get();
    });
  }
  runtime rt_{options{.threads = 2}};
  array<int, 1> a_ = rt_.filled<int>({10}, tiles(3), 1, "heights");
};

TEST_F(window_radius, below_zero_is_an_error) {
  for (const index_t radius : {index_t{-1}, index_t{-4}, std::numeric_limits<index_t>::min()})
    for (const auto& w : {window(radius), window(radius).clamp(), window(radius).wrap()}) {
      const auto e = error_with(w);
      ASSERT_TRUE(e) << radius;
      EXPECT_EQ(e->code, errc::bad_argument);
      EXPECT_TRUE(e->says("radius " + std::to_string(radius))) << e->text;
      EXPECT_TRUE(e->says("task 'blur': array 'heights': ")) << e->text;
    }
}

TEST_F(window_radius, beyond_what_can_be_addressed_is_an_error) {
  for (const index_t radius : {window_radius_max + 1, index_t{1} << 60, index_t{1} << 61, index_t{1} << 62, largest}) {
    for (const auto& w : {window(radius).clamp(), window(radius).wrap()}) {
      const auto e = error_with(w);
      ASSERT_TRUE(e) << radius;
      EXPECT_EQ(e->code, errc::bad_argument);
      EXPECT_TRUE(e->says("2^47")) << e->text;
    }
    EXPECT_EQ(error_with(window(radius).fill(7))->code, errc::bad_argument);
  }
  // No dimension for itself is too large, all together are.
  auto m = rt_.filled<double>({4, 4}, tiles(2, 2), 1.0, "m");
  const auto e = error_of([&] {
    rt_.for_each(
        grid(4, 4), [](view<const double, 2>) {}, read(m, window(window_radius_max, window_radius_max).clamp()));
  });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::bad_argument);
  EXPECT_TRUE(e->says("'m'")) << e->text;
}

TEST_F(window_radius, of_any_size_is_all_of_the_array_where_the_edge_clips) {
  for (const index_t radius :
       {index_t{10}, index_t{1} << 47, index_t{1} << 60, index_t{1} << 62, largest - 1, largest}) {
    std::atomic<int> bodies{0}, all_of_it{0};
    const auto look = [&](view<const int, 1> v) {
      ++bodies;
      if (v.lo(0) == 0 && v.hi(0) == v.size(0) && v.at(v.hi(0) - 1) == 1) all_of_it += static_cast<int>(v.size(0));
    };
    rt_.for_each(grid(10).chunks(3), look, read(a_, window(radius))).get();
    EXPECT_EQ(bodies, 4);
    EXPECT_EQ(all_of_it, 40) << radius;
    rt_.for_each(grid(5).chunks(3), look, read(a_.sub({{4}, {9}}), window(radius))).get();
    EXPECT_EQ(bodies, 6);
    EXPECT_EQ(all_of_it, 50) << radius;
  }
}

// A limit of address space, so that no machine has that much.
TEST_F(window_radius, for_which_there_is_no_memory_is_an_error_with_array_and_bytes) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers want address space, and end the process where there is no memory";
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit few = before;
  few.rlim_cur = rlim_t{64} << 30;
  setrlimit(RLIMIT_AS, &few);
  for (const index_t radius : {index_t{1} << 34, index_t{1} << 46, window_radius_max}) {
    const auto e = error_with(window(radius).clamp(), 10);
    ASSERT_TRUE(e) << radius;
    EXPECT_EQ(e->code, errc::out_of_memory);
    EXPECT_TRUE(e->says("'heights'") && e->says(std::to_string(4 * (2 * radius + 10)) + " bytes") &&
                e->says("smaller windows") && e->says("blur"))
        << e->text;
  }
  setrlimit(RLIMIT_AS, &before);
}

TEST(slices, along_a_dimension_that_the_array_lacks_are_an_error) {
  runtime rt(options{.threads = 1});
  auto line = rt.filled<int>({10}, tiles(3), 1, "line");
  auto sheet = rt.filled<int>({4, 6}, tiles(2, 3), 1, "sheet");
  std::atomic<int> ran{0};
  const auto of_line = [&](int d) {
    return error_of([&] {
      rt.for_each(
            grid(10), [&](view<const int, 1>) { ++ran; }, read(line, slice(d)))
          .get();
    });
  };
  const auto of_sheet = [&](int d) {
    return error_of([&] {
      rt.for_each(
            grid(4, 6), [&](view<const int, 2>) { ++ran; }, read(sheet, slice(d)))
          .get();
    });
  };
  for (const auto& e : {of_line(5), of_line(1), of_line(-1), of_sheet(2), of_sheet(-1)}) {
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code, errc::bad_argument);
    EXPECT_TRUE(e->says("slice(") && e->says("name one of 0 to")) << e->text;
  }
  EXPECT_TRUE(of_line(5)->says("array 'line': slice(5)")) << of_line(5)->text;
  EXPECT_EQ(ran, 0);
  EXPECT_FALSE(of_line(0) || of_sheet(0) || of_sheet(1));
}

TEST(mappers, that_complain_do_so_with_kernel_task_and_array) {
  constexpr auto blur = kernel<in<int, 1>, out<int, 1>>("blur").on(cpu, [](view<const int, 1>, view<int, 1>) {});
  runtime rt(options{.threads = 1});
  auto from = rt.filled<int>({10}, tiles(3), 1, "from"), to = rt.array<int>({10}, tiles(3), "to");
  const auto told = [](auto&& f) {
    const auto e = error_of(f);
    EXPECT_TRUE(e);
    return e ? e->text : std::string();
  };
  EXPECT_TRUE(told([&] {
                rt.for_each(grid(10), blur, read(from, window(-1)), write(to));
              }).starts_with("kernel 'blur': array 'from': window: radius -1"));
  EXPECT_TRUE(told([&] {
                rt.for_each({.name = "soft"}, grid(10), blur, read(from), write(to, slice(3)));
              }).starts_with("task 'soft', kernel 'blur': array 'to': slice(3)"));
  EXPECT_TRUE(told([&] {
                rt.for_each(grid(10), blur, read(from), write(to, fixed<1>{{{0}, {4}}}));
              }).starts_with("kernel 'blur': array 'to': two chunks"));
  EXPECT_TRUE(told([&] {
                rt.for_each(grid(10), blur, read(from, fixed<1>{{{0}, {14}}}), write(to));
              }).starts_with("kernel 'blur': array 'from': the access to"));
}

TEST(chunk_sizes, below_zero_name_the_task_and_the_size) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({10}, tiles(3), 1, "a");
  const auto body = [](view<int, 1>) {};
  const auto of_chunk =
      error_of([&] { rt.for_each(task_options{.name = "shade"}, grid(10).chunks(-2), body, update(a)); });
  ASSERT_TRUE(of_chunk);
  EXPECT_EQ(of_chunk->code, errc::bad_argument);
  EXPECT_TRUE(of_chunk->says("'shade'") && of_chunk->says("-2") && of_chunk->says("chunks")) << of_chunk->text;
  const auto of_space = error_of([&] { rt.for_each(grid(-7), body, update(a)); });
  ASSERT_TRUE(of_space);
  EXPECT_TRUE(of_space->says("extent -7")) << of_space->text;
}

TEST(chunk_sizes, near_the_largest_number_make_chunks_that_do_not_overlap) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({10}, tiles(3), 1, "a");
  std::atomic<int> ran{0};
  const auto count = [&](view<const int, 1>) { ++ran; };
  rt.for_each(grid(largest).chunks(index_t{1} << 62), count, read(a, all{})).get();
  EXPECT_EQ(ran, 2);
  rt.for_each(grid(10).chunks(largest), count, read(a, all{})).get();
  EXPECT_EQ(ran, 3);
}

TEST(sub_arrays, without_elements_are_refused_as_what_they_are) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({10}, tiles(3), 1, "a");
  for (const auto& b : {box<1>{{5}, {5}}, box<1>{{6}, {5}}}) {
    const auto e = error_of([&] { a.sub(b); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code, errc::out_of_bounds);
    EXPECT_TRUE(e->says("'a'") && e->says("has no elements") && !e->says("not inside")) << e->text;
  }
  EXPECT_TRUE(error_of([&] { a.sub({{5}, {11}}); })->says("not inside"));
}

template <class Array>
concept takes_four_numbers = requires(const Array& a) {
  a.sub({0, 4, 0, 4});
};
template <class Array>
concept takes_corners = requires(const Array& a) {
  a.sub({{0, 4}, {0, 4}});
};
static_assert(!takes_four_numbers<array<int, 2>> && takes_corners<array<int, 2>>);
static_assert(!std::is_constructible_v<box<2>, int, int, int, int> && std::is_constructible_v<box<1>, int, int>);

TEST(boxes, hold_points_that_are_given_as_numbers) {
  constexpr box<1> line{{2}, {5}};
  static_assert(line.contains({3}) && !line.contains({5}) && line.contains({{2}, {4}}) && line.contains({2, 4}));
  static_assert(line == box<1>{2, 5});
  constexpr box<2> sheet{{0, 2}, {4, 6}};
  static_assert(sheet.contains({3, 2}) && !sheet.contains({3, 1}) && sheet.contains({{0, 3}, {4, 4}}));
  EXPECT_EQ(to_string(box<1>{2, 5}), "[2,5)");
}

TEST(resource_amounts, that_cannot_be_had_name_the_task_and_what_to_do) {
  options o{.threads = 1};
  o.resources = {{"io", 2}};
  runtime rt(o);
  const auto asking = [&](double amount) {
    return error_of([&] { rt.spawn(task_options{.resources = {{"io", amount}}, .name = "load"}, [] {}).get(); });
  };
  const auto many = asking(3);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->code, errc::no_resource);
  EXPECT_TRUE(many->says("'load'") && many->says("3 asked, 2 is the maximum") && many->says("options::resources"))
      << many->text;
  const auto negative = asking(-1), none = asking(std::numeric_limits<double>::quiet_NaN());
  ASSERT_TRUE(negative && none);
  EXPECT_EQ(negative->code, errc::bad_argument);
  EXPECT_TRUE(negative->says("'load'") && negative->says("negative")) << negative->text;
  EXPECT_EQ(none->code, errc::bad_argument);
  EXPECT_TRUE(none->says("NaN") && !none->says("negative")) << none->text;
}

TEST(scopes, that_are_empty_speak_of_devices_only_where_one_is_missing) {
  options o{.threads = 1};
  o.devices = {{"sim:0"}};
  o.cost_cache = "none";
  runtime rt(o);
  const auto in = [&](const scope& s) { return error_of([&] { rt.spawn(task_options{.where = s}, [] {}).get(); }); };
  const auto both = in(scope::executor("cpu:0") & scope::executor("sim:0"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->code, errc::no_executor);
  EXPECT_FALSE(both->says("options::devices")) << both->text;
  const auto absent = in(scope::executor("sim:7"));
  ASSERT_TRUE(absent);
  EXPECT_TRUE(absent->says("options::devices")) << absent->text;
}

TEST(rules_of_shapes, with_a_negative_margin_are_an_error) {
  const auto body =
      kernel<in<int, 1>, out<int, 1>>("rules_of_shapes.body").on(cpu, [](view<const int, 1>, view<int, 1>) {});
  EXPECT_EQ(code_of([&] { (void)body.requiring(covers(0, 1, -1)); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { (void)body.requiring(has_size(0, 0, -1)); }), errc::bad_argument);
}

}  // namespace
