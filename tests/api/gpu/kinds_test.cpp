// What this file is for: the public API on every kind of accelerator there is: data, order, memory, failures.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"
#include "tests/api/word_kernels.hpp"
#include "tests/support/driver_leaks.hpp"

namespace {

using namespace troupe;
using test::cwords;
using test::error_of;
using test::scale;
using test::stir;
using test::word;
using test::words;
using troupe::index_t;

// OpenCL has a function `cross` of its own.
constexpr auto cross = kernel<in<word, 2>, out<word, 2>>("cross").on(gpu, source{R"(
GPU_KERNEL void five_points(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  const long x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1);
  if (y < GPU_HI(b, 0) && x < GPU_HI(b, 1))
    GPU_AT2(b, y, x) = GPU_AT2(a, y, x) * 3 + GPU_AT2(a, y - 1, x) * 5 + GPU_AT2(a, y + 1, x) * 7 +
                       GPU_AT2(a, y, x - 1) * 11 + GPU_AT2(a, y, x + 1) * 13;
})",
                                                                                 "five_points"});

constexpr auto count_odd = kernel<in<word, 1>, red<int, 1>>("count odd")
                               .on(gpu, source{R"(
GPU_KERNEL void count_odd(GPU_IN(unsigned, a), GPU_INOUT(int, sum)) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0) && GPU_AT1(a, i) % 2 == 1) GPU_ATOMIC_ADD_I32(&GPU_AT1(sum, 0), 1);
})",
                                               "count_odd"});

/// The parameter: a kind. Each test has a runtime with that kind's first device, or is skipped with the reason.
class gpu_kinds : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { start(); }
  void start(std::uint64_t memory = 0, bool twice = false) {
    for (const auto& l : list_devices())
      if (l.kind_name == GetParam() && l.devices.empty()) GTEST_SKIP() << "no " << l.kind_name << ": " << l.remark;
    options o;
    o.threads = 2;
    o.devices = {{name(), memory}};
    if (twice) o.devices.push_back({name(), memory});
    o.cost_cache = "none";
    rt_.emplace(o);
  }
  std::string name() const { return std::string(GetParam()) + ":0"; }
  task_options here() const { return {.where = scope::executor(name())}; }
  runtime& rt() { return *rt_; }
  executor_report device() { return rt().executors(scope::executor(name())).at(0); }
  static std::vector<word> contents(const array<word, 1>& a) {
    const auto v = a.read();
    std::vector<word> all;
    for (index_t i = 0; i < v.size(0); ++i) all.push_back(v(i));
    return all;
  }
  std::optional<runtime> rt_;
};

TEST_P(gpu_kinds, runs_a_kernel_where_the_scope_says) {
  auto a = rt().filled<word>({1000}, tiles(300), 5), b = rt().array<word>({1000}, tiles(300));
  rt().for_each(here(), grid(1000), scale, read(a), write(b), word{7}, word{1}).get();
  EXPECT_EQ(contents(b), std::vector<word>(1000, 36));
  EXPECT_EQ(device().tasks, 4u);
}

TEST_P(gpu_kinds, keeps_what_is_there_and_brings_home_what_the_host_reads) {
  auto a = rt().filled<word>({1000}, tiles(250), 1);
  rt().for_each(here(), grid(1000), stir, update(a), word{3}).get();
  const auto moved = device().bytes_moved;
  EXPECT_EQ(moved, 4000u);
  for (int i = 0; i < 10; ++i) rt().for_each(here(), grid(1000), stir, update(a), word{3}).get();
  EXPECT_EQ(device().bytes_moved, moved);
  word expected = 1;
  for (int i = 0; i < 11; ++i) expected = expected * 3 + 999;
  EXPECT_EQ(contents(a).back(), expected);
  EXPECT_EQ(device().bytes_moved, 2 * moved);
}

TEST_P(gpu_kinds, tasks_that_follow_one_another_keep_their_order) {
  auto a = rt().filled<word>({5000}, tiles(5000), 1), b = rt().array<word>({5000}, tiles(5000));
  word x = 1;
  for (int i = 0; i < 200; ++i) {
    rt().spawn(here(), stir, update(a), word{3});
    rt().spawn(here(), scale, read(a), write(b), word{5}, word{1});
    std::swap(a, b);
    x = (x * 3 + 4999) * 5 + 1;
  }
  EXPECT_EQ(contents(a)[4999], x);
}

TEST_P(gpu_kinds, windows_with_every_border_are_as_computed_by_hand) {
  constexpr index_t n = 50;
  const auto at = [](index_t y, index_t x) { return static_cast<word>(y * 97 + x * 31 + 1); };
  auto a = rt().array<word>({n, n}, tiles(16, 20)), b = rt().array<word>({n, n}, tiles(16, 20));
  {
    auto v = a.write();
    for (index_t y = 0; y < n; ++y)
      for (index_t x = 0; x < n; ++x) v(y, x) = at(y, x);
  }
  const auto expect = [&](const auto& edge) {
    const auto v = b.read();
    for (index_t y = 0; y < n; ++y)
      for (index_t x = 0; x < n; ++x)
        ASSERT_EQ(v(y, x),
                  edge(y, x) * 3 + edge(y - 1, x) * 5 + edge(y + 1, x) * 7 + edge(y, x - 1) * 11 + edge(y, x + 1) * 13)
            << y << ", " << x;
  };
  rt().for_each(here(), grid(n, n), cross, read(a, window(1, 1).clamp()), write(b));
  expect([&](index_t y, index_t x) { return at(std::clamp<index_t>(y, 0, n - 1), std::clamp<index_t>(x, 0, n - 1)); });
  rt().for_each(here(), grid(n, n), cross, read(a, window(1, 1).wrap()), write(b));
  expect([&](index_t y, index_t x) { return at((y + n) % n, (x + n) % n); });
  rt().for_each(here(), grid(n, n), cross, read(a, window(1, 1).fill(word{9})), write(b));
  expect([&](index_t y, index_t x) { return y < 0 || x < 0 || y >= n || x >= n ? word{9} : at(y, x); });
}

