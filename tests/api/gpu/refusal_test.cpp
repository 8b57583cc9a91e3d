// What this file is for: calls that a device cannot run as they are: others run them, which is said.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

// Groups of 2048 work-items, more than the software GPU runs.
constexpr auto wide = kernel<inout<std::uint32_t, 1>>("wide")
                          .on(cpu,
                              [](view<std::uint32_t, 1> a) {
                                for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += 1;
                              })
                          .on(sim, source{R"(
GPU_KERNEL void wide(GPU_INOUT(unsigned, a)) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += 1;
})",
                                          "wide",
                                          {2048, 1, 1}});

// A single column: a group for each sixteen rows along the second dimension of the grid, which ends at 65,535.
constexpr auto tall = kernel<out<std::uint8_t, 2>>("tall")
                          .on(cpu,
                              [](view<std::uint8_t, 2> a) {
                                for (index_t y = a.lo(0); y < a.hi(0); ++y) a(y, 0) = 7;
                              })
                          .on(sim, source{R"(
GPU_KERNEL void tall(GPU_OUT(unsigned char, a)) {
  const long y = GPU_LO(a, 0) + GPU_GLOBAL_ID(1);
  if (y < GPU_HI(a, 0) && GPU_GLOBAL_ID(0) == 0) GPU_AT2(a, y, 0) = 7;
})",
                                          "tall"});

options with_sim() {
  options o;
  o.threads = 1;
  o.devices = {{"sim:0"}};
  o.cost_cache = "none";
  o.eager_devices = true;
  return o;
}

const scope sim_then_cpu = scope::executor("sim:0") | scope::cpu();

TEST(gpu_refusals, let_the_task_run_elsewhere_and_are_explained) {
  runtime rt(with_sim());
  auto a = rt.filled<std::uint32_t>({100}, tiles(100), 0);
  explanation told;
  std::uint32_t runs = 0;
  for (; runs < 200; ++runs) {
    auto f = rt.spawn({.where = sim_then_cpu}, wide, update(a));
    f.get();
    told = rt.explain(f);
    if (std::ranges::any_of(told.candidates, [](const candidate& c) { return !c.left_out.empty(); })) break;
  }
  ASSERT_LT(runs, 200u) << "the device was never tried";
  EXPECT_EQ(a.read()(99), runs + 1);
  EXPECT_EQ(told.executor, "cpu:0");
  int chosen = 0;
  for (const candidate& c : told.candidates) {
    chosen += c.chosen;
    EXPECT_EQ(c.chosen, c.executor == "cpu:0");
    if (c.executor != "sim:0") continue;
    EXPECT_NE(c.left_out.find("1024 work-items"), std::string::npos) << c.left_out;
  }
  EXPECT_EQ(chosen, 1) << told.text();
  EXPECT_NE(told.text().find("sim:0 could not run it"), std::string::npos) << told.text();
}

TEST(gpu_refusals, are_reported_once) {
  runtime rt(with_sim());
  auto a = rt.filled<std::uint32_t>({1000}, tiles(100), 0);
  for (int i = 0; i < 20; ++i) rt.for_each({.where = sim_then_cpu}, grid(1000), wide, update(a));
  auto b = rt.filled<std::uint32_t>({100}, tiles(100), 0);
  EXPECT_THROW(rt.spawn({.where = scope::gpu()}, wide, update(b)).get(), error);
  rt.wait_all();
  EXPECT_EQ(a.read()(999), 20u);
  const auto remarks = rt.report().remarks;
  const auto is_about_it = [](const std::string& s) {
    return s.find("wide") != std::string::npos && s.find("sim:0") != std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(remarks, is_about_it), 1) << testing::PrintToString(remarks);
}

// A thread that waits ends the device's jobs itself, in the middle of a scheduling decision: one runtime of some
// hundreds hung.
TEST(gpu_refusals, hold_up_no_thread_that_waits_for_them) {
  for (int i = 0; i < 400; ++i) {
    runtime rt(with_sim());
    auto many = rt.filled<std::uint32_t>({1000}, tiles(100), 0);
    for (int round = 0; round < 20; ++round) rt.for_each({.where = sim_then_cpu}, grid(1000), wide, update(many));
    auto a = rt.filled<std::uint32_t>({100}, tiles(100), 0);
    auto f = rt.spawn({.where = scope::gpu()}, wide, update(a));
    EXPECT_EQ(test::code_of([&] { f.get(); }), errc::no_executor) << i;
  }
}

TEST(gpu_refusals, without_anybody_else_name_the_device_and_the_reason) {
  runtime rt(with_sim());
  auto a = rt.filled<std::uint32_t>({100}, tiles(100), 0);
  auto f = rt.spawn({.where = scope::gpu()}, wide, update(a));
  try {
    f.get();
    FAIL() << "it ran";
  } catch (const task_failed& e) {
    const std::string text = e.what();
    EXPECT_EQ(e.code(), errc::no_executor) << text;
    EXPECT_NE(text.find("wide"), std::string::npos) << text;
    EXPECT_NE(text.find("sim:0"), std::string::npos) << text;
    EXPECT_NE(text.find("1024 work-items"), std::string::npos) << text;
  }
}

TEST(gpu_refusals, of_grids_that_a_device_does_not_have_let_the_cores_run_the_task) {
  constexpr index_t rows = 16 * 65'536;
  runtime rt(with_sim());
  auto a = rt.array<std::uint8_t>({rows, 1}, tiles(rows, 1));
  rt.spawn({.where = sim_then_cpu}, tall, write(a)).get();
  EXPECT_EQ(a.read()(rows - 1, 0), 7);
  EXPECT_THROW(rt.spawn({.where = scope::gpu()}, tall, write(a)).get(), error);
  auto b = rt.array<std::uint8_t>({rows - 16, 1}, tiles(rows, 1));
  rt.spawn({.where = scope::gpu()}, tall, write(b)).get();
  EXPECT_EQ(b.read()(rows - 17, 0), 7);
}

// Tasks that are enqueued behind a refused one wait for where it runs instead.
TEST(gpu_refusals, in_the_middle_of_a_chain_keep_its_order) {
  constexpr auto stir = kernel<inout<std::uint32_t, 1>>("stir").on(gpu, source{R"(
GPU_KERNEL void stir(GPU_INOUT(unsigned, a)) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = GPU_AT1(a, i) * 3;
})",
                                                                               "stir"});
  runtime rt(with_sim());
  auto a = rt.filled<std::uint32_t>({100}, tiles(100), 1);
  std::uint32_t expected = 1;
  for (int i = 0; i < 12; ++i) {
    rt.spawn({.where = scope::gpu()}, stir, update(a));
    rt.spawn({.where = sim_then_cpu}, wide, update(a));
    expected = expected * 3 + 1;
  }
  EXPECT_EQ(a.read()(50), expected);
}

}  // namespace
