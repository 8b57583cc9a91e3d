// What this file is for: kernels as text on accelerators: data in several memories behaves as if there were one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"
#include "tests/api/word_kernels.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::cwords;
using test::error_of;
using test::scale;
using test::stir;
using test::word;
using test::words;

// A cross of five, borders by the mapper.
constexpr auto cross =
    kernel<in<word, 2>, out<word, 2>>("cross")
        .on(cpu,
            [](view<const word, 2> a, view<word, 2> b) {
              for (index_t y = b.lo(0); y < b.hi(0); ++y)
                for (index_t x = b.lo(1); x < b.hi(1); ++x)
                  b(y, x) = a(y, x) * 3 + a(y - 1, x) * 5 + a(y + 1, x) * 7 + a(y, x - 1) * 11 + a(y, x + 1) * 13;
            })
        .on(gpu, source{R"(
GPU_KERNEL void cross(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  const long x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1);
  if (y < GPU_HI(b, 0) && x < GPU_HI(b, 1))
    GPU_AT2(b, y, x) = GPU_AT2(a, y, x) * 3 + GPU_AT2(a, y - 1, x) * 5 + GPU_AT2(a, y + 1, x) * 7 +
                       GPU_AT2(a, y, x - 1) * 11 + GPU_AT2(a, y, x + 1) * 13;
})",
                        "cross"});

options with_sims(int count, std::uint64_t memory = 0, int lanes = 4) {
  options o;
  o.threads = 2;
  o.cost_cache = "none";  // no test knows what another one has measured
  for (int i = 0; i < count; ++i) o.devices.push_back({"sim:" + std::to_string(i % 2), memory, lanes});
  o.eager_devices = true;
  return o;
}

const executor_report& report_of(const runtime_report& r, const std::string& name) {
  return *std::find_if(r.executors.begin(), r.executors.end(), [&](const auto& e) { return e.name == name; });
}

task_options on(const std::string& name) { return {.where = scope::executor(name)}; }

template <class T>
std::vector<T> contents(const array<T, 1>& a) {
  const auto v = a.read();
  std::vector<T> all;
  for (index_t i = 0; i < v.size(0); ++i) all.push_back(v(i));
  return all;
}

// ---- one device -----------------------------------------------------------------------------------------------------

TEST(gpu, executors_are_listed_after_the_cores_with_their_kind) {
  runtime rt(with_sims(2));
  const auto all = rt.executors();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "cpu:0");
  EXPECT_EQ(all[1].name, "sim:0");
  EXPECT_EQ(all[2].name, "sim:1");
  EXPECT_EQ(all[2].kind, device_kind::sim);
}

TEST(gpu, runs_a_kernel_where_the_scope_says) {
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({1000}, tiles(300), 5), b = rt.array<word>({1000}, tiles(300));
  auto done = rt.for_each(on("sim:0"), grid(1000), scale, read(a), write(b), word{7}, word{1});
  done.get();
  EXPECT_EQ(contents(b), std::vector<word>(1000, 36));
  EXPECT_EQ(report_of(rt.report(), "sim:0").tasks, 4u);
  EXPECT_EQ(report_of(rt.report(), "cpu:0").tasks, 0u);
}

TEST(gpu, data_that_is_there_is_not_copied_again) {
  runtime rt(with_sims(1));
  constexpr index_t n = 4096;
  auto a = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
  const auto moved = report_of(rt.report(), "sim:0").bytes_moved;
  EXPECT_EQ(moved, n * sizeof(word));
  for (int i = 0; i < 50; ++i) rt.spawn(on("sim:0"), stir, update(a), word{3});
  rt.wait_all();
  EXPECT_EQ(report_of(rt.report(), "sim:0").bytes_moved, moved);
  word expected = 1;
  for (int i = 0; i < 51; ++i) expected = expected * 3 + 17;
  EXPECT_EQ(a.read()(17), expected);
  EXPECT_EQ(report_of(rt.report(), "sim:0").bytes_moved, 2 * moved);  // and back, once
}

