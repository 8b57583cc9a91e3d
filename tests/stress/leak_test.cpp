// What this file is for: what is left after much work: no thread, no descriptor, no record, no memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "process.hpp"

namespace {

using namespace troupe;
constexpr std::size_t mib = std::size_t{1} << 20;

void live_once() {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({16}, tiles(4), 1);
  for (int i = 0; i < 20; ++i) rt.spawn([](auto v) { v(0) += 1; }, update(a));
  rt.spawn([] { return 3; }).get();
}

TEST(stress, a_thousand_runtimes_leave_no_thread_descriptor_or_bytes) {
  for (int i = 0; i < 20; ++i) live_once();  // warm up: libraries, arenas, thread stacks
  const std::size_t threads = test::thread_count(), descriptors = test::descriptor_count();
  const std::size_t bytes = test::resident_bytes();
  for (int i = 0; i < test::rounds(1000); ++i) live_once();
  // A joined thread may still be listed for a moment.
  EXPECT_TRUE(test::comes_true([&] { return test::thread_count() <= threads; })) << test::thread_count();
  EXPECT_EQ(test::descriptor_count(), descriptors);
  if (test::sanitized) return;
  EXPECT_LT(test::resident_bytes(), bytes + 4 * mib);
}

TEST(stress, futures_and_arrays_that_outlive_a_hundred_runtimes_leave_no_bytes) {
  const auto once = [] {
    std::vector<future<int>> futures;
    array<int, 1> a;
    {
      runtime rt(options{.threads = 2});
      a = rt.filled<int>({1000}, tiles(100), 1);
      for (int i = 0; i < 50; ++i) futures.push_back(rt.spawn([i] { return i; }));
      rt.wait_all();
    }
    int sum = 0;
    for (auto& f : futures) sum += f.get();
    return sum;
  };
  for (int i = 0; i < 20; ++i) once();
  const std::size_t bytes = test::resident_bytes();
  for (int i = 0; i < test::rounds(100); ++i) EXPECT_EQ(once(), 49 * 50 / 2);
  if (test::sanitized) return;
  EXPECT_LT(test::resident_bytes(), bytes + 4 * mib);
}

TEST(stress, memory_returns_to_its_start_after_a_million_tasks) {
  runtime rt(options{.tasks_in_flight_max = 1'000'000});
  const auto flood = [&](int n) {
    auto a = rt.filled<std::uint64_t>({64}, tiles(1), 0);
    for (int i = 0; i < n; ++i) {
      const troupe::index_t at = i % 64;
      rt.spawn([](auto v) { v(0) += 1; }, update(a.sub({{at}, {at + 1}})));
    }
    rt.wait_all();
  };
  flood(1000);
  const std::size_t bytes = test::resident_bytes();
  flood(test::rounds(1'000'000));
  EXPECT_EQ(rt.report().records, 0u);
  EXPECT_EQ(rt.report().arrays, 0u);
  EXPECT_EQ(rt.report().bytes_allocated, 0u);
  if (test::sanitized) return;
  // The keeper gives idle memory back after a while.
  EXPECT_TRUE(test::comes_true([&] { return test::resident_bytes() < bytes + 8 * mib; }))
      << (test::resident_bytes() - bytes) / mib << " MiB more than before";
}

TEST(stress, arrays_that_come_and_go_leave_no_bytes) {
  runtime rt;
  const auto round = [&] {
    auto a = rt.filled<std::uint64_t>({64, 64}, tiles(16, 16), 1);
    rt.for_each(
        grid(64, 64).chunks(16, 16), [](auto v) { v(v.lo(0), v.lo(1)) = 2; }, update(a));
  };
  for (int i = 0; i < test::rounds(10'000); ++i) round();
  rt.wait_all();
  const auto report = rt.report();
  EXPECT_EQ(report.arrays, 0u);
  EXPECT_EQ(report.bytes_allocated, 0u);
  EXPECT_EQ(report.records, 0u);
}

}  // namespace
