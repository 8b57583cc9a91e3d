// What this file is for: a runtime with devices for which pinned memory is worth having: its tiles are pinned, memory
// of the caller is staged, results are exact, the bound holds, nobody waits for a long copy.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using test::word;

constexpr auto text = test::stir_text;
constexpr auto shift_text = R"(
GPU_KERNEL void shift(GPU_INOUT(unsigned, a)) {
  const long y = GPU_LO(a, 0) + GPU_GLOBAL_ID(1), x = GPU_LO(a, 1) + GPU_GLOBAL_ID(0);
  if (y < GPU_HI(a, 0) && x < GPU_HI(a, 1)) GPU_AT2(a, y, x) = GPU_AT2(a, y, x) * 3u + (unsigned)(y * 7 + x);
})";
constexpr auto stir = kernel<inout<word, 1>, word>("stir").on(gpu, source{text, "stir"});
constexpr auto touch = kernel<in<word, 1>, inout<word, 1>>("touch").on(gpu, source{text, "add"});
constexpr auto shift = kernel<inout<word, 2>>("shift").on(gpu, source{shift_text, "shift"});
word shifted(word v, index_t y, index_t x) { return v * 3 + static_cast<word>(y * 7 + x); }

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t rings_max = 2 * 3 * 2 * mib;  // of one device
constexpr index_t length = 100'000;

soft_gpu::sim_fault refusal(const char* call, int nth) {
  return {call, nth, -1, soft_gpu::simErrorMemoryAllocation, false, false, false};
}

class gpu_pinned : public testing::Test {
 protected:
  static void configure(soft_gpu::sim_options o) {
    o.pageable_blocks = true;
    ASSERT_EQ(soft_gpu::simConfigure(std::move(o)), soft_gpu::simSuccess);
  }
  ~gpu_pinned() override { EXPECT_EQ(soft_gpu::simConfigure({}), soft_gpu::simSuccess); }

  static options with(std::vector<device_use> devices) {
    options o;
    o.threads = 1;
    o.cost_cache = "none";
    o.devices = std::move(devices);
    return o;
  }
  static std::size_t pinned_most() {
    std::size_t now = 0, most = 0;
    EXPECT_EQ(soft_gpu::simPinnedBytes(&now, &most), soft_gpu::simSuccess);
    return most;
  }
  static std::size_t pinned_now() {
    std::size_t now = 0, most = 0;
    EXPECT_EQ(soft_gpu::simPinnedBytes(&now, &most), soft_gpu::simSuccess);
    return now;
  }
  // Several tiles, stirred twice, against a loop.
  static void stir_all(runtime& rt, array<word, 1>& a, const std::vector<word>& before) {
    for (const word factor : {3u, 5u}) rt.for_each(grid(static_cast<index_t>(before.size())), stir, update(a), factor);
    const auto v = a.read();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto k = static_cast<word>(i);
      ASSERT_EQ(v(static_cast<index_t>(i)), (before[i] * 3 + k) * 5 + k) << i;
    }
  }
  static std::vector<word> some_numbers(std::size_t n) {
    std::vector<word> v(n);
    std::mt19937 random(7);
    for (word& w : v) w = random();
    return v;
  }
};