TEST(gpu, cores_and_devices_take_turns_on_one_tile) {
  runtime rt(with_sims(2));
  constexpr index_t n = 777;
  auto a = rt.filled<word>({n}, tiles(n), 2);
  std::vector<word> model(n, 2);
  const char* executors[] = {"cpu:0", "sim:0", "sim:1", "sim:0", "cpu:0", "sim:1"};
  for (word round = 0; round < 60; ++round) {
    rt.spawn(on(executors[round % 6]), stir, update(a), round);
    for (index_t i = 0; i < n; ++i)
      model[static_cast<std::size_t>(i)] = model[static_cast<std::size_t>(i)] * round + static_cast<word>(i);
    if (round % 17 == 0) {
      EXPECT_EQ(contents(a), model) << round;
    }
  }
  EXPECT_EQ(contents(a), model);
}

// Without anything written, each element that is read has a work-item: the kernel has no loop.
constexpr auto total = kernel<in<word, 1>, in<word, 2>, red<word, 1>>("total").on(gpu, source{R"(
GPU_KERNEL void total(GPU_IN(unsigned, line), GPU_IN(unsigned, other), GPU_INOUT(unsigned, sum)) {
  const long i = GPU_LO(line, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(line, 0))
    GPU_ATOMIC_ADD_I32((GPU_GLOBAL int*)&GPU_AT1(sum, GPU_LO(sum, 0)), (int)(GPU_AT1(line, i) * GPU_AT2(other, 0, 0)));
})",
                                                                                              "total"});

TEST(gpu, calls_that_only_read_and_reduce_are_launched_by_the_first_array_they_read) {
  runtime rt(with_sims(2));
  std::vector<word> data(5000);
  std::iota(data.begin(), data.end(), 1u);
  auto line = rt.adopt(data, {5000}, tiles(1500));
  auto two = rt.filled<word>({1, 1}, tiles(1, 1), 2);
  auto sum = rt.filled<word>({1}, tiles(1), 7);
  rt.for_each(grid(5000), total, read(line), read(two, all{}), reduce(sum)).get();
  EXPECT_EQ(sum.read()(0), 7u + 5000u * 5001u);
}

TEST(gpu, an_overwritten_copy_does_not_come_back) {
  runtime rt(with_sims(1));
  constexpr index_t n = 500;
  auto a = rt.filled<word>({n}, tiles(n), 1), b = rt.array<word>({n}, tiles(n));
  for (word round = 0; round < 20; ++round) {
    rt.spawn(on("sim:0"), stir, update(a), word{2});  // dirty on the device
    rt.spawn(on("cpu:0"), scale, read(b = rt.filled<word>({n}, tiles(n), round)), write(a), word{1}, word{0});
    rt.spawn(on("sim:0"), stir, update(a), word{2});
    EXPECT_EQ(a.read()(3), round * 2 + 3);
  }
}

TEST(gpu, windows_have_their_borders_on_devices_too) {
  runtime rt(with_sims(1));
  constexpr index_t h = 33, w = 41;
  const auto make = [&] {
    auto a = rt.array<word>({h, w}, tiles(8, 16));
    auto v = a.write();
    for (index_t y = 0; y < h; ++y)
      for (index_t x = 0; x < w; ++x) v(y, x) = static_cast<word>(y * 1000 + x * 7 + 1);
    return a;
  };
  const auto a = make();
  const auto same = [&](auto border) {
    auto here = rt.array<word>({h, w}, tiles(8, 16)), there = rt.array<word>({h, w}, tiles(8, 16));
    rt.for_each(on("cpu:0"), grid(h, w), cross, read(a, border), write(here));
    rt.for_each(on("sim:0"), grid(h, w), cross, read(a, border), write(there));
    const auto x = here.read(), y = there.read();
    for (index_t i = 0; i < h; ++i)
      for (index_t k = 0; k < w; ++k) ASSERT_EQ(x(i, k), y(i, k)) << i << ',' << k;
  };
  same(window(1, 1).clamp());
  same(window(1, 1).wrap());
  same(window(1, 1).fill(word{9}));
}

