// What this file is for: what users of other runtimes ask of GPU resources (dask/distributed #1226), one test each.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using test::gate;
using word = std::uint32_t;

constexpr auto stir_text = R"(
GPU_KERNEL void stir(GPU_INOUT(unsigned, a), const unsigned factor) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = GPU_AT1(a, i) * factor + (unsigned)i;
})";
constexpr auto stir_anywhere = kernel<inout<word, 1>, word>("stir")
                                   .on(cpu,
                                       [](view<word, 1> a, word factor) {
                                         for (index_t i = a.lo(0); i < a.hi(0); ++i)
                                           a(i) = a(i) * factor + static_cast<word>(i);
                                       })
                                   .on(gpu, source{stir_text, "stir"});
constexpr auto stir = kernel<inout<word, 1>, word>("stir_on_gpu").on(gpu, source{stir_text, "stir"});

options with(int threads, std::vector<device_use> devices) {
  options o;
  o.threads = threads;
  o.devices = std::move(devices);
  o.cost_cache = "none";  // no test knows what another one has measured
  return o;
}

const executor_report& report_of(const runtime_report& r, const std::string& name) {
  return *std::find_if(r.executors.begin(), r.executors.end(), [&](const auto& e) { return e.name == name; });
}

// The offer of that executor; one that no test expects where there is none.
candidate candidate_of(const explanation& e, const std::string& name) {
  const auto at =
      std::find_if(e.candidates.begin(), e.candidates.end(), [&](const candidate& c) { return c.executor == name; });
  EXPECT_NE(at, e.candidates.end()) << "nothing from " << name << " in " << e.text();
  return at != e.candidates.end() ? *at : candidate{};
}

TEST(gpu_resources, R1_a_task_on_a_device_takes_no_core) {
  runtime rt(with(2, {{"sim:0"}}));
  gate held;
  const test::opener always(held);
  test::meeting both(3);
  for (int i = 0; i < 2; ++i)  // every slot of the cores is taken
    rt.spawn([&] {
      EXPECT_TRUE(both.arrive_and_wait());
      EXPECT_TRUE(held.pass());
    });
  EXPECT_TRUE(both.arrive_and_wait());
  auto a = rt.filled<word>({100}, tiles(100), 1);
  EXPECT_TRUE(rt.spawn(stir, update(a), word{2}).wait_for(test::patience));  // while they are held
  held.open();
  EXPECT_EQ(a.read()(3), 5u);
}

TEST(gpu_resources, R2_the_device_works_on_the_first_results_while_cores_make_the_next) {
  runtime rt(with(1, {{"sim:0"}}));
  auto first = rt.array<word>({100}, tiles(100)), second = rt.array<word>({100}, tiles(100));
  gate held;
  const test::opener always(held);
  const auto fill = [](view<word, 1> a) { std::fill_n(a.data(), 100, 1u); };
  rt.spawn(fill, write(first));
  auto on_device = rt.spawn(stir, update(first), word{2});
  rt.spawn(
      [&, fill](view<word, 1> a) {
        EXPECT_TRUE(held.pass());
        fill(a);
      },
      write(second));
  auto later = rt.spawn(stir, update(second), word{2});
  EXPECT_TRUE(on_device.wait_for(test::patience));  // although the only core is busy
  EXPECT_FALSE(later.is_ready());
  held.open();
  later.get();
  EXPECT_EQ(second.read()(7), 9u);
}

const resource one_link[] = {{"link", 1}};
const auto careful = kernel<inout<word, 1>, word>("careful").on(gpu, source{stir_text, "stir"}).needs(one_link);

TEST(gpu_resources, R3_what_the_kernel_declares_holds_at_every_call) {
  options o = with(1, {{"sim:0"}});
  o.resources = {{"link", 1}};
  runtime rt(o);
  auto a = rt.filled<word>({100}, tiles(10), 1);
  rt.for_each(grid(100), careful, update(a), word{2}).get();
  EXPECT_EQ(rt.report().resources_free.at(0).amount, 1.0);
  runtime without(with(1, {{"sim:0"}}));
  auto b = without.filled<word>({10}, tiles(10), 1);
  EXPECT_EQ(code_of([&] { without.spawn(careful, update(b), word{2}); }), errc::no_resource);
}

