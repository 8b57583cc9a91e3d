// What this file is for: what is measured at start and remembered from earlier runtimes decides where tasks go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "runtime/costs/cost_file.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using word = std::uint32_t;

// Looks at one element: all of its time is that of bringing the data.
constexpr auto peek = kernel<in<word, 1>, out<word, 1>>("peek")
                          .on(cpu, [](view<const word, 1> a, view<word, 1> b) { b(0) = a(0) + 1; })
                          .on(gpu, source{R"(
GPU_KERNEL void peek(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  if (GPU_GLOBAL_ID(0) == 0) GPU_AT1(b, 0) = GPU_AT1(a, 0) + 1;
})",
                                          "peek"});
constexpr auto make = kernel<out<word, 1>, word>("make").on(gpu, source{R"(
GPU_KERNEL void make(GPU_OUT(unsigned, a), const unsigned value) {
  const long i = GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = value;
})",
                                                                        "make"});
// Slow on cores.
constexpr auto toil = kernel<inout<word, 1>>("toil")
                          .on(cpu,
                              [](view<word, 1> a) {
                                const auto end = std::chrono::steady_clock::now() + 20ms;
                                while (std::chrono::steady_clock::now() < end) a(0) += 2;
                                a(0) = 7;
                              })
                          .on(gpu, source{R"(
GPU_KERNEL void toil(GPU_INOUT(unsigned, a)) {
  if (GPU_GLOBAL_ID(0) == 0) GPU_AT1(a, 0) = 7;
})",
                                          "toil"});

constexpr index_t large = 1 << 20;  // 4 MiB
constexpr double large_bytes = large * sizeof(word);

task_options on(const std::string& name) { return {.where = scope::executor(name)}; }
double ms(std::chrono::nanoseconds t) { return std::chrono::duration<double, std::milli>(t).count(); }

class gpu_costs : public testing::Test {
 protected:
  ~gpu_costs() override { soft_gpu::simConfigure({}); }

  static void configure(soft_gpu::sim_options o) {
    ASSERT_EQ(soft_gpu::simConfigure(std::move(o)), soft_gpu::simSuccess);
  }
  options with_sim(const fs::path& costs) const {
    options o;
    o.threads = 1;
    o.devices = {{"sim:0"}};
    o.cost_cache = costs.string();
    o.eager_devices = true;
    return o;
  }
  options with_sim() const { return with_sim(folder); }
  // Returns what it would take to bring 4 MiB to the device, as placement sees it at the first task of a runtime.
  static double first_transfer_ms(runtime& rt) {
    auto a = rt.filled<word>({large}, tiles(large), 3);
    auto b = rt.array<word>({1}, tiles(1));
    auto f = rt.spawn(peek, read(a), write(b));
    f.get();
    EXPECT_EQ(b.read()(0), 4u);
    const explanation e = rt.explain(f);
    EXPECT_EQ(e.candidates.size(), 2u) << e.text();
    return e.candidates.size() == 2 ? ms(e.candidates[1].transfer) : 0;
  }
  double first_transfer_ms(const options& o) const {
    runtime rt(o);
    return first_transfer_ms(rt);
  }
  std::size_t links_kept() const {
    std::ifstream in(folder / "costs");
    const auto table = detail::parse_costs(std::string(std::istreambuf_iterator<char>(in), {}));
    return table ? table->links.size() : 0;
  }
  // The same, of a measurement that is kept: where the machine is too busy for that, another one is made.
  double first_transfer_kept_ms(std::size_t links = 1) const {
    for (;;) {
      const double took = first_transfer_ms(with_sim());
      if (links_kept() >= links || HasFailure()) return took;
    }
  }
  const test::scratch_folder scratch;
  const fs::path folder = scratch.path();
};