TEST(gpu, chunks_that_cut_tiles_are_written_in_part) {
  runtime rt(with_sims(2));
  constexpr index_t n = 1000;
  auto a = rt.filled<word>({n}, tiles(128), 3), b = rt.array<word>({n}, tiles(96));
  for (int round = 0; round < 4; ++round) {
    rt.for_each(grid(n).chunks(70), scale, read(a, one_to_one{}), write(b, one_to_one{}), word{2}, word{1});
    rt.for_each(on("sim:1"), grid(n).chunks(130), scale, read(b, one_to_one{}), write(a, one_to_one{}), word{3},
                word{0});
  }
  word expected = 3;
  for (int round = 0; round < 4; ++round) expected = (expected * 2 + 1) * 3;
  EXPECT_EQ(contents(a), std::vector<word>(n, expected));
}

TEST(gpu, sub_arrays_count_from_zero) {
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({100}, tiles(50), 1);
  rt.spawn(on("sim:0"), stir, update(a.sub({{50}, {100}})), word{0});  // a whole tile
  rt.spawn(on("sim:0"), stir, update(a.sub({{10}, {20}})), word{0});   // a part of one
  const auto v = contents(a);
  for (word i = 0; i < 100; ++i) EXPECT_EQ(v[i], i >= 50 ? i - 50 : i >= 10 && i < 20 ? i - 10 : 1u) << i;
}

TEST(gpu, reductions_combine_partials_of_cores_and_devices) {
  constexpr auto count = kernel<in<word, 1>, red<word, 1>>("count")
                             .on(cpu,
                                 [](cwords a, words bins) {
                                   for (index_t i = a.lo(0); i < a.hi(0); ++i) bins(a(i) % 8) += 1;
                                 })
                             .on(gpu, source{R"(
GPU_KERNEL void count(GPU_IN(unsigned, a), GPU_INOUT(unsigned, bins)) {
  if (GPU_GLOBAL_ID(0) != 0) return;
  for (long i = GPU_LO(a, 0); i < GPU_HI(a, 0); ++i) GPU_AT1(bins, GPU_AT1(a, i) % 8) += 1;
})",
                                             "count",
                                             {1, 1, 1}});
  runtime rt(with_sims(2));
  constexpr index_t n = 8000;
  auto a = rt.array<word>({n}, tiles(250));
  {
    auto v = a.write();
    for (index_t i = 0; i < n; ++i) v(i) = static_cast<word>(i * i);
  }
  auto bins = rt.filled<word>({8}, tiles(8), 0);
  for (const char* where : {"cpu:0", "sim:0", "sim:1"})
    rt.for_each(on(where), grid(n).chunks(250), count, read(a), reduce(bins, std::plus<>{}, word{0}));
  std::vector<word> expected(8);
  for (index_t i = 0; i < n; ++i) expected[static_cast<std::size_t>(static_cast<word>(i * i) % 8)] += 3;
  EXPECT_EQ(contents(bins), expected);
}

TEST(gpu, scalars_arrive_as_the_signature_says) {
  constexpr auto mixed = kernel<out<double, 1>, float, std::int64_t, std::uint8_t>("mixed").on(gpu, source{R"(
GPU_KERNEL void mixed(GPU_OUT(double, a), const float f, const long l, const unsigned char c) {
  if (GPU_GLOBAL_ID(0) == 0) { GPU_AT1(a, 0) = f; GPU_AT1(a, 1) = l; GPU_AT1(a, 2) = c; }
})",
                                                                                                           "mixed"});
  runtime rt(with_sims(1));
  auto a = rt.array<double>({3}, tiles(3));
  rt.spawn(mixed, write(a), 1, 1 << 20, 'x');  // ints and a char: converted as for a C++ body
  const auto v = a.read();
  EXPECT_EQ(v(0), 1.0);
  EXPECT_EQ(v(1), 1048576.0);
  EXPECT_EQ(v(2), 120.0);
}

TEST(gpu, memory_of_the_caller_holds_the_results_once_the_handle_is_gone) {
  std::vector<word> mine(600, 4);
  {
    runtime rt(with_sims(1));
    {
      auto a = rt.borrow<word>(std::span(mine), {600}, tiles(200));
      rt.for_each(on("sim:0"), grid(600), stir, update(a), word{2});
    }
    rt.wait_all();
    while (rt.report().arrays != 0) std::this_thread::yield();
    for (word i = 0; i < 600; ++i) ASSERT_EQ(mine[i], 8 + i);
    auto again = rt.borrow<word>(std::span(mine), {600}, tiles(200));
    rt.for_each(on("sim:0"), grid(600), stir, update(again), word{1});
  }
  for (word i = 0; i < 600; ++i) ASSERT_EQ(mine[i], 8 + 2 * i);  // also when the runtime goes first
}

