// What this file is for: small tasks that a waiting thread begins itself while the device's own thread sleeps: results,
// tasks that nobody waits for, failures that meet the wrong thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using test::word;

constexpr auto stir = test::stir_on_gpu;
constexpr index_t length = 40;

std::vector<word> stirred(int times) {
  std::vector<word> v(length, 1);
  for (int i = 0; i < times; ++i)
    for (word k = 0; k < length; ++k) v[k] = v[k] * 3 + k;
  return v;
}

class gpu_driving : public testing::Test {
 protected:
  static void configure(soft_gpu::sim_options o) {
    ASSERT_EQ(soft_gpu::simConfigure(std::move(o)), soft_gpu::simSuccess);
  }
  ~gpu_driving() override { soft_gpu::simConfigure({}); }

  static options with_sims(int count) {
    options o;
    o.threads = 1;
    o.cost_cache = "none";  // calls are counted: none may be for measuring
    for (int i = 0; i < count; ++i) o.devices.push_back({"sim:" + std::to_string(i)});
    return o;
  }
  static std::vector<word> contents(const array<word, 1>& a) {
    const auto v = a.read();
    return {v.data(), v.data() + v.size(0)};
  }
  static std::uint64_t by_waiters(const runtime& rt) {
    std::uint64_t n = 0;
    for (const auto& e : rt.executors()) n += e.launched_by_waiters;
    return n;
  }
  /// Spawns tasks one at a time, until a waiting thread has begun `enough` of them. Gives how many that took.
  static int spawn_until_begun_here(runtime& rt, const array<word, 1>& a, std::uint64_t enough) {
    int n = 0;
    while (by_waiters(rt) < enough) {
      rt.spawn(stir, update(a), word{3}).get();
      ++n;
    }
    return n;
  }
};

TEST_F(gpu_driving, who_waits_begins_small_tasks_itself) {
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({length}, tiles(length), 1);
  const int n = spawn_until_begun_here(rt, a, 100);
  EXPECT_EQ(contents(a), stirred(n));
}

// The device's thread sleeps and trusts the one that has always waited so far, which goes away.
TEST_F(gpu_driving, what_nobody_waits_for_ends_all_the_same) {
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({length}, tiles(length), 1);
  int n = 0;
  for (std::uint64_t round = 1; round <= 20; ++round) {
    n += spawn_until_begun_here(rt, a, 5 * round);
    std::promise<void> ended;
    rt.spawn(stir, update(a), word{3});
    rt.spawn([&](view<const word, 1>) { ended.set_value(); }, read(a));
    ended.get_future().wait();
    ++n;
  }
  EXPECT_EQ(contents(a), stirred(n));
}

TEST_F(gpu_driving, several_threads_wait_for_several_devices) {
  runtime rt(with_sims(2));
  constexpr int threads = 4, each = 300;
  std::vector<array<word, 1>> all;
  for (int i = 0; i < threads; ++i) all.push_back(rt.filled<word>({length}, tiles(length), 1));
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < threads; ++i)
      clients.emplace_back([&, i] {
        const task_options where{.where = scope::executor("sim:" + std::to_string(i % 2))};
        for (int k = 0; k < each; ++k) {
          auto f = rt.spawn(where, stir, update(all[static_cast<std::size_t>(i)]), word{3});
          if (k % 3 != 0) f.get();
        }
      });
  }
  for (const auto& a : all) EXPECT_EQ(contents(a), stirred(each));
}

TEST_F(gpu_driving, a_task_that_waits_is_no_driver) {
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({length}, tiles(length), 1);
  int n = spawn_until_begun_here(rt, a, 3);
  for (int i = 0; i < 50; ++i, ++n) rt.spawn([&] { rt.spawn(stir, update(a), word{3}).get(); }).get();
  EXPECT_EQ(contents(a), stirred(n));
}

// The device's thread deals with the failure; the waiting one gets a result, or a typed error.
TEST_F(gpu_driving, a_device_that_fails_under_a_waiting_thread_is_opened_anew) {
  for (int nth = 2; nth < 40; nth += 3) {
    SCOPED_TRACE(nth);
    soft_gpu::sim_options o;
    o.faults = {{"LaunchKernel", nth, -1, soft_gpu::simErrorLaunchFailure, true, false, false},
                {"EventRecord", nth + 20, -1, soft_gpu::simErrorDevicesUnavailable, false, true, false}};
    configure(o);
    runtime rt(with_sims(1));
    auto a = rt.filled<word>({length}, tiles(length), 1);
    int n = 0, lost = 0;
    for (int i = 0; i < 60; ++i) {
      try {
        rt.spawn(stir, update(a), word{3}).get();
        ++n;
      } catch (const error&) {
        ++lost;  // the only copy went with the device
        n = 0;
        a = rt.filled<word>({length}, tiles(length), 1);
      }
    }
    EXPECT_LE(lost, 2);
    EXPECT_EQ(contents(a), stirred(n));
  }
}

// Threads of the caller have a current device of their own.
TEST_F(gpu_driving, leaves_the_callers_current_device_alone) {
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({length}, tiles(length), 1);
  const task_options where{.where = scope::executor("sim:1")};
  ASSERT_EQ(soft_gpu::simSetDevice(0), soft_gpu::simSuccess);
  while (by_waiters(rt) < 20) {
    rt.spawn(where, stir, update(a), word{3}).get();
    int current = -1;
    ASSERT_EQ(soft_gpu::simGetDevice(&current), soft_gpu::simSuccess);
    ASSERT_EQ(current, 0);
  }
}

}  // namespace
