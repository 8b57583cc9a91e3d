// What this file is for: what tests of copies between devices share: kernels, software GPUs, what went over links.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/support/stir_kernels.hpp"

namespace peers {

using namespace troupe;
using test::stir;
using test::triple;
using test::word;

inline constexpr index_t n = 4096;
inline constexpr std::uint64_t bytes = n * sizeof(word);

inline word stirred(word a, word factor, index_t i) { return a * factor + static_cast<word>(i); }

inline constexpr auto triple_once =
    kernel<in<word, 1>, out<word, 1>>("triple_once").on(gpu, source{test::triple_text, "triple"}).once();
// b = b * 5 + a
inline constexpr auto blend = kernel<in<word, 1>, inout<word, 1>>("blend")
                                  .on(cpu,
                                      [](view<const word, 1> a, view<word, 1> b) {
                                        for (index_t i = b.lo(0); i < b.hi(0); ++i) b(i) = b(i) * 5 + a(i);
                                      })
                                  .on(gpu, source{R"(
GPU_KERNEL void blend(GPU_IN(unsigned, a), GPU_INOUT(unsigned, b)) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = GPU_AT1(b, i) * 5 + GPU_AT1(a, i);
})",
                                                  "blend"});
// a = 1000 y + x
inline constexpr auto number = kernel<out<word, 2>>("number").on(gpu, source{R"(
GPU_KERNEL void number(GPU_OUT(unsigned, a)) {
  const long x = GPU_LO(a, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(a, 0) + GPU_GLOBAL_ID(1);
  if (y < GPU_HI(a, 0) && x < GPU_HI(a, 1)) GPU_AT2(a, y, x) = (unsigned)(1000 * y + x);
})",
                                                                             "number"});
// b(y, x) = a(y + 1, x), where a has a row more
inline constexpr auto below = kernel<in<word, 2>, out<word, 2>>("below").on(gpu, source{R"(
GPU_KERNEL void below(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  const long x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1);
  if (y >= GPU_HI(b, 0) || x >= GPU_HI(b, 1)) return;
  const long from = y + 1 < GPU_HI(a, 0) ? y + 1 : y;
  GPU_AT2(b, y, x) = GPU_AT2(a, from, x);
})",
                                                                                        "below"});

inline task_options on(const std::string& name) { return {.where = scope::executor(name)}; }

class gpu_peers : public testing::Test {
 protected:
  ~gpu_peers() override { soft_gpu::simConfigure({}); }

  static void configure(soft_gpu::sim_options o) {
    ASSERT_EQ(soft_gpu::simConfigure(std::move(o)), soft_gpu::simSuccess);
  }
  static options with_sims(int count) {
    options o;
    o.threads = 1;
    o.cost_cache = "none";  // nothing but the tasks' data goes over the links
    for (int i = 0; i < count; ++i) o.devices.push_back({"sim:" + std::to_string(i)});
    o.eager_devices = true;
    return o;
  }
  static soft_gpu::sim_traffic traffic(int device) {
    soft_gpu::sim_traffic t;
    EXPECT_EQ(soft_gpu::simGetTraffic(&t, device), soft_gpu::simSuccess);
    return t;
  }
  static executor_report report_of(runtime& rt, const std::string& name) {
    const runtime_report r = rt.report();
    return *std::find_if(r.executors.begin(), r.executors.end(), [&](const auto& e) { return e.name == name; });
  }
  static std::vector<word> contents(const array<word, 1>& a) {
    const auto v = a.read();
    std::vector<word> all;
    for (index_t i = 0; i < v.size(0); ++i) all.push_back(v(i));
    return all;
  }
};

}  // namespace peers