TEST_P(gpu_kinds, reductions_add_up) {
  auto a = rt().filled<word>({10'000}, tiles(900), 0);
  auto sum = rt().filled<int>({1}, tiles(1), 0);
  rt().for_each(here(), grid(10'000), stir, update(a), word{1});
  rt().for_each(here(), grid(10'000), count_odd, read(a), reduce(sum, std::plus<>{}, 0));
  EXPECT_EQ(sum.read()(0), 5000);
}

TEST_P(gpu_kinds, four_times_its_memory_passes_through_exactly) {
  constexpr index_t tile = 4096, count = 64;
  start(tile * count / 4 * sizeof(word));
  auto a = rt().filled<word>({tile * count}, tiles(tile), 1);
  for (int round = 0; round < 3; ++round) rt().for_each(here(), grid(tile * count), stir, update(a), word{3});
  const auto v = contents(a);
  for (std::size_t i = 0; i < v.size(); ++i) {
    word expected = 1;
    for (int round = 0; round < 3; ++round) expected = expected * 3 + static_cast<word>(i);
    ASSERT_EQ(v[i], expected) << i;
  }
  EXPECT_LE(device().memory_used_max, device().memory_bytes);
}

TEST_P(gpu_kinds, the_same_device_twice_passes_data_to_and_fro) {
  start(1 << 20, true);
  auto a = rt().filled<word>({10'000}, tiles(1000), 1);
  word x = 1;
  for (int i = 0; i < 10; ++i) {
    rt().for_each({.where = scope::executor(name() + (i % 2 ? "#1" : ""))}, grid(10'000), stir, update(a), word{3});
    x = x * 3 + 9999;
  }
  EXPECT_EQ(contents(a).back(), x);
}

TEST_P(gpu_kinds, a_failing_text_fails_its_task_and_what_reads_its_data_only) {
  constexpr auto broken = kernel<inout<word, 1>>("broken").on(
      gpu, source{"GPU_KERNEL void broken(GPU_INOUT(unsigned, a)) { no_such_thing; }", "broken"});
  auto a = rt().filled<word>({10}, tiles(10), 1), b = rt().filled<word>({10}, tiles(10), 1);
  auto c = rt().array<word>({10}, tiles(10));
  auto f = rt().spawn(here(), broken, update(a));
  auto after = rt().spawn(here(), scale, read(a), write(c), word{1}, word{0});
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("no_such_thing")) << e->text;
  EXPECT_THROW(after.get(), task_failed);
  rt().spawn(here(), stir, update(b), word{2}).get();
  EXPECT_EQ(contents(b)[4], 6u);
}

TEST_P(gpu_kinds, a_task_that_never_fits_is_refused_with_both_sizes) {
  start(65536);
  auto large = rt().filled<word>({65536}, tiles(65536), 1);
  const auto e = error_of([&] { rt().spawn(here(), stir, update(large), word{3}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::out_of_memory);
  EXPECT_TRUE(e->says("262144")) << e->text;
  EXPECT_TRUE(e->says("65536")) << e->text;
}

TEST_P(gpu_kinds, a_random_program_on_cores_and_the_device_is_the_serial_one) {
  std::mt19937 random(5);
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  constexpr index_t n = 700;
  array<word, 1> arrays[2];
  std::vector<word> model[2];
  for (int i = 0; i < 2; ++i) {
    arrays[i] = rt().filled<word>({n}, tiles(pick(50, 300)), static_cast<word>(i));
    model[i].assign(n, static_cast<word>(i));
  }
  for (int step = 0; step < 150; ++step) {
    const auto to = static_cast<std::size_t>(pick(0, 1));
    const scope scopes[] = {scope::any(), scope::cpu(), scope::gpu()};
    const task_options where{.where = scopes[pick(0, 2)]};
    const auto x = static_cast<word>(pick(1, 1000));
    std::vector<word>& m = model[to];
    if (pick(0, 2) == 0) {
      rt().for_each(where, grid(n).chunks(pick(100, n)), scale, read(arrays[1 - to], one_to_one{}),
                    write(arrays[to], one_to_one{}), x, word{1});
      for (std::size_t i = 0; i < n; ++i) m[i] = model[1 - to][i] * x + 1;
    } else {
      rt().for_each(where, grid(n), stir, update(arrays[to]), x);
      for (std::size_t i = 0; i < n; ++i) m[i] = m[i] * x + static_cast<word>(i);
    }
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(contents(arrays[i]), model[i]) << "array " << i;
}

INSTANTIATE_TEST_SUITE_P(on, gpu_kinds, testing::Values("sim", "opencl", "cuda", "hip"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
