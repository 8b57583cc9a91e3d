// What this file is for: devices that have never run a kernel: they are tried out, and no job waits for that.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

constexpr source on_sim{R"(
GPU_KERNEL void add_two(GPU_INOUT(int, a)) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += 2;
})",
                        "add_two"};

constexpr auto add_two = kernel<inout<int, 1>>("add_two")
                             .on(cpu,
                                 [](view<int, 1> a) {
                                   for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += 2;
                                 })
                             .on(sim, on_sim);

constexpr auto add_three = kernel<inout<int, 1>>("add_three")
                               .on(gpu, source{R"(
GPU_KERNEL void add_three(GPU_INOUT(int, a)) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += 3;
})",
                                               "add_three"});

options with_sim(bool eager) {
  options o;
  o.threads = 2;
  o.devices = {{"sim:0"}};
  o.cost_cache = "none";
  o.eager_devices = eager;
  return o;
}

std::uint64_t tasks_on_sim(runtime& rt) {
  for (const executor_report& e : rt.report().executors)
    if (e.name == "sim:0") return e.tasks;
  return 0;
}

index_space<1> by_tiles(index_t n) { return {{n}, {16}}; }

TEST(trials, of_a_device_are_not_made_in_a_small_job_which_would_wait_for_them) {
  runtime rt(with_sim(false));
  auto a = rt.filled<int>({160}, tiles(16), 1);
  for (int i = 0; i < 3; ++i) rt.for_each(by_tiles(160), add_two, update(a)).get();
  EXPECT_EQ(a.read()(159), 7);
  EXPECT_EQ(tasks_on_sim(rt), 0u);
}

TEST(trials, are_made_at_once_where_the_options_say_so) {
  runtime rt(with_sim(true));
  auto a = rt.filled<int>({160}, tiles(16), 1);
  rt.for_each(by_tiles(160), add_two, update(a)).get();
  EXPECT_EQ(a.read()(159), 3);
  EXPECT_NE(tasks_on_sim(rt), 0u);
}

TEST(trials, are_no_question_where_only_the_device_may_run_the_task) {
  runtime rt(with_sim(false));
  auto a = rt.filled<int>({16}, tiles(16), 1);
  rt.spawn({.where = scope::executor("sim:0")}, add_two, update(a)).get();
  EXPECT_EQ(a.read()(15), 3);
  EXPECT_EQ(tasks_on_sim(rt), 1u);
}

// The fault of the text is told by the task that needs it, not by the look in advance.
TEST(trials, of_a_text_that_does_not_compile_harm_nobody_else) {
  static constexpr auto wrong =
      kernel<inout<int, 1>>("wrong")
          .on(cpu, [](view<int, 1> a) { a(a.lo(0)) += 1; })
          .on(sim, source{"GPU_KERNEL void wrong(GPU_INOUT(int, a)) { no such thing }", "wrong"});
  runtime rt(with_sim(false));
  auto a = rt.filled<int>({16}, tiles(1), 0);
  for (int i = 0; i < 50; ++i) rt.for_each({.where = scope::any()}, index_space<1>{{16}, {1}}, wrong, update(a)).get();
  auto v = a.read();
  for (index_t i = 0; i < 16; ++i) EXPECT_EQ(v(i), 50);
}

// The bodies that keep the cores busy, as far as anybody knows, wait for the very tasks that a device might try.
TEST(trials, hold_up_nobody_who_waits_inside_a_body) {
  runtime rt(with_sim(false));
  auto a = rt.filled<int>({16 * 12}, tiles(16), 1);
  std::vector<future<void>> outer;
  for (index_t i = 0; i < 12; ++i)
    outer.push_back(
        rt.spawn([&rt, part = a.sub({{16 * i}, {16 * i + 16}})] { rt.spawn(add_two, update(part)).get(); }));
  for (auto& f : outer) ASSERT_TRUE(f.wait_for(test::patience));
  auto v = a.read();
  for (index_t i = 0; i < 16 * 12; ++i) EXPECT_EQ(v(i), 3) << i;
}

TEST(trials, leave_recorded_graphs_on_devices_of_two_kinds_right) {
  options o = with_sim(false);
  o.devices.push_back({"opencl"});
  runtime rt(o);
  if (rt.executors().size() < 3) GTEST_SKIP() << "no OpenCL device";
  auto a = rt.filled<int>({16}, tiles(16), 0);
  const graph g = rt.record([&](recorder& r) {
    for (int i = 0; i < 4; ++i) r.spawn({.where = scope::gpu()}, add_three, update(a));
  });
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 10; ++i) rt.run(g);
    rt.wait_all();
  }
  EXPECT_EQ(a.read()(15), 30 * 10 * 4 * 3);
}

// The same, slowly on the cores: tasks that take no time are never worth sending away.
constexpr auto add_two_slowly = kernel<inout<int, 1>>("add_two_slowly")
                                    .on(cpu,
                                        [](view<int, 1> a) {
                                          for (volatile int i = 0; i < 50'000;) {
                                            const int next = i + 1;
                                            i = next;
                                          }
                                          for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += 2;
                                        })
                                    .on(sim, on_sim);

TEST(trials, are_made_once_they_cost_little_beside_what_has_been_done) {
  runtime rt(with_sim(false));
  constexpr index_t n = 16 * 1000;
  auto a = rt.filled<int>({n}, tiles(16), 1);
  int jobs = 0;
  const auto end = std::chrono::steady_clock::now() + test::patience;
  while (tasks_on_sim(rt) == 0 && std::chrono::steady_clock::now() < end) {
    rt.for_each(by_tiles(n), add_two_slowly, update(a)).get();
    ++jobs;
  }
  EXPECT_NE(tasks_on_sim(rt), 0u) << "after " << jobs << " jobs";
  auto v = a.read();
  for (index_t i = 0; i < n; ++i) ASSERT_EQ(v(i), 1 + 2 * jobs) << i;
}

}  // namespace