TEST(gpu, a_dropped_array_leaves_nothing_behind) {
  runtime rt(with_sims(1, 1 << 20));
  for (int i = 0; i < 200; ++i) {  // 200 x 256 KiB through 1 MiB, dirty
    auto a = rt.filled<word>({65536}, tiles(65536), 1);
    rt.spawn(on("sim:0"), stir, update(a), word{3});
  }
  rt.wait_all();
  while (rt.report().arrays != 0) std::this_thread::yield();
  EXPECT_EQ(rt.report().bytes_allocated, 0u);
}

// ---- little memory --------------------------------------------------------------------------------------------------

TEST(gpu, four_times_its_memory_passes_through_a_device_exactly) {
  constexpr index_t tile = 4096, count = 64;                  // 1 MiB
  runtime rt(with_sims(1, tile * count / 4 * sizeof(word)));  // 256 KiB
  auto a = rt.filled<word>({tile * count}, tiles(tile), 1);
  for (int round = 0; round < 3; ++round) rt.for_each(on("sim:0"), grid(tile * count), stir, update(a), word{3});
  const auto v = contents(a);
  for (std::size_t i = 0; i < v.size(); ++i) {
    word expected = 1;
    for (int round = 0; round < 3; ++round) expected = expected * 3 + static_cast<word>(i);
    ASSERT_EQ(v[i], expected) << i;
  }
}

