// What this file is for: floods of tasks: a million through a few arrays, many threads at once, storms of nested ones.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "process.hpp"

namespace {

using namespace troupe;
using counter = std::uint64_t;

constexpr auto add_one = [](auto v) { v(0) += 1; };

TEST(stress, a_million_tasks_through_64_arrays_count_exactly) {
  runtime rt;
  const int each = test::rounds(1'000'000 / 64);
  std::vector<array<counter, 1>> arrays;
  for (int i = 0; i < 64; ++i) arrays.push_back(rt.filled<counter>({1}, tiles(1), 0));
  for (int i = 0; i < each; ++i)
    for (auto& a : arrays) rt.spawn(add_one, update(a));
  for (auto& a : arrays) EXPECT_EQ(a.read()(0), static_cast<counter>(each));
}

TEST(stress, sixty_four_threads_that_spawn_at_once_sum_exactly) {
  runtime rt;
  constexpr std::size_t threads = 64;
  const int each = test::rounds(10'000);
  auto shared = rt.filled<counter>({1}, tiles(1), 0);
  std::vector<array<counter, 1>> own;
  for (std::size_t t = 0; t < threads; ++t) own.push_back(rt.filled<counter>({1}, tiles(1), 0));
  std::latch start(threads);
  std::vector<std::thread> clients;
  for (std::size_t t = 0; t < threads; ++t)
    clients.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < each; ++i) rt.spawn(add_one, update(i % 2 == 0 ? shared : own[t]));
    });
  for (auto& c : clients) c.join();
  const auto halves = static_cast<counter>(each / 2);
  EXPECT_EQ(shared.read()(0), threads * (static_cast<counter>(each) - halves));
  for (auto& a : own) EXPECT_EQ(a.read()(0), halves);
  rt.wait_all();
  EXPECT_EQ(rt.report().spawned, rt.report().finished);
}

TEST(stress, a_storm_of_nested_spawns_runs_every_task) {
  runtime rt;
  std::atomic<counter> leaves{0};
  const int depth = test::sanitized ? 4 : 6;
  std::function<void(int)> grow = [&](int left) {
    if (left == 0) {
      ++leaves;
      return;
    }
    for (int i = 0; i < 8; ++i) rt.spawn([&grow, left] { grow(left - 1); });
  };
  rt.spawn([&] { grow(depth); });
  rt.wait_all();
  counter expected = 1;
  for (int i = 0; i < depth; ++i) expected *= 8;
  EXPECT_EQ(leaves, expected);
}

TEST(stress, nested_tasks_that_wait_for_their_children_sum_exactly) {
  runtime rt(options{.threads = 2});
  std::function<counter(int)> sum = [&](int left) -> counter {
    if (left == 0) return 1;
    auto a = rt.spawn([&sum, left] { return sum(left - 1); });
    auto b = rt.spawn([&sum, left] { return sum(left - 1); });
    return a.get() + b.get() + 1;
  };
  for (int round = 0; round < test::rounds(20); ++round)
    EXPECT_EQ(rt.spawn([&] { return sum(6); }).get(), (counter{1} << 7) - 1);
}

TEST(stress, ten_thousand_cancels_return_their_slots_exactly) {
  runtime rt(options{.threads = 2, .resources = {{"slot", 8}}});
  const int n = test::rounds(10'000);
  std::atomic<int> ran{0};
  int cancelled = 0, fine = 0;
  std::mt19937 random(41);
  for (int left = n; left > 0;) {
    const int batch = std::min(left, 100);
    left -= batch;
    std::vector<std::stop_source> stops(static_cast<std::size_t>(batch));
    std::vector<future<void>> all;
    for (auto& s : stops) {
      all.push_back(
          rt.spawn(task_options{.resources = {{"slot", static_cast<double>(1 + random() % 3)}}, .stop = s.get_token()},
                   [&] { ++ran; }));
    }
    std::shuffle(stops.begin(), stops.end(), random);
    for (auto& s : stops) s.request_stop();
    for (auto& f : all) {
      try {
        f.get();
        ++fine;
      } catch (const task_failed& e) {
        EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(errc::cancelled)) << e.what();
        ++cancelled;
      }
    }
  }
  rt.wait_all();
  EXPECT_EQ(fine + cancelled, n);
  EXPECT_GE(ran.load(), fine);
  const auto report = rt.report();
  ASSERT_EQ(report.resources_free.size(), 1u);
  EXPECT_EQ(report.resources_free[0].amount, 8);
  EXPECT_EQ(report.spawned, report.finished);
}

// Reads, writes, failures, nested tasks, host views and dropped handles from four threads; sums stay exact.
TEST(stress, a_random_mix_from_four_threads_ends_and_counts_exactly) {
  runtime rt(options{.core_groups = 2, .tasks_in_flight_max = 2000});
  constexpr unsigned threads = 4;
  std::atomic<counter> bodies{0};
  std::vector<counter> expected(threads, 0), got(threads, 0);
  std::vector<std::thread> clients;
  for (unsigned t = 0; t < threads; ++t)
    clients.emplace_back([&, t] {
      std::mt19937 random(100 + t);
      auto sum = rt.filled<counter>({64}, tiles(8), 0);
      for (int i = 0; i < test::rounds(20'000); ++i) {
        const auto lo = static_cast<troupe::index_t>(random() % 60);
        switch (random() % 8) {
          case 0:
            rt.spawn([&] { rt.spawn([&] { ++bodies; }); });
            break;
          case 1:
            rt.spawn([]() -> int { throw std::runtime_error("on purpose"); });
            break;
          case 2: {
            auto brief = rt.filled<counter>({4}, tiles(4), 1);
            rt.spawn(add_one, update(brief));  // its last handle goes before it has run
            break;
          }
          case 3:
            if (i % 64 == 0) sum.read().close();
            break;
          case 4:
            rt.spawn([](auto v) { return v(0); }, read(sum));
            break;
          default:
            rt.spawn([](auto v) { v(0) += 1; }, update(sum.sub({{lo}, {lo + 3}})));
            ++expected[t];
        }
      }
      const auto v = sum.read();
      for (troupe::index_t i = 0; i < 64; ++i) got[t] += v(i);
    });
  for (auto& c : clients) c.join();
  rt.wait_all();
  EXPECT_EQ(got, expected);
  EXPECT_EQ(rt.report().spawned, rt.report().finished);
  EXPECT_GT(bodies, 0u);
}

}  // namespace
