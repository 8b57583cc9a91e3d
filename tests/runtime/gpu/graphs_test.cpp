// What this file is for: recorded graphs on devices: results, captures and what ends them, runs in a row, failures.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using test::stir;
using test::word;

constexpr auto text = test::stir_text;
constexpr auto add =
    kernel<in<word, 1>, inout<word, 1>>("add").on(cpu, &test::add_on_core).on(gpu, source{text, "add"});
constexpr auto stir_there = kernel<inout<word, 1>, word>("stir_there").on(gpu, source{text, "stir"});
constexpr auto nonsense = kernel<inout<word, 1>>("nonsense").on(gpu, source{"this is no kernel", "nonsense"});

constexpr index_t length = 40;
using words = std::vector<word>;
using word_array = array<word, 1>;

// The host's copy of what the test's graph does to x and y.
void step(words& x, words& y) {
  for (word i = 0; i < length; ++i) x[i] = x[i] * 3 + i;
  for (word i = 0; i < length; ++i) y[i] += x[i];
  for (word i = 0; i < length; ++i) y[i] = y[i] * 5 + i;
}

class gpu_graph : public testing::TestWithParam<std::string> {
 protected:
  static void configure(soft_gpu::sim_options o) {
    ASSERT_EQ(soft_gpu::simConfigure(std::move(o)), soft_gpu::simSuccess);
  }
  ~gpu_graph() override { soft_gpu::simConfigure({}); }

  static options with(const std::string& device, std::uint64_t memory = 0) {
    options o;
    o.threads = 1;
    o.cost_cache = "none";
    o.devices = {{device}};
    o.devices[0].memory_bytes = memory;
    o.eager_devices = true;
    return o;
  }
  static task_options there(const std::string& device = GetParam()) { return {.where = scope::executor(device)}; }
  static graph make(runtime& rt, const word_array& x, const word_array& y) {
    return rt.record([&](recorder& recorded) {
      recorded.spawn(stir, update(x), word{3});
      recorded.spawn(add, read(x), update(y));
      recorded.spawn(stir, update(y), word{5});
    });
  }
  static words contents(const word_array& a) {
    const auto v = a.read();
    return {v.data(), v.data() + v.size(0)};
  }
  static executor_report report_of(const runtime& rt, const std::string& name) {
    for (const auto& e : rt.executors())
      if (e.name == name) return e;
    return {};
  }
};

TEST_P(gpu_graph, runs_on_a_device_as_on_cores) {
  runtime rt(with(GetParam()));
  auto x = rt.filled<word>({length}, tiles(length), 1), y = rt.filled<word>({length}, tiles(length), 2);
  const graph g = make(rt, x, y);
  words a(length, 1), b(length, 2);
  for (int i = 0; i < 12; ++i) {
    // Now and then on a core: what it wrote comes home, and goes there again.
    const bool on_core = i % 5 == 4;
    const auto f = on_core ? rt.run(g) : rt.run(there(), g);
    step(a, b);
  }
  EXPECT_EQ(contents(x), a);
  EXPECT_EQ(contents(y), b);
  EXPECT_EQ(report_of(rt, GetParam()).tasks, 10u);
  EXPECT_EQ(report_of(rt, "cpu:0").tasks, 2u * 4u);  // its calls are counted too
}

TEST_P(gpu_graph, a_graph_without_bodies_for_cores_runs_where_it_can) {
  runtime rt(with(GetParam()));
  auto x = rt.filled<word>({length}, tiles(length), 1);
  const graph g = rt.record([&](recorder& recorded) { recorded.spawn(stir_there, update(x), word{3}); });
  for (int i = 0; i < 4; ++i) rt.run(g).get();
  words a(length, 1);
  for (int i = 0; i < 4; ++i)
    for (word k = 0; k < length; ++k) a[k] = a[k] * 3 + k;
  EXPECT_EQ(contents(x), a);
  EXPECT_EQ(report_of(rt, GetParam()).tasks, 4u);
}

TEST_P(gpu_graph, several_tiles_changed_at_once_keep_it_off_devices_and_a_part_of_one_does_not) {
  runtime rt(with(GetParam()));
  auto x = rt.filled<word>({length}, tiles(length / 2), 1);
  try {
    rt.record([&](recorder& recorded) { recorded.spawn(stir_there, update(x), word{3}); });
    FAIL() << "nobody can run it";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_supported);
    EXPECT_NE(std::string(e.what()).find("changes several tiles of array"), std::string::npos) << e.what();
  }
  auto y = rt.filled<word>({length}, tiles(length), 1);
  const graph g = rt.record([&](recorder& recorded) {
    recorded.spawn(stir_there, update(y.sub({{0}, {length / 2}})), word{3});
  });
  for (int i = 0; i < 3; ++i) rt.run(g).get();
  const auto v = y.read();
  for (index_t i = 0; i < length; ++i) {
    word expected = 1;
    for (int run = 0; run < 3 && i < length / 2; ++run) expected = expected * 3 + static_cast<word>(i);
    ASSERT_EQ(v(i), expected) << i;
  }
}

