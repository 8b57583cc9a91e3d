// What this file is for: devices without doubles beside others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"

namespace {

using namespace troupe;
using troupe::index_t;

constexpr source halve_text{R"(
GPU_KERNEL void halve(GPU_INOUT(double, a)) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) *= 0.5;
})",
                            "halve"};
constexpr auto halve = kernel<inout<double, 1>>("halve").on(gpu, halve_text).on(cpu, [](view<double, 1> a) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) *= 0.5;
});
constexpr auto halve_there = kernel<inout<double, 1>>("halve there").on(gpu, halve_text);
constexpr auto copy = kernel<in<double, 1>, out<double, 1>>("copy").on(
    sim, routine<[](device_call& c, view<const double, 1> a, view<double, 1> b) {
      (void)soft_gpu::simMemcpyAsync(b.data(), a.data(), static_cast<std::size_t>(a.size(0)) * sizeof(double),
                                     soft_gpu::simMemcpyDeviceToDevice, static_cast<soft_gpu::simStream_t>(c.lane()));
    }>);

class gpu_doubles : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(soft_gpu::simConfigure({.doubles = false}), soft_gpu::simSuccess); }
  void TearDown() override {
    rt_.reset();
    EXPECT_EQ(soft_gpu::simConfigure({}), soft_gpu::simSuccess);
  }
  runtime& rt() {
    if (rt_) return *rt_;
    options o;
    o.threads = 1;
    o.devices = {{"sim:0"}};
    o.cost_cache = "none";
    o.eager_devices = true;
    return rt_.emplace(o);
  }
  std::optional<runtime> rt_;
};

TEST_F(gpu_doubles, a_device_without_them_is_left_out_and_explain_says_why) {
  auto a = rt().filled<double>({100}, tiles(10), 6);
  rt().for_each(grid(100), halve, update(a)).get();
  auto last = rt().spawn(halve, update(a.sub({{0}, {10}})));
  last.get();
  EXPECT_EQ(a.read()(0), 1.5);
  EXPECT_EQ(a.read()(99), 3.0);
  EXPECT_EQ(rt().executors(scope::executor("sim:0")).at(0).tasks, 0u);
  const explanation why = rt().explain(last);
  const auto sim =
      std::find_if(why.candidates.begin(), why.candidates.end(), [](auto& c) { return c.executor == "sim:0"; });
  ASSERT_NE(sim, why.candidates.end()) << why.text();
  EXPECT_FALSE(sim->chosen);
  EXPECT_NE(sim->left_out.find("no doubles"), std::string::npos) << sim->left_out;
  EXPECT_NE(why.text().find("sim:0 has no doubles"), std::string::npos) << why.text();
}

TEST_F(gpu_doubles, a_call_that_nobody_else_could_run_is_refused_with_the_reason) {
  auto a = rt().filled<double>({100}, tiles(10), 6);
  for (const task_options& o : {task_options{}, task_options{.where = scope::gpu()}}) try {
      rt().spawn(o, halve_there, update(a));
      FAIL() << "it was taken";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::no_executor);
      EXPECT_NE(std::string(e.what()).find("sim:0 has no doubles"), std::string::npos) << e.what();
    }
  EXPECT_THROW(rt().spawn(task_options{.where = scope::executor("sim:0")}, halve, update(a)), error);
}

TEST_F(gpu_doubles, routines_see_to_it_themselves) {
  auto a = rt().filled<double>({10}, tiles(10), 6), b = rt().array<double>({10}, tiles(10));
  rt().spawn(copy, read(a), write(b)).get();
  EXPECT_EQ(b.read()(9), 6.0);
}

TEST_F(gpu_doubles, a_device_that_has_them_is_a_candidate) {
  ASSERT_EQ(soft_gpu::simConfigure({}), soft_gpu::simSuccess);
  auto a = rt().filled<double>({100}, tiles(100), 6);
  rt().spawn(halve_there, update(a)).get();
  EXPECT_EQ(a.read()(5), 3.0);
}

}  // namespace