TEST(gpu_resources, R4_tasks_that_only_wait_take_no_core_from_those_that_feed_a_device) {
  options o = with(1, {{"sim:0"}});
  o.resources = {{"io", 50}};
  runtime rt(o);
  gate held;
  const test::opener always(held);
  test::meeting all(51);
  for (int i = 0; i < 50; ++i)
    rt.spawn(task_options{.resources = {{"cpu", 0}, {"io", 1}}}, [&] {
      EXPECT_TRUE(all.arrive_and_wait());
      EXPECT_TRUE(held.pass());
    });
  EXPECT_TRUE(all.arrive_and_wait());
  auto a = rt.array<word>({100}, tiles(100));
  rt.spawn([](view<word, 1> v) { std::fill_n(v.data(), 100, 3u); }, write(a));
  EXPECT_TRUE(rt.spawn(stir, update(a), word{2}).wait_for(test::patience));
  held.open();
}

TEST(gpu_resources, R7_one_card_may_be_several_slots_with_memory_of_their_own) {
  runtime rt(with(1, {{"sim:0", 1 << 20}, {"sim:0", 1 << 20}, {"sim:1", 1 << 20}}));
  const auto all = rt.executors();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2].name, "sim:0#1");
  std::vector<array<word, 1>> arrays;
  for (word i = 0; i < 3; ++i) {
    arrays.push_back(rt.filled<word>({1000}, tiles(1000), i));
    rt.spawn(task_options{.where = scope::executor(all[i + 1].name)}, stir, update(arrays.back()), word{2});
  }
  for (word i = 0; i < 3; ++i) EXPECT_EQ(arrays[i].read()(5), 2 * i + 5);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(rt.executors()[i].tasks, 1u);
}

TEST(gpu_resources, R9_data_that_is_there_costs_nothing_to_bring) {
  runtime rt(with(1, {{"sim:0"}, {"sim:1"}}));
  constexpr index_t n = 1 << 16;
  auto a = rt.filled<word>({n}, tiles(n), 1);
  for (const char* name :
       {"sim:0", "sim:1", "sim:0", "sim:1", "sim:0"})  // both know the kernel, then sim:0 has the data
    rt.spawn(task_options{.where = scope::executor(name)}, stir, update(a), word{3}).get();
  auto f = rt.spawn(task_options{.where = scope::gpu()}, stir, update(a), word{3});
  f.get();
  const explanation e = rt.explain(f);
  ASSERT_EQ(e.candidates.size(), 2u) << e.text();
  const candidate there = candidate_of(e, "sim:0"), elsewhere = candidate_of(e, "sim:1");
  EXPECT_EQ(there.bytes_missing, 0u) << e.text();
  EXPECT_EQ(there.transfer.count(), 0) << e.text();
  EXPECT_EQ(elsewhere.bytes_missing, n * sizeof(word)) << e.text();
  EXPECT_GT(elsewhere.transfer.count(), 0) << e.text();
}

TEST(gpu_resources, R9_what_another_device_holds_costs_more_than_what_the_host_has) {
  options o = with(1, {{"sim:0"}, {"sim:1"}});
  const test::scratch_folder costs;
  o.cost_cache = costs.path();
  runtime rt(o);
  constexpr index_t n = 1 << 18;
  auto at_home = rt.filled<word>({n}, tiles(n), 1), there = rt.filled<word>({n}, tiles(n), 1);
  const auto on = [](const char* name) { return task_options{.where = scope::executor(name)}; };
  for (int i = 0; i < 4; ++i)  // all know the kernel
    for (const char* name : {"cpu:0", "sim:1", "sim:0"}) {
      rt.spawn(on(name), stir_anywhere, update(there), word{3}).get();
    }
  // The one that stays at home goes first: nothing is learned about links between the two decisions.
  auto f = rt.spawn(stir_anywhere, update(at_home), word{3});
  f.get();
  auto g = rt.spawn(stir_anywhere, update(there), word{3});
  g.get();
  const explanation home = rt.explain(f), other = rt.explain(g);
  ASSERT_EQ(home.candidates.size(), 3u) << home.text();
  ASSERT_EQ(other.candidates.size(), 3u) << other.text();
  const auto transfer = [](const explanation& e, const char* to) { return candidate_of(e, to).transfer.count(); };
  EXPECT_EQ(transfer(home, "cpu:0"), 0) << home.text();
  EXPECT_GT(transfer(home, "sim:0"), 0) << home.text();
  EXPECT_GT(transfer(home, "sim:1"), 0) << home.text();
  // The data of the other one is in sim:0 alone: same device < host < another device.
  EXPECT_EQ(transfer(other, "sim:0"), 0) << other.text();
  EXPECT_GT(transfer(other, "cpu:0"), 0) << other.text();
  EXPECT_GT(transfer(other, "sim:1"), transfer(other, "cpu:0")) << other.text();
  EXPECT_GE(transfer(other, "sim:1"), transfer(home, "sim:1")) << home.text() << other.text();
}