TEST_P(gpu_graph, a_kernel_that_does_not_compile_fails_the_run_and_nothing_has_run) {
  runtime rt(with(GetParam()));
  auto x = rt.filled<word>({length}, tiles(length), 1), y = rt.filled<word>({length}, tiles(length), 1);
  const graph g = rt.record([&](recorder& recorded) {
    recorded.spawn(stir_there, update(x), word{3});
    recorded.spawn(nonsense, update(y));
  });
  for (int i = 0; i < 3; ++i) {
    auto f = rt.run(g);
    try {
      f.get();
      FAIL() << "it cannot have run";
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
    }
  }
  auto z = rt.filled<word>({length}, tiles(length), 1);
  rt.spawn(there(), stir, update(z), word{3}).get();
  EXPECT_EQ(report_of(rt, GetParam()).failed, 1u);  // the others would have read what it was to write
}

INSTANTIATE_TEST_SUITE_P(devices, gpu_graph, testing::Values("sim:0", "opencl:0"),
                         [](const auto& p) { return p.param.substr(0, p.param.find(':')); });

class gpu_captures : public gpu_graph {};

TEST_P(gpu_captures, the_second_run_and_later_ones_are_one_call) {
  runtime rt(with("sim:0"));
  auto x = rt.filled<word>({length}, tiles(length), 1), y = rt.filled<word>({length}, tiles(length), 2);
  const graph g = make(rt, x, y);
  words a(length, 1), b(length, 2);
  for (int i = 0; i < 20; ++i) {
    const auto f = rt.run(there("sim:0"), g);
    step(a, b);
  }
  EXPECT_EQ(contents(x), a);
  EXPECT_EQ(contents(y), b);
  const executor_report r = report_of(rt, "sim:0");
  EXPECT_EQ(r.tasks, 20u);
  EXPECT_EQ(r.replays, 19u);  // captured with the second, which is one call already
  EXPECT_GT(r.chained, 10u);  // nobody waited between them
}

TEST_P(gpu_captures, are_made_anew_where_tiles_have_moved) {
  constexpr std::uint64_t tile = length * sizeof(word);
  runtime rt(with("sim:0", 3 * 256));
  ASSERT_LT(tile, 256u);
  auto x = rt.filled<word>({length}, tiles(length), 1), y = rt.filled<word>({length}, tiles(length), 2);
  auto p = rt.filled<word>({length}, tiles(length), 1), q = rt.filled<word>({length}, tiles(length), 2);
  const graph g = make(rt, x, y), h = make(rt, p, q);
  words a(length, 1), b(length, 2);
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < 3; ++k) {
      const auto f = rt.run(there("sim:0"), g);
      step(a, b);
    }
    for (int k = 0; k < 3; ++k) const auto f = rt.run(there("sim:0"), h);
  }
  EXPECT_EQ(contents(x), a);
  EXPECT_EQ(contents(y), b);
  EXPECT_EQ(contents(p), a);
  EXPECT_EQ(contents(q), b);
  EXPECT_GT(report_of(rt, "sim:0").replays, 0u);
}

TEST_P(gpu_captures, graphs_that_are_gone_are_forgotten) {
  runtime rt(with("sim:0"));
  auto x = rt.filled<word>({length}, tiles(length), 1), y = rt.filled<word>({length}, tiles(length), 2);
  words a(length, 1), b(length, 2);
  for (int i = 0; i < 10; ++i) {
    const graph g = make(rt, x, y);  // often at the place of the one before
    for (int k = 0; k < 3; ++k) {
      const auto f = rt.run(there("sim:0"), g);
      step(a, b);
    }
  }
  EXPECT_EQ(contents(x), a);
  EXPECT_EQ(contents(y), b);
}

// Launches, captures and replays that break the device, one after the other.
TEST_P(gpu_captures, a_device_that_fails_captures_again) {
  for (const char* call :
       {"LaunchKernel", "StreamBeginCapture", "StreamEndCapture", "GraphInstantiateWithFlags", "GraphLaunch"})
    for (int nth : {1, 3}) {
      SCOPED_TRACE(std::string(call) + " " + std::to_string(nth));
      soft_gpu::sim_options o;
      o.faults = {{call, nth, -1, soft_gpu::simErrorDevicesUnavailable, false, true, false}};
      configure(o);
      runtime rt(with("sim:0"));
      auto x = rt.filled<word>({length}, tiles(length), 1), y = rt.filled<word>({length}, tiles(length), 2);
      const graph g = make(rt, x, y);
      words a(length, 1), b(length, 2);
      for (int i = 0; i < 12; ++i) {
        try {
          rt.run(there("sim:0"), g).get();
          step(a, b);
        } catch (const error&) {  // the only copies went with the device
          rt.wait_all();
          auto v = x.write(), w = y.write();
          for (index_t k = 0; k < length; ++k) {
            v(k) = 1;
            w(k) = 2;
          }
          a.assign(length, 1);
          b.assign(length, 2);
        }
      }
      EXPECT_EQ(contents(x), a);
      EXPECT_EQ(contents(y), b);
      EXPECT_GT(report_of(rt, "sim:0").replays, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(sim, gpu_captures, testing::Values("sim:0"), [](const auto&) { return "x1"; });

}  // namespace
