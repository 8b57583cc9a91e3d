// What this file is for: waits that a budget of host memory makes endless end with an error.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <latch>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;

constexpr index_t size = 1000;
using numbers = array<long, 1>;

options with_tiles(int count) {
  options o;
  o.threads = 4;
  o.memory_bytes = static_cast<std::uint64_t>(count) * size * sizeof(long);
  o.spill_directory = testing::TempDir();
  return o;
}
numbers tile_of(runtime& rt, long value) { return rt.filled<long>({size}, tiles(size), value); }

errc code_of(const auto& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const error& e) {
    if (text) *text = e.what();
    return e.code();
  }
  return errc{-1};
}

class budget_waits : public testing::TestWithParam<int> {};

// As many bodies as there are tiles hold one each, and all wait for tasks that need one more.
TEST_P(budget_waits, of_bodies_that_hold_all_memory_fail_for_the_youngest_and_the_others_end) {
  const int count = GetParam();
  runtime rt(with_tiles(count));
  std::latch all_hold(count);
  std::vector<numbers> mine, other;
  for (int i = 0; i < count; ++i) mine.push_back(tile_of(rt, i)), other.push_back(tile_of(rt, 100 + i));
  std::vector<future<long>> outer;
  for (int i = 0; i < count; ++i)
    outer.push_back(rt.spawn(
        [&, i](view<long, 1> v) {
          all_hold.arrive_and_wait();
          const long got =
              rt.spawn([](view<const long, 1> w) { return w(1); }, read(other[static_cast<std::size_t>(i)])).get();
          v(0) = got;
          return got;
        },
        update(mine[static_cast<std::size_t>(i)])));
  int right = 0, told = 0;
  for (int i = 0; i < count; ++i) {
    std::string text;
    long got = 0;
    const errc e = code_of([&] { got = outer[static_cast<std::size_t>(i)].get(); }, &text);
    right += got == 100 + i;
    told += e == errc::task_failed && text.find("options::memory_bytes") != std::string::npos;
  }
  EXPECT_EQ(right + told, count);
  EXPECT_EQ(told, 1);
}
INSTANTIATE_TEST_SUITE_P(tiles, budget_waits, testing::Values(2, 3, 4));

// A limited wait is no standstill: the body goes on by itself.
TEST(budget_wait, with_a_limit_is_left_to_its_body) {
  runtime rt(with_tiles(2));
  std::latch both_hold(2);
  const auto a = tile_of(rt, 1), b = tile_of(rt, 2), c = tile_of(rt, 3), d = tile_of(rt, 4);
  const auto body = [&](const numbers& other) {
    return [&, other](view<long, 1>) {
      both_hold.arrive_and_wait();
      const auto f = rt.spawn([](view<const long, 1> w) { return w(1); }, read(other));
      return f.wait_for(std::chrono::milliseconds(20));
    };
  };
  const auto first = rt.spawn(body(c), update(a)), second = rt.spawn(body(d), update(b));
  first.get();
  second.get();
  rt.wait_all();
}

TEST(budget_wait, for_a_task_that_a_host_view_leaves_no_room_for_is_refused) {
  runtime rt(with_tiles(1));
  const auto a = tile_of(rt, 1), b = tile_of(rt, 2);
  {
    const auto v = a.read();
    const auto f = rt.spawn([](view<const long, 1> w) { return w(0); }, read(b));
    EXPECT_EQ(code_of([&] { f.get(); }), errc::would_deadlock);
    EXPECT_EQ(code_of([&] { b.read(); }), errc::would_deadlock);
    EXPECT_EQ(v(0), 1);
  }
  EXPECT_EQ(b.read()(0), 2);
}

}  // namespace