TEST_F(gpu_costs, the_first_task_ever_stays_on_the_core_where_the_link_is_slow) {
  configure({.copy_gb_per_s = 0.05});
  explanation e;
  std::uint64_t tasks_there = 0;
  int tries = 0;
  do {  // until a link is measured that is worth keeping: without, there is a guess only
    ASSERT_LT(++tries, 100) << "the machine is too busy";
    fs::remove(folder / "costs");
    runtime rt(with_sim());
    auto a = rt.filled<word>({large}, tiles(large), 3);
    auto b = rt.array<word>({1}, tiles(1));
    auto f = rt.spawn(peek, read(a), write(b));
    f.get();
    e = rt.explain(f);
    // Neither is it tried there, once the core is known to be done sooner.
    for (int i = 0; i < 10; ++i) rt.spawn(peek, read(a), write(b)).get();
    tasks_there = rt.executors()[1].tasks;
  } while (links_kept() == 0 && !HasFailure());
  ASSERT_EQ(e.candidates.size(), 2u) << e.text();
  EXPECT_EQ(e.executor, "cpu:0") << e.text();
  EXPECT_TRUE(e.candidates[0].chosen);
  EXPECT_EQ(e.candidates[0].transfer, 0ns);
  EXPECT_GT(ms(e.candidates[1].transfer), 0.4 * large_bytes / 0.05e6) << e.text();
  EXPECT_EQ(tasks_there, 0u);
}

TEST_F(gpu_costs, a_link_is_measured_once_and_read_from_then_on) {
  configure({.copy_gb_per_s = 0.5});
  const double measured = first_transfer_kept_ms();
  EXPECT_GT(measured, 0.4 * large_bytes / 0.5e6);
  soft_gpu::simThrottle(0, 0.01);  // behind its back
  EXPECT_DOUBLE_EQ(first_transfer_ms(with_sim()), measured);
  EXPECT_GT(first_transfer_ms(with_sim(folder / "another")), 0.4 * large_bytes / 0.01e6);
}

TEST_F(gpu_costs, of_differently_configured_links_are_not_mixed_up) {
  configure({});
  const double fast = first_transfer_kept_ms();
  configure({.copy_gb_per_s = 0.02});
  const double slow = first_transfer_ms(with_sim());
  EXPECT_GT(slow, 4 * fast);
  configure({});
  EXPECT_DOUBLE_EQ(first_transfer_ms(with_sim()), fast);
}

