// What this file is for: a kernel that nobody has measured is shared among nodes as soon as it is known to take long.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

namespace {

using namespace troupe;
using namespace test;

constexpr auto put_there = kernel<out<long, 1>>("unmeasured.put").on(cpu, [](view<long, 1> v) { v(v.lo(0)) = 1; });
// The kernel takes so long, whatever else the machine does.
constexpr auto look_long =
    kernel<in<long, 1>, out<int, 1>>("unmeasured.look").on(cpu, [](view<const long, 1> v, view<int, 1> to) {
      std::this_thread::sleep_for(20ms);
      to(to.lo(0)) = static_cast<int>(v(v.lo(0)));
    });
// As long as its data says.
constexpr auto put_time =
    kernel<out<long, 1>, long>("unmeasured.put_time").on(cpu, [](view<long, 1> v, long ms) { v(v.lo(0)) = ms; });
constexpr auto look_as_told =
    kernel<in<long, 1>, inout<int, 1>>("unmeasured.look_as_told").on(cpu, [](view<const long, 1> v, view<int, 1> to) {
      std::this_thread::sleep_for(std::chrono::milliseconds(v(v.lo(0))));
      ++to(to.lo(0));
    });
std::atomic<bool> is_told{true};
// The kernel takes nothing, a millisecond, or until the test has seen the end of the first.
constexpr auto look_until_told =
    kernel<inout<int, 1>, int>("unmeasured.look_until_told").on(cpu, [](view<int, 1> to, int how) {
      if (how == 1) std::this_thread::sleep_for(1ms);
      if (how == 2) is_told.wait(false);
      ++to(to.lo(0));
    });
constexpr auto take = kernel<inout<int, 1>, long>("unmeasured.take").on(cpu, [](view<int, 1> to, long ms) {
  if (ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  ++to(to.lo(0));
});
const offer offered{put_there, look_long, put_time, look_as_told, look_until_told, take};

TEST(nodes_unmeasured, tasks_of_an_unmeasured_kernel_do_not_all_go_where_their_data_is) {
  several_nodes n(2, 1);
  constexpr index_t count = 100, numbers = 1 << 18;  // 2 MiB each
  const auto data = n.a.array<long>({count * numbers}, tiles(numbers));
  const auto results = n.a.filled<int>({count}, tiles(1), 0);
  for (index_t i = 0; i < count; ++i)
    n.a.spawn(on("b"), put_there, write(data.sub(box<1>{{i * numbers}, {(i + 1) * numbers}})));
  n.a.wait_all();
  const std::uint64_t before = tasks_of(n.a, "b");
  for (index_t i = 0; i < count; ++i)
    n.a.spawn(task_options{.where = scope::at("b") | scope::at("c")}, look_long,
              read(data.sub(box<1>{{i * numbers}, {(i + 1) * numbers}})), write(results.sub(box<1>{{i}, {i + 1}})));
  n.a.wait_all();
  EXPECT_GE(tasks_of(n.a, "c"), 8u);
  EXPECT_EQ(tasks_of(n.a, "b") - before + tasks_of(n.a, "c"), static_cast<std::uint64_t>(count));
  const auto v = results.read();
  for (index_t i = 0; i < count; ++i) ASSERT_EQ(v(i), 1);
}

// Returns how many c runs of a hundred tasks that take 20 ms on b, where their data is, and that took nothing before.
std::uint64_t taken_back() {
  several_nodes n(2, 1);
  constexpr index_t count = 100, numbers = 1 << 16;  // 512 KiB each
  const auto data = n.a.array<long>({2 * count * numbers}, tiles(numbers));
  const auto results = n.a.filled<int>({2 * count}, tiles(1), 0);
  const auto of = [&](index_t i) { return box<1>{{i * numbers}, {(i + 1) * numbers}}; };
  for (index_t i = 0; i < 2 * count; ++i) n.a.spawn(on("b"), put_time, write(data.sub(of(i))), i < count ? 0L : 20L);
  n.a.wait_all();
  const auto look = [&](index_t i) {
    n.a.spawn(task_options{.where = scope::at("b") | scope::at("c")}, look_as_told, read(data.sub(of(i))),
              update(results.sub(box<1>{{i}, {i + 1}})));
  };
  for (index_t i = 0; i < count; ++i) {
    look(i);
    n.a.wait_all();
  }
  const std::uint64_t on_b = tasks_of(n.a, "b"), on_c = tasks_of(n.a, "c");
  for (index_t i = count; i < 2 * count; ++i) look(i);
  n.a.wait_all();
  EXPECT_EQ(tasks_of(n.a, "b") - on_b + tasks_of(n.a, "c") - on_c, static_cast<std::uint64_t>(count));
  const auto v = results.read();
  for (index_t i = 0; i < 2 * count; ++i) EXPECT_EQ(v(i), 1) << "each once";
  return tasks_of(n.a, "c") - on_c;
}

// One in eight bodies that used to take nothing is timed, so some have to run before it is known that they take long;
// five or so of the hundred go to c when nothing is taken back, thirty-five when it is. On a busy machine copies to c
// may be measured to cost more than a task is worth: then it is right to leave it there, and other nodes are asked.
TEST(nodes_unmeasured, tasks_that_were_sent_are_taken_back_when_they_take_much_longer_than_they_used_to) {
  std::uint64_t most = 0;
  for (int tries = 0; tries < 3 && most < 8; ++tries) most = std::max(most, taken_back());
  EXPECT_GE(most, 8u);
}

// A kernel of which thousands of runs took nothing is known to take long after some runs, though of the short ones one
// in eight is learned only.
TEST(nodes_unmeasured, tasks_are_shared_soon_after_they_have_begun_to_take_long) {
  several_nodes n(1, 1);
  constexpr index_t count = 22;
  const auto results = n.a.filled<int>({count}, tiles(1), 0);
  const auto round = [&](long ms) {
    for (index_t i = 0; i < count; ++i)
      n.a.spawn(task_options{.where = scope::here() | scope::at("b")}, take, update(results.sub(box<1>{{i}, {i + 1}})),
                ms);
    n.a.wait_all();
  };
  for (int i = 0; i < 60; ++i) round(0);
  for (int i = 0; i < 2; ++i) round(20);
  const std::uint64_t on_b = tasks_of(n.a, "b");
  round(20);
  const std::uint64_t there = tasks_of(n.a, "b") - on_b;
  EXPECT_GE(there, 5u);
  EXPECT_LE(there, static_cast<std::uint64_t>(count) - 5);
  const auto v = results.read();
  for (index_t i = 0; i < count; ++i) ASSERT_EQ(v(i), 63);
}

// The thread of the node has taken up to thirty-two tasks together, as they used to take nothing, and tells their ends
// together.
TEST(nodes_unmeasured, the_end_of_a_task_is_told_before_those_taken_with_it_have_ended) {
  several_nodes n(1, 1);
  constexpr index_t count = 64;
  const auto results = n.a.filled<int>({count}, tiles(1), 0);
  for (index_t i = 0; i < count; ++i) n.a.spawn(on("b"), look_until_told, update(results.sub(box<1>{{i}, {i + 1}})), 0);
  n.a.wait_all();
  is_told = false;
  std::vector<future<void>> ends;
  for (index_t i = 0; i < count; ++i)
    ends.push_back(n.a.spawn(on("b"), look_until_told, update(results.sub(box<1>{{i}, {i + 1}})), i < 8 ? 1 : 2));
  const bool known = ends[0].wait_for(10s);
  is_told = true;
  is_told.notify_all();
  EXPECT_TRUE(known);
  n.a.wait_all();
  const auto v = results.read();
  for (index_t i = 0; i < count; ++i) ASSERT_EQ(v(i), 2);
}

}  // namespace