TEST(gpu_resources, R10_between_devices_data_is_copied_once_out_and_once_in) {
  runtime rt(with(1, {{"sim:0"}, {"sim:1"}}));
  constexpr index_t n = 4096;
  auto a = rt.filled<word>({n}, tiles(n), 1);
  const auto on = [](const char* name) { return task_options{.where = scope::executor(name)}; };
  rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
  const auto before = rt.report();
  rt.spawn(on("sim:1"), stir, update(a), word{3}).get();
  rt.spawn(on("sim:1"), stir, update(a), word{3}).get();
  const auto after = rt.report();
  const auto moved = [&](const char* name) {
    return report_of(after, name).bytes_moved - report_of(before, name).bytes_moved;
  };
  EXPECT_EQ(moved("sim:0"), n * sizeof(word));
  EXPECT_EQ(moved("sim:1"), n * sizeof(word));
  EXPECT_EQ(moved("cpu:0"), 0u);
}

TEST(gpu_resources, R11_out_of_memory_on_a_device_is_a_reason_to_make_room) {
  constexpr index_t tile = 1 << 14;                           // 64 KiB
  runtime rt(with(1, {{"sim:0", 4 * tile * sizeof(word)}}));  // room for 4
  auto a = rt.filled<word>({12 * tile}, tiles(tile), 1);      // 12
  rt.for_each(grid(12 * tile), stir, update(a), word{3}).get();
  rt.for_each(grid(12 * tile), stir, update(a), word{3}).get();
  const auto v = a.read();
  for (index_t i = 0; i < 12 * tile; i += 1000) ASSERT_EQ(v(i), (3 + static_cast<word>(i)) * 3 + static_cast<word>(i));
  EXPECT_EQ(report_of(rt.report(), "sim:0").failed, 0u);
}

TEST(gpu_resources, R12_without_the_hardware_the_other_body_runs_or_the_call_is_refused) {
  runtime rt(with(1, {{"cuda"}, {"hip"}}));  // of which there may be none
  auto a = rt.filled<word>({100}, tiles(100), 1);
  rt.spawn(stir_anywhere, update(a), word{2}).get();
  EXPECT_EQ(a.read()(3), 5u);
  if (rt.executors().size() == 1) {
    EXPECT_EQ(code_of([&] { rt.spawn(stir, update(a), word{2}); }), errc::no_executor);
  }
}

TEST(gpu_resources, R14_ten_thousand_cancels_give_every_slot_and_byte_back) {
  options o = with(1, {{"sim:0"}});
  o.resources = {{"link", 3}};
  runtime rt(o);
  auto a = rt.filled<word>({64}, tiles(64), 1), own = rt.filled<word>({64}, tiles(64), 1);
  std::uint64_t ran = 0, cancelled = 0;
  std::vector<future<void>> all;
  std::vector<std::stop_source> stops(10'000);
  for (auto& stop : stops) {
    task_options o2{.resources = {{"link", 1}}};
    o2.stop = stop.get_token();
    all.push_back(rt.spawn(o2, stir, update(all.size() % 2 ? a : own), word{3}));
    stop.request_stop();
  }
  rt.wait_all();
  for (auto& f : all) {
    try {
      f.get();
      ++ran;
    } catch (const task_failed&) {
      ++cancelled;
    }
  }
  EXPECT_EQ(ran + cancelled, 10'000u);
  EXPECT_GT(cancelled, 0u);
  EXPECT_EQ(rt.report().resources_free.at(0).amount, 3.0);
  auto fresh = rt.filled<word>({64}, tiles(64), 1);
  rt.spawn(task_options{.resources = {{"link", 3}}}, stir, update(fresh), word{2}).get();
  EXPECT_EQ(fresh.read()(5), 7u);
}

}  // namespace
