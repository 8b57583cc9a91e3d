// What this file is for: calls of a recorded graph that one call makes ready together run side by side.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "tests/support/comes_true.hpp"
#include "tests/support/system_threads.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

struct setting {
  int threads;
  std::chrono::microseconds spin;
};
std::ostream& operator<<(std::ostream& out, const setting& s) {
  return out << s.threads << " threads that look for " << s.spin.count() << " us";
}

// Other threads go to sleep meanwhile, most probably.
void compute_for_a_while() {
  const auto until = std::chrono::steady_clock::now() + 10ms;
  while (std::chrono::steady_clock::now() < until) {
  }
}

class fan_out : public testing::TestWithParam<setting> {};

TEST_P(fan_out, wakes_a_thread_for_each_call) {
  options o;
  o.threads = GetParam().threads;
  o.spin = GetParam().spin;
  runtime rt(o);
  std::shared_ptr<test::meeting> all_of_them;
  std::atomic<int> alone{0};
  auto x = rt.filled<int>({4}, tiles(4), 0);
  std::vector<array<int, 1>> y;
  for (int i = 0; i < o.threads; ++i) y.push_back(rt.filled<int>({4}, tiles(4), 0));
  const graph g = rt.record([&](recorder& r) {
    r.spawn([](view<int, 1> a) { ++a(0); }, update(x));
    for (auto& each : y)
      r.spawn(
          [&](view<const int, 1> a, view<int, 1> b) {
            if (!all_of_them->arrive_and_wait()) ++alone;
            b(0) += a(0);
          },
          read(x), update(each));
  });
  int sum = 0;
  for (int run = 1; run <= 10 && alone == 0; ++run) {
    compute_for_a_while();
    all_of_them = std::make_shared<test::meeting>(o.threads);
    rt.run(g).get();
    sum += run;
  }
  EXPECT_EQ(alone, 0) << "calls waited in vain for others, which were ready, to begin";
  for (auto& each : y) EXPECT_EQ(each.read()(0), sum);
}

// The thread that has the run sleeps while another one's call is long, and that makes one ready for each thread.
TEST_P(fan_out, wakes_a_thread_for_each_call_while_the_owner_of_the_run_sleeps) {
  options o;
  o.threads = GetParam().threads;
  o.spin = GetParam().spin;
  runtime rt(o);
  std::shared_ptr<test::meeting> all_of_them;
  std::atomic<int> alone{0}, begun{0};
  auto x = rt.filled<int>({4}, tiles(4), 0), other = rt.filled<int>({4}, tiles(4), 0);
  std::vector<array<int, 1>> y;
  for (int i = 0; i < o.threads; ++i) y.push_back(rt.filled<int>({4}, tiles(4), 0));
  const graph g = rt.record([&](recorder& r) {
    // The owner begins with the first.
    r.spawn([&](view<int, 1>) { EXPECT_TRUE(test::comes_true([&] { return begun != 0; })); }, update(other));
    r.spawn(
        [&](view<int, 1> a) {
          ++a(0);
          begun = 1;
          EXPECT_TRUE(test::comes_true([] {
            return std::ranges::all_of(test::system_threads("cpu:0/"),
                                       [](const test::system_thread& t) { return t.is_caller() || t.state == 'S'; });
          }));
        },
        update(x));
    for (auto& each : y)
      r.spawn(
          [&](view<const int, 1> a, view<int, 1> b) {
            if (!all_of_them->arrive_and_wait()) ++alone;
            b(0) += a(0);
          },
          read(x), update(each));
  });
  int sum = 0;
  for (int run = 1; run <= 3 && alone == 0; ++run) {
    compute_for_a_while();
    begun = 0;
    all_of_them = std::make_shared<test::meeting>(o.threads);
    rt.run(g).get();
    sum += run;
  }
  EXPECT_EQ(alone, 0) << "calls waited in vain for others, which were ready, to begin";
  for (auto& each : y) EXPECT_EQ(each.read()(0), sum);
}

// Sleepers looked once in a millisecond whether the run had something for them, and woke each other for that.
TEST(small_fan_out, leaves_the_others_asleep_while_the_only_call_of_a_run_goes_on) {
  const auto switches = [] {
    std::uint64_t sum = 0;
    for (const test::system_thread& t : test::system_threads("cpu:")) sum += test::switches_of(t.id);
    return sum;
  };
  for (int i = 0; i < 6; ++i) {
    options o;
    o.threads = 16;
    o.core_groups = 3;
    runtime rt(o);
    auto x = rt.filled<int>({1}, tiles(1), 0);
    std::atomic<bool> has_begun{false}, may_end{false};
    const graph g = rt.record([&](recorder& r) {
      r.spawn(
          [&](view<int, 1> a) {
            has_begun = true;
            has_begun.notify_all();
            may_end.wait(false);
            ++a(0);
          },
          update(x));
    });
    const auto run = rt.run(g);
    has_begun.wait(false);
    EXPECT_FALSE(run.wait_for(40ms)) << "others go to sleep meanwhile";
    const std::uint64_t before = switches();
    EXPECT_FALSE(run.wait_for(200ms));
    EXPECT_LT(switches() - before, 200U) << "three naps of 16 ms at a time are 38";
    may_end = true;
    may_end.notify_all();
    run.get();
    EXPECT_EQ(x.read()(0), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(threads, fan_out,
                         testing::Values(setting{2, 0us}, setting{4, 20us}, setting{8, 0us}, setting{8, 20us},
                                         setting{8, 5000us}, setting{16, 20us}));

}  // namespace