TEST_F(gpu_costs, none_measures_nothing_and_writes_nothing) {
  configure({.copy_gb_per_s = 0.5});
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  const double guess = first_transfer_ms(with_sim("none"));
  fs::current_path(before);
  EXPECT_NEAR(guess, 0.010 + large_bytes / 1e6, 0.001);  // 10 us, 1 GB/s
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(gpu_costs, a_damaged_file_is_replaced_and_a_place_that_cannot_be_written_is_no_error) {
  configure({.copy_gb_per_s = 0.5});
  std::ofstream(folder / "costs") << "troupe costs 1 5 abc\nhello";
  EXPECT_GT(first_transfer_kept_ms(), 0.4 * large_bytes / 0.5e6);
  EXPECT_EQ(links_kept(), 1u);
  EXPECT_GT(first_transfer_ms(with_sim("/proc/nowhere")), 0.4 * large_bytes / 0.5e6);
}

TEST_F(gpu_costs, a_device_that_breaks_while_it_is_measured_is_opened_anew) {
  configure({.faults = {{"MemcpyAsync", 3, -1, soft_gpu::simErrorLaunchFailure, true}}});
  runtime rt(with_sim());
  auto a = rt.filled<word>({100}, tiles(100), 3);
  rt.spawn(on("sim:0"), toil, update(a)).get();
  EXPECT_EQ(a.read()(0), 7u);
}

TEST_F(gpu_costs, the_first_task_of_the_next_runtime_goes_where_the_last_one_found_it_fast) {
  const auto first_place = [&](bool teach) {
    runtime rt(with_sim());
    auto a = rt.filled<word>({100}, tiles(100), 3);
    auto f = rt.spawn(toil, update(a));
    f.get();
    for (int i = 0; teach && i < 4; ++i) {
      rt.spawn(on("cpu:0"), toil, update(a)).get();
      rt.spawn(on("sim:0"), toil, update(a)).get();
    }
    EXPECT_EQ(a.read()(0), 7u);
    const explanation e = rt.explain(f);
    return e.executor + (e.predicted ? ", predicted" : ", a guess");
  };
  EXPECT_EQ(first_place(true), "cpu:0, a guess");
  EXPECT_EQ(first_place(false), "sim:0, predicted");
  EXPECT_EQ(first_place(false), "sim:0, predicted");  // one call less than a median does not take it away
}

// As it is left behind by a calibration on a machine that was busy: nothing goes there, so no transfer would tell.
TEST_F(gpu_costs, a_link_that_is_wrongly_believed_to_be_slow_is_found_out_while_nothing_goes_there) {
  configure({});
  first_transfer_kept_ms();
  const auto read_table = [&] {
    std::ifstream in(folder / "costs");
    return detail::parse_costs(std::string(std::istreambuf_iterator<char>(in), {}));
  };
  auto table = read_table();
  ASSERT_TRUE(table);
  ASSERT_EQ(table->links.size(), 1u);
  for (devices::link_speed* s : {&table->links[0].speeds.in, &table->links[0].speeds.out})
    *s = {.latency_ns = 1.696e6f, .bytes_per_ns = 0.01f};
  std::ofstream(folder / "costs") << detail::text_of(*table);
  {
    runtime rt(with_sim());
    auto a = rt.filled<word>({large}, tiles(large), 3);
    auto b = rt.array<word>({1}, tiles(1));
    const auto believed = [&] {
      auto f = rt.spawn(peek, read(a), write(b));
      f.get();
      const explanation e = rt.explain(f);
      EXPECT_EQ(e.candidates.size(), 2u) << e.text();
      return e.candidates.size() == 2 ? ms(e.candidates[1].transfer) : 0;
    };
    EXPECT_GT(believed(), 100);
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (believed() > 40 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_LT(believed(), 40);
    EXPECT_EQ(rt.executors()[1].tasks, 0u) << "no task was sent to find out";
  }
  table = read_table();
  ASSERT_TRUE(table);
  ASSERT_EQ(table->links.size(), 1u);
  EXPECT_LT(table->links[0].speeds.in.latency_ns, 0.8e6f);
}

TEST_F(gpu_costs, a_runtime_with_cores_alone_reads_and_writes_nothing) {
  {
    options o;
    o.threads = 1;
    o.cost_cache = folder.string();
    runtime rt(o);
    auto a = rt.filled<word>({100}, tiles(100), 3);
    for (int i = 0; i < 5; ++i) rt.spawn(toil, update(a)).get();
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(gpu_costs, R9_throttling_one_edge_ten_times_changes_placement_within_twenty_transfers) {
  // 4 MiB come home in 10 ms, later in 100; a kernel on the device takes 50, on the core next to nothing.
  configure({.copy_gb_per_s = 0.4, .launch_us = 50'000});
  runtime rt(with_sim());
  auto a = rt.array<word>({large}, tiles(large));
  auto b = rt.array<word>({1}, tiles(1));
  const auto place = [&] {
    rt.spawn(on("sim:0"), make, write(a), word{5}).get();  // now the device has it alone
    auto f = rt.spawn(peek, read(a), write(b));
    f.get();
    EXPECT_EQ(b.read()(0), 6u);
    return rt.explain(f);
  };
  for (int i = 0; i < 4; ++i)  // both know the kernel
    for (const char* name : {"sim:0", "cpu:0"}) {
      rt.spawn(on("sim:0"), make, write(a), word{5}).get();
      rt.spawn(on(name), peek, read(a), write(b)).get();
    }
  const explanation before = place();
  EXPECT_EQ(before.executor, "cpu:0") << before.text();

  ASSERT_EQ(soft_gpu::simThrottle(0, 0.04), soft_gpu::simSuccess);
  int transfers = 0;
  explanation e;
  for (e = place(); e.executor == "cpu:0" && transfers < 20; e = place()) ++transfers;
  EXPECT_EQ(e.executor, "sim:0") << e.text();
  EXPECT_GT(transfers, 0);
  const auto transfer_to = [](const explanation& x, const std::string& name) {
    for (const candidate& c : x.candidates)
      if (c.executor == name) return c.transfer;
    ADD_FAILURE() << name << " is no candidate: " << x.text();
    return 0ns;
  };
  EXPECT_EQ(transfer_to(e, "sim:0"), 0ns) << "same device: " << e.text();
  EXPECT_GT(transfer_to(e, "cpu:0"), transfer_to(before, "cpu:0")) << e.text();
  // Placement turned away as soon as that was worth it; the rest of the twenty shows the link as it is now.
  for (; transfers < 20; ++transfers) {
    rt.spawn(on("sim:0"), make, write(a), word{5}).get();
    rt.spawn(on("cpu:0"), peek, read(a), write(b)).get();
  }
  e = place();
  EXPECT_EQ(e.executor, "sim:0") << e.text();
  EXPECT_GT(transfer_to(e, "cpu:0"), 60ms) << "100 ms by the link alone: " << e.text();
}

}  // namespace