TEST(gpu, a_task_that_never_fits_is_refused_with_both_sizes_and_the_rest_goes_on) {
  runtime rt(with_sims(1, 65536));
  auto large = rt.filled<word>({65536}, tiles(65536), 1), small = rt.filled<word>({64}, tiles(64), 1);
  const auto e = error_of([&] { rt.spawn(on("sim:0"), stir, update(large), word{3}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::out_of_memory);
  EXPECT_TRUE(e->says("262144")) << e->text;
  EXPECT_TRUE(e->says("65536")) << e->text;
  rt.spawn(on("sim:0"), stir, update(small), word{3}).get();
  EXPECT_EQ(small.read()(5), 8u);
}

// ---- errors ---------------------------------------------------------------------------------------------------------

TEST(gpu, a_text_that_does_not_compile_fails_with_the_compilers_log) {
  constexpr auto broken = kernel<inout<word, 1>>("broken").on(
      gpu, source{"GPU_KERNEL void broken(GPU_INOUT(unsigned, a)) { no_such_thing; }", "broken"});
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({10}, tiles(10), 1), b = rt.filled<word>({10}, tiles(10), 1);
  auto f = rt.spawn(broken, update(a));
  EXPECT_EQ(code_of([&] { f.get(); }), errc::compile_failed);
  try {
    f.get();
  } catch (const task_failed& e) {
    EXPECT_EQ(code_of([&] { e.rethrow_cause(); }), errc::compile_failed);
    EXPECT_NE(std::string(e.what()).find("no_such_thing"), std::string::npos) << e.what();
    EXPECT_EQ(e.executor(), "sim:0");
  }
  rt.spawn(on("sim:0"), stir, update(b), word{2}).get();
  EXPECT_EQ(b.read()(4), 6u);
}

TEST(gpu, a_kernel_without_a_body_for_the_scope_fails_at_spawn) {
  constexpr auto host_only = kernel<inout<word, 1>>("host_only").on(cpu, [](words) {});
  constexpr auto sim_only = kernel<inout<word, 1>>("sim_only")
                                .on(sim, source{"GPU_KERNEL void sim_only(GPU_INOUT(unsigned, a)) {}", "sim_only"});
  runtime rt(with_sims(1)), plain(options{.threads = 1});
  auto a = rt.filled<word>({10}, tiles(10), 1), b = plain.filled<word>({10}, tiles(10), 1);
  EXPECT_EQ(code_of([&] { rt.spawn(on("sim:0"), host_only, update(a)); }), errc::no_executor);
  EXPECT_EQ(code_of([&] { rt.spawn(on("cpu:0"), sim_only, update(a)); }), errc::no_executor);
  EXPECT_EQ(code_of([&] { plain.spawn(sim_only, update(b)); }), errc::no_executor);
  EXPECT_EQ(code_of([&] { rt.spawn(on("sim:0"), [] {}); }), errc::no_executor);  // closures run on cores
}

TEST(gpu, graphs_are_recorded_of_what_cores_can_run) {
  constexpr auto sim_only = kernel<inout<word, 1>>("sim_only")
                                .on(sim, source{"GPU_KERNEL void sim_only(GPU_INOUT(unsigned, a)) {}", "sim_only"});
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({100}, tiles(50), 1);
  EXPECT_EQ(code_of([&] { rt.record([&](recorder& r) { r.spawn(sim_only, update(a)); }); }), errc::not_supported);
  EXPECT_EQ(code_of([&] { rt.record([&](recorder& r) { r.spawn(on("sim:0"), stir, update(a), word{2}); }); }),
            errc::no_executor);  // both tiles in one call
  const auto g = rt.record([&](recorder& r) { r.for_each(grid(100), stir, update(a), word{2}); });
  word expected = 1;
  for (int round = 0; round < 5; ++round) {
    rt.for_each(on("sim:0"), grid(100), stir, update(a), word{3});  // a run reads what is dirty on the device
    rt.run(g);
    expected = (expected * 3 + 60) * 2 + 60;
  }
  EXPECT_EQ(a.read()(60), expected);
}

TEST(gpu, devices_that_are_not_there_are_refused_with_the_reason) {
  const auto start = [](device_use d) {
    options o;
    o.threads = 1;
    o.devices = {std::move(d)};
    runtime rt(o);
  };
  EXPECT_EQ(code_of([&] { start({"toaster"}); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { start({"sim:x"}); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { start({"sim:-1"}); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { start({"sim:0", 0, 0}); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { start({"sim:99"}); }), errc::no_executor);
}

TEST(gpu, a_cancelled_task_never_starts_and_its_successors_run) {
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({100}, tiles(100), 1);
  test::gate held;
  const test::opener always(held);
  rt.spawn(
      on("cpu:0"), [&](words) { EXPECT_TRUE(held.pass()); }, update(a));
  std::stop_source stop;
  task_options o = on("sim:0");
  o.stop = stop.get_token();
  auto cancelled = rt.spawn(o, stir, update(a), word{3});
  stop.request_stop();
  held.open();
  EXPECT_EQ(code_of([&] { cancelled.get(); }), errc::cancelled);
  rt.spawn(on("sim:0"), scale, read(rt.filled<word>({100}, tiles(100), 2)), write(a), word{1}, word{0});
  EXPECT_EQ(contents(a), std::vector<word>(100, 2));
}

// The device's thread is in the compiler then, and does not answer: the texts are new ones in each process.
TEST(gpu, a_shutdown_while_a_device_compiles_ends_all_futures) {
  // A thread that is left behind reads the texts for as long as it compiles, also while the process ends.
  static auto& texts = *new std::list<std::string>;
  for (int i = 0; i < 3; ++i) {
    const std::string& text = texts.emplace_back(
        "GPU_KERNEL void add_some(GPU_INOUT(unsigned, a)) {\n"
        "  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);\n"
        "  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += " +
        std::to_string(std::random_device()() % 1'000'000'007) + "u;\n}\n");
    const auto add_some = kernel<inout<unsigned, 1>>("add_some").on(troupe::gpu, source{text.c_str(), "add_some"});
    runtime rt(with_sims(1));
    auto a = rt.filled<unsigned>({100}, tiles(100), 1);
    const auto on_device = rt.spawn(add_some, update(a));
    const auto behind_it = rt.spawn([](view<unsigned, 1>) {}, update(a));
    const auto r = rt.shutdown(std::chrono::milliseconds(i * 10));
    for (const auto& f : {on_device, behind_it}) ASSERT_TRUE(f.is_ready());
    // The compiler may be done, and the task with it, after the deadline and before the device is left behind; then
    // only what comes after it has not run.
    const auto first = code_of([&] { on_device.get(); }), second = code_of([&] { behind_it.get(); });
    EXPECT_EQ(second, r.complete ? std::nullopt : std::optional(errc::runtime_stopped));
    EXPECT_TRUE(!first || (first == errc::runtime_stopped && !r.complete)) << static_cast<int>(*first);
  }
}

TEST(gpu, a_runtime_ends_with_work_on_its_devices) {
  for (int i = 0; i < 5; ++i) {
    runtime rt(with_sims(2));
    auto a = rt.filled<word>({1 << 14}, tiles(1 << 10), 1);
    for (int k = 0; k < 20; ++k) rt.for_each(on(k % 2 ? "sim:0" : "sim:1"), grid(1 << 14), stir, update(a), word{3});
    if (i % 2) {
      const auto r = rt.shutdown(std::chrono::milliseconds(0));
      EXPECT_TRUE(r.still_running.empty() || !r.complete);
    }
  }
}

// ---- all together ---------------------------------------------------------------------------------------------------

class gpu_programs : public testing::TestWithParam<unsigned> {};

TEST_P(gpu_programs, anywhere_are_the_serial_program) {
  std::mt19937 random(GetParam());
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  // Sometimes with so little memory that copies must go.
  runtime rt(with_sims(2, GetParam() % 3 == 0 ? 16384 : 0, static_cast<int>(pick(1, 4))));
  const index_t n = pick(50, 900);
  array<word, 1> arrays[3];
  std::vector<word> model[3];
  for (int i = 0; i < 3; ++i) {
    arrays[i] = rt.filled<word>({n}, tiles(pick(20, 400)), static_cast<word>(i), "array " + std::to_string(i));
    model[i].assign(static_cast<std::size_t>(n), static_cast<word>(i));
  }
  const scope scopes[] = {scope::any(), scope::cpu(), scope::gpu(), scope::executor("sim:0"), scope::executor("sim:1")};
  for (int step = 0; step < 120; ++step) {
    const auto from = static_cast<std::size_t>(pick(0, 2)), to = static_cast<std::size_t>(pick(0, 2));
    const task_options where{.where = scopes[pick(0, 4)], .priority = static_cast<int>(pick(0, 2))};
    const auto x = static_cast<word>(pick(1, 1000));
    index_t lo = 0, hi = n;
    const auto chunk = pick(30, n);
    switch (pick(0, 4)) {
      case 0:
        if (from == to) break;
        rt.for_each(where, grid(n).chunks(chunk), scale, read(arrays[from], one_to_one{}),
                    write(arrays[to], one_to_one{}), x, word{1});
        for (std::size_t i = 0; i < model[to].size(); ++i) model[to][i] = model[from][i] * x + 1;
        break;
      case 1:
        rt.for_each(where, grid(n), stir, update(arrays[to]), x);
        for (std::size_t i = 0; i < model[to].size(); ++i) model[to][i] = model[to][i] * x + static_cast<word>(i);
        break;
      case 2:
        lo = pick(0, n - 1);
        hi = pick(lo + 1, n);
        rt.spawn(where, stir, update(arrays[to].sub({{lo}, {hi}})), x);
        for (index_t i = lo; i < hi; ++i) {
          word& m = model[to][static_cast<std::size_t>(i)];
          m = m * x + static_cast<word>(i - lo);
        }
        break;
      case 3: {
        const auto v = arrays[from].read();
        const index_t i = pick(0, n - 1);
        ASSERT_EQ(v(i), model[from][static_cast<std::size_t>(i)]) << "step " << step;
        break;
      }
      default: {
        lo = pick(0, n - 1);
        auto v = arrays[to].update();
        v(lo) = x;
        model[to][static_cast<std::size_t>(lo)] = x;
      }
    }
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(contents(arrays[i]), model[i]) << "array " << i;
}

INSTANTIATE_TEST_SUITE_P(seeds, gpu_programs, testing::Range(0u, 24u));

}  // namespace