TEST_F(gpu_pinned, tiles_of_the_runtime_are_copied_from_where_they_are) {
  // Nothing is staged: a copy that was would run into the fault.
  configure({.faults = {refusal("LaunchHostFunc", 1)}});
  runtime rt(with({{"sim:0"}}));
  auto a = rt.filled<word>({length}, tiles(10'000), 2);
  stir_all(rt, a, std::vector<word>(length, 2));
  EXPECT_GE(rt.report().bytes_pinned, length * sizeof(word));
  EXPECT_EQ(rt.report().bytes_pinned, pinned_now());
}

TEST_F(gpu_pinned, memory_of_the_caller_is_staged_and_comes_back_exact) {
  configure({.seed = 11});
  const std::vector<word> before = some_numbers(5'000'000);  // 20 MB
  std::vector<word> mine = before;
  {
    runtime rt(with({{"sim:0"}, {"sim:1"}}));
    auto a = rt.borrow(std::span(mine), {static_cast<index_t>(mine.size())}, tiles(1'700'000));
    stir_all(rt, a, before);
    EXPECT_EQ(rt.report().bytes_pinned, 0u);  // none of it is the runtime's
  }
  EXPECT_EQ(mine[999], (before[999] * 3 + 999) * 5 + 999);
  EXPECT_GT(pinned_most(), 0u);
  EXPECT_LE(pinned_most(), 2 * rings_max);
}

TEST_F(gpu_pinned, rows_of_a_callers_matrix_are_staged_as_they_lie) {
  configure({.seed = 12});
  constexpr index_t height = 300, width = 5000;
  std::vector<word> mine = some_numbers(height * width);
  const std::vector<word> before = mine;
  {
    runtime rt(with({{"sim:0"}}));
    auto a = rt.borrow(std::span(mine), {height, width}, tiles(130, 1700));
    rt.for_each(grid(height, width), shift, update(a));
  }
  for (index_t y = 0; y < height; ++y)
    for (index_t x = 0; x < width; ++x) {
      const auto i = static_cast<std::size_t>(y * width + x);
      ASSERT_EQ(mine[i], shifted(before[i], y, x)) << y << ' ' << x;
    }
}

TEST_F(gpu_pinned, parts_of_tiles_that_are_written_go_through_pinned_memory) {
  configure({.seed = 13, .faults = {refusal("LaunchHostFunc", 1)}});
  constexpr index_t size = 60;
  runtime rt(with({{"sim:0"}}));
  auto a = rt.filled<word>({size, size}, tiles(20, 20), 5);
  rt.spawn(shift, update(a.sub({{7, 9}, {33, 48}})));
  const auto v = a.read();
  for (index_t y = 0; y < size; ++y)
    for (index_t x = 0; x < size; ++x) {
      const bool inside = y >= 7 && y < 33 && x >= 9 && x < 48;
      ASSERT_EQ(v(y, x), inside ? shifted(5, y - 7, x - 9) : 5u) << y << ' ' << x;
    }
}

TEST_F(gpu_pinned, no_more_is_pinned_than_the_options_say) {
  configure({.seed = 14});
  options o = with({{"sim:0"}});
  o.pinned_bytes_max = 4 * mib;
  runtime rt(o);
  auto a = rt.filled<word>({5'000'000}, tiles(250'000), 2);  // 20 tiles of 1 MB
  stir_all(rt, a, std::vector<word>(5'000'000, 2));
  EXPECT_GT(rt.report().bytes_pinned, 0u);
  EXPECT_LE(rt.report().bytes_pinned, 4 * mib);
  EXPECT_LE(pinned_most(), 4 * mib + rings_max);
}

TEST_F(gpu_pinned, zero_pins_nothing_but_the_buffers) {
  configure({});
  options o = with({{"sim:0"}});
  o.pinned_bytes_max = 0;
  runtime rt(o);
  auto a = rt.filled<word>({length}, tiles(10'000), 2);
  stir_all(rt, a, std::vector<word>(length, 2));
  EXPECT_EQ(rt.report().bytes_pinned, 0u);
  EXPECT_LE(pinned_most(), rings_max);
}

TEST_F(gpu_pinned, a_driver_that_says_no_is_no_error) {
  configure({.faults = {refusal("HostRegister", 1), refusal("MallocHost", 1)}});
  runtime rt(with({{"sim:0"}}));
  auto a = rt.filled<word>({length}, tiles(10'000), 2);
  stir_all(rt, a, std::vector<word>(length, 2));
  EXPECT_EQ(rt.report().bytes_pinned, 0u);
}

TEST_F(gpu_pinned, a_budget_of_host_memory_bounds_it_and_tiles_are_spilled_as_ever) {
  configure({.memory_bytes = 3 * mib, .seed = 15});
  const test::scratch_folder folder;
  options o = with({{"sim:0"}});
  o.memory_bytes = 2 * mib;
  o.spill_directory = folder.path().string();
  runtime rt(o);
  const index_t n = 2'000'000;  // 8 MB
  auto a = rt.array<word>({n}, tiles(50'000));
  for (index_t t = 0; t < n; t += 50'000) {
    auto v = a.sub({{t}, {t + 50'000}}).write();
    for (index_t i = 0; i < 50'000; ++i) v(i) = static_cast<word>(t + i);
  }
  for (const word factor : {3u, 5u}) rt.for_each(grid(n), stir, update(a), factor);
  for (index_t t = 0; t < n; t += 50'000) {
    const auto v = a.sub({{t}, {t + 50'000}}).read();
    for (index_t i = 0; i < 50'000; ++i) {
      const auto k = static_cast<word>(t + i);
      ASSERT_EQ(v(i), (k * 3 + k) * 5 + k) << k;
    }
  }
  const runtime_report r = rt.report();
  EXPECT_GT(r.bytes_spilled, 0u);
  EXPECT_LE(r.bytes_allocated_max, o.memory_bytes);
  EXPECT_LE(pinned_most(), o.memory_bytes + rings_max);
}

// A copy of the caller's memory takes seconds; kernels on other lanes do not wait for it.
TEST_F(gpu_pinned, a_long_copy_of_pageable_memory_holds_nobody_up) {
  configure({});
  std::vector<word> mine(16 * mib / sizeof(word), 1);
  const auto n = static_cast<index_t>(mine.size());
  runtime rt(with({{"sim:0"}}));
  auto slow = rt.borrow(std::span(mine), {n}, tiles(n));
  auto quick = rt.filled<word>({1000}, tiles(1000), 1);
  auto sum = rt.filled<word>({1000}, tiles(1000), 0), other = rt.filled<word>({1000}, tiles(1000), 5);
  rt.spawn(touch, read(quick), update(sum)).get();  // they are there, and so is the kernel
  soft_gpu::simThrottle(0, 0.002);                  // 16 MiB take more than 8 s
  const auto moved = [&] { return rt.executors()[1].bytes_moved; };
  const auto before = moved();
  const auto begin = std::chrono::steady_clock::now();
  auto late = rt.spawn(touch, read(slow), update(other));
  while (moved() < before + 16 * mib) std::this_thread::yield();  // enqueued
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  for (int i = 0; i < 3; ++i) rt.spawn(touch, read(quick), update(sum)).get();  // the other three lanes
  EXPECT_FALSE(late.is_ready());
  soft_gpu::simThrottle(0, 0);  // the piece that has begun still takes its time
  late.get();
  EXPECT_EQ(other.read()(9), 6u);
  EXPECT_EQ(sum.read()(9), 4u);
}

TEST_F(gpu_pinned, tiles_survive_a_device_that_fails_and_one_that_is_gone) {
  configure({.faults = {{"LaunchKernel", 2, -1, soft_gpu::simErrorLaunchFailure, true, false, false}}});
  auto rt = std::make_unique<runtime>(with({{"sim:0"}}));
  const auto a = rt->filled<word>({length}, tiles(length), 2);
  for (int i = 0; i < 4; ++i) {
    auto b = rt->filled<word>({length}, tiles(length), 0);
    rt->spawn(touch, read(a), update(b)).get();
    EXPECT_EQ(b.read()(length - 1), 2u);
  }
  EXPECT_GE(pinned_now(), rt->report().bytes_pinned);
  EXPECT_GT(rt->report().bytes_pinned, 0u);
  rt.reset();  // the array goes after the device
  EXPECT_EQ(pinned_now(), 0u);
}

// ---- memory of the caller's that is pinned on request ---------------------------------------------------------------

TEST_F(gpu_pinned, memory_that_the_caller_has_pinned_is_copied_from_where_it_is) {
  configure({.seed = 19, .faults = {refusal("LaunchHostFunc", 1)}});  // nothing is staged
  const std::vector<word> before = some_numbers(3'000'000);
  std::vector<word> mine = before;
  {
    runtime rt(with({{"sim:0"}, {"sim:1"}}));
    const pinned_memory pinned = rt.pin(std::span(mine));
    EXPECT_TRUE(pinned);
    EXPECT_GE(pinned_now(), mine.size() * sizeof(word));
    {
      auto a = rt.borrow(std::span(mine), {static_cast<index_t>(mine.size())}, tiles(700'000));
      stir_all(rt, a, before);
    }
    rt.wait_all();
    EXPECT_EQ(rt.report().bytes_pinned, 0u);  // none of it is the runtime's
  }
  EXPECT_EQ(pinned_now(), 0u);
  EXPECT_EQ(mine[999], (before[999] * 3 + 999) * 5 + 999);
}

TEST_F(gpu_pinned, a_handle_of_pinned_memory_moves_and_may_outlive_its_runtime) {
  configure({});
  std::vector<word> mine(100'000, 1), more(100'000, 1);
  pinned_memory late;
  EXPECT_FALSE(late);
  {
    runtime rt(with({{"sim:0"}}));
    pinned_memory first = rt.pin(std::span(mine));
    EXPECT_TRUE(first);
    const std::size_t one = pinned_now();
    late = std::move(first);
    EXPECT_TRUE(late);
    EXPECT_FALSE(first);  // NOLINT: moved from
    EXPECT_EQ(pinned_now(), one);
    pinned_memory again = rt.pin(std::span(mine));
    EXPECT_TRUE(again) << "it is pinned already";
    again = rt.pin(std::span(more));
    EXPECT_GT(pinned_now(), one);
    again = {};
    EXPECT_EQ(pinned_now(), one);
  }
  EXPECT_EQ(pinned_now(), 0u);
}

TEST_F(gpu_pinned, pinning_without_a_device_that_gains_does_nothing) {
  ASSERT_EQ(soft_gpu::simConfigure({}), soft_gpu::simSuccess);
  std::vector<word> mine(100'000, 1);
  options o;
  o.threads = 1;
  runtime cores(o);
  EXPECT_FALSE(cores.pin(std::span(mine)));
  runtime sim(with({{"sim:0"}}));
  EXPECT_FALSE(sim.pin(std::span(mine)));
  EXPECT_FALSE(sim.pin(std::span<word>()));
}

TEST_F(gpu_pinned, memory_of_the_caller_is_pinned_again_when_its_device_has_been_opened_anew) {
  configure({.faults = {{"LaunchKernel", 2, -1, soft_gpu::simErrorLaunchFailure, true, false, false}}});
  std::vector<word> mine(length, 2);
  runtime rt(with({{"sim:0"}}));
  const pinned_memory pinned = rt.pin(std::span(mine));
  for (int i = 0; i < 4; ++i) {
    const auto a = rt.borrow(std::span(mine), {length}, tiles(length));
    auto b = rt.filled<word>({length}, tiles(length), 0);
    rt.spawn(touch, read(a), update(b)).get();
    EXPECT_EQ(b.read()(length - 1), 2u);
  }
  EXPECT_GE(pinned_now(), length * sizeof(word) + rt.report().bytes_pinned);
}

}  // namespace
