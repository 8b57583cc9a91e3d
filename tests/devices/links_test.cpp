// What this file is for: what is measured of a software GPU's link is what it was told to be.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <troupe/error.hpp>

#include "devices/calibration/links.hpp"
#include "devices/gpu/gpu.hpp"
#include "devices/sim/sim.h"

namespace {

using namespace troupe::devices;
using troupe::soft_gpu::sim_options;
using troupe::soft_gpu::simConfigure;
using troupe::soft_gpu::simThrottle;

// Other processes may take the cores away for milliseconds: only copies that last longer are sure to tell the link.
constexpr std::chrono::seconds time_to_be_exact(1);

class sim_links : public testing::Test {
 protected:
  ~sim_links() override { simConfigure({}); }
  static std::unique_ptr<accelerator> open(sim_options o = {}) {
    EXPECT_EQ(simConfigure(std::move(o)), troupe::soft_gpu::simSuccess);
    return make_sim_source()->open(0, 3, 0);
  }
};

TEST_F(sim_links, are_as_fast_as_they_are_told_to_be) {
  const auto a = open({.copy_gb_per_s = 0.5});
  const auto s = measure_links(*a, time_to_be_exact);
  for (const auto& one : {s.in, s.out}) {
    EXPECT_GT(one.bytes_per_ns, 0.1);
    EXPECT_LT(one.bytes_per_ns, 1);
  }
}

TEST_F(sim_links, that_are_ten_times_slower_measure_about_ten_times_slower) {
  const auto a = open({.copy_gb_per_s = 0.5});
  const auto fast = measure_links(*a, time_to_be_exact);
  simThrottle(0, 0.05);
  const auto slow = measure_links(*a, time_to_be_exact);
  EXPECT_GT(fast.in.bytes_per_ns / slow.in.bytes_per_ns, 3);
  EXPECT_LT(fast.in.bytes_per_ns / slow.in.bytes_per_ns, 30);
  EXPECT_GT(fast.out.bytes_per_ns / slow.out.bytes_per_ns, 3);
  EXPECT_LT(fast.out.bytes_per_ns / slow.out.bytes_per_ns, 30);
}

TEST_F(sim_links, are_judged_by_how_well_their_samples_agree) {
  const auto result_of = [](std::vector<float> all) {
    std::ranges::sort(all);
    return judge(all);
  };
  const auto quiet = result_of({20, 21, 22, 25, 23, 30});
  EXPECT_TRUE(quiet.agreed);
  EXPECT_FLOAT_EQ(quiet.ns, 22);
  const auto disturbed = result_of({1700, 20, 1690, 22, 1696, 1720, 21, 1650, 1700});
  EXPECT_TRUE(disturbed.agreed) << "three of them were left alone";
  EXPECT_FLOAT_EQ(disturbed.ns, 21);
  const auto busy = result_of({1700, 20, 900, 1696, 400, 1720, 3000, 1650, 100});
  EXPECT_FALSE(busy.agreed);
  EXPECT_FLOAT_EQ(busy.ns, 20);
  EXPECT_FALSE(result_of({5, 5}).agreed);
  EXPECT_FALSE(result_of({}).agreed);
}

TEST_F(sim_links, that_are_very_slow_do_not_hold_up_the_start_for_long) {
  const auto a = open({.copy_gb_per_s = 0.001});  // 16 KiB last 16 ms
  const auto begin = std::chrono::steady_clock::now();
  const auto s = measure_links(*a);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_LT(s.in.bytes_per_ns, 0.002);
  EXPECT_LT(s.out.bytes_per_ns, 0.002);
}

TEST_F(sim_links, of_different_speed_are_remembered_apart) {
  const std::string one = open({.copy_gb_per_s = 1})->facts().bus, two = open({.copy_gb_per_s = 2})->facts().bus;
  EXPECT_NE(one, two);
  EXPECT_EQ(open({.copy_gb_per_s = 1})->facts().bus, one);
  EXPECT_EQ(open()->facts().bus, "soft:0");
}

TEST_F(sim_links, a_copy_that_never_ends_is_a_failed_device) {
  const auto a = open({.faults = {{.call = "MemcpyAsync", .nth = 3, .hang = true}}});
  try {
    measure_links(*a, std::chrono::milliseconds(2));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::device_failed) << e.what();
  }
}

TEST_F(sim_links, between_devices_are_measured_for_themselves) {
  ASSERT_EQ(simConfigure({.copy_gb_per_s = 0.05, .peer = true, .peer_gb_per_s = 0.5}), troupe::soft_gpu::simSuccess);
  const auto source = make_sim_source();
  const auto a = source->open(0, 3, 0), b = source->open(1, 3, 0);
  const auto s = measure_peers(*a, *b, time_to_be_exact);
  for (const auto& one : {s.in, s.out}) {
    EXPECT_GT(one.bytes_per_ns, 0.1);
    EXPECT_LT(one.bytes_per_ns, 1);
  }
}

}  // namespace
