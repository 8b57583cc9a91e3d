// What this file is for: tasks that follow one another on a device without waits: results, cancels, failures.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using test::word;

constexpr auto text = test::stir_text;
constexpr auto stir = kernel<inout<word, 1>, word>("stir").on(gpu, source{text, "stir"});
constexpr auto add = kernel<in<word, 1>, inout<word, 1>>("add").on(gpu, source{text, "add"});
constexpr auto nonsense = kernel<inout<word, 1>>("nonsense").on(gpu, source{"this is no kernel", "nonsense"});

constexpr index_t length = 40;

class gpu_chains : public testing::Test {
 protected:
  static void configure(soft_gpu::sim_options o) {
    ASSERT_EQ(soft_gpu::simConfigure(std::move(o)), soft_gpu::simSuccess);
  }
  ~gpu_chains() override { soft_gpu::simConfigure({}); }

  static options with(std::vector<device_use> devices) {
    options o;
    o.threads = 1;
    o.devices = std::move(devices);
    o.eager_devices = true;
    return o;
  }
  static std::vector<word> contents(const array<word, 1>& a) {
    const auto v = a.read();
    return {v.data(), v.data() + v.size(0)};
  }
  static std::uint64_t behind(const runtime& rt) {
    std::uint64_t n = 0;
    for (const auto& e : rt.executors()) n += e.chained;
    return n;
  }
};

TEST_F(gpu_chains, are_enqueued_without_waiting) {
  soft_gpu::sim_options slow;
  slow.launch_us = 2000;  // a wait for each would be seen
  configure(slow);
  runtime rt(with({{"sim:0"}}));
  auto a = rt.filled<word>({length}, tiles(length), 1);
  for (int i = 0; i < 60; ++i) rt.spawn(stir, update(a), word{3});
  std::vector<word> expected(length, 1);
  for (int i = 0; i < 60; ++i)
    for (word k = 0; k < length; ++k) expected[k] = expected[k] * 3 + k;
  EXPECT_EQ(contents(a), expected);
  EXPECT_GE(behind(rt), 30u);
}

// Measuring uses the lanes before the actor does.
TEST_F(gpu_chains, are_right_on_a_device_that_was_just_measured) {
  for (int round = 0; round < 3; ++round) {
    const test::scratch_folder costs;
    options o = with({{"sim:0"}});
    o.cost_cache = costs.path().string();
    runtime rt(o);
    auto a = rt.filled<word>({length}, tiles(length), 1), b = rt.array<word>({length}, tiles(length));
    for (int i = 0; i < 5; ++i) rt.spawn(stir, update(a), word{3});
    std::vector<word> expected(length, 1);
    for (int i = 0; i < 5; ++i)
      for (word k = 0; k < length; ++k) expected[k] = expected[k] * 3 + k;
    EXPECT_EQ(contents(a), expected);
  }
}

// Readers on several lanes, then a writer; with random delays in the device.
class gpu_chain_seeds : public gpu_chains, public testing::WithParamInterface<unsigned> {};

TEST_P(gpu_chain_seeds, keep_the_order_of_reads_and_writes) {
  soft_gpu::sim_options o;
  o.seed = GetParam() + 1;
  configure(o);
  std::mt19937 random(GetParam());
  runtime rt(with({{"sim:0", GetParam() % 2 ? 2048u : 0u}, {"sim:1"}}));
  constexpr std::size_t count = 6;
  std::vector<array<word, 1>> arrays;
  std::vector<std::vector<word>> model;
  for (std::size_t i = 0; i < count; ++i) {
    arrays.push_back(rt.filled<word>({length}, tiles(length), static_cast<word>(i)));
    model.emplace_back(length, static_cast<word>(i));
  }
  const scope scopes[] = {scope::gpu(), scope::executor("sim:0"), scope::executor("sim:0"), scope::executor("sim:1")};
  for (int step = 0; step < 150; ++step) {
    const std::size_t i = random() % count, k = random() % count;
    task_options where;
    where.where = scopes[random() % 4];
    if (i == k) {
      rt.spawn(where, stir, update(arrays[i]), word{5});
      for (word x = 0; x < length; ++x) model[i][x] = model[i][x] * 5 + x;
    } else {
      rt.spawn(where, add, read(arrays[k]), update(arrays[i]));
      for (word x = 0; x < length; ++x) model[i][x] += model[k][x];
    }
    if (step % 50 == 49) {
      EXPECT_EQ(contents(arrays[i]), model[i]) << step;
    }
  }
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(contents(arrays[i]), model[i]) << i;
}

// A task that is cancelled or wrong takes those with it that use its results, and no others; a task that was enqueued
// behind it has not run on what it did not write.
TEST_P(gpu_chain_seeds, break_where_a_task_fails) {
  soft_gpu::sim_options o;
  o.launch_us = 50;
  configure(o);
  std::mt19937 random(GetParam());
  runtime rt(with({{"sim:0"}}));
  constexpr std::size_t count = 4;
  std::vector<array<word, 1>> arrays;
  for (std::size_t i = 0; i < count; ++i)
    arrays.push_back(rt.filled<word>({length}, tiles(length), 1, "array " + std::to_string(i)));
  std::vector<std::stop_source> stops;
  struct call {
    std::size_t array;
    bool wrong;
    future<void> end;
  };
  std::vector<call> calls;
  for (int step = 0; step < 80; ++step) {
    const std::size_t i = random() % count;
    task_options how;
    how.stop = stops.emplace_back().get_token();
    const bool wrong = random() % 40 == 0;
    calls.push_back(
        {i, wrong,
         wrong ? rt.spawn(how, nonsense, update(arrays[i])) : rt.spawn(how, stir, update(arrays[i]), word{3})});
    if (random() % 8 == 0) stops[random() % stops.size()].request_stop();
  }
  rt.wait_all();
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<word> model(length, 1);
    bool failed = false;
    for (auto& c : calls) {
      if (c.array != i) continue;
      bool ran = true;
      try {
        c.end.get();
      } catch (const error&) {
        ran = false;
      }
      EXPECT_FALSE(ran && (failed || c.wrong)) << "ran on what was never written";
      failed = failed || !ran;
      if (ran)
        for (word x = 0; x < length; ++x) model[x] = model[x] * 3 + x;
    }
    if (failed)
      EXPECT_THROW((void)contents(arrays[i]), error);
    else
      EXPECT_EQ(contents(arrays[i]), model);
  }
  auto fresh = rt.filled<word>({length}, tiles(length), 2);
  for (int i = 0; i < 10; ++i) rt.spawn(stir, update(fresh), word{1});
  EXPECT_EQ(contents(fresh)[3], 32u);
}

INSTANTIATE_TEST_SUITE_P(seeds, gpu_chain_seeds, testing::Range(0u, 12u));

}  // namespace
