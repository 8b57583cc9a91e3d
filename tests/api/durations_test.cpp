// What this file is for: limits beyond what a clock can count mean "for ever", wherever a limit is taken.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <limits>
#include <memory>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>
#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

using namespace std::chrono_literals;
using test::gate;

// Too long for a clock of nanoseconds, each in its way.
constexpr auto endless = std::tuple(
    std::chrono::nanoseconds::max(), std::chrono::microseconds::max(), std::chrono::milliseconds::max(),
    std::chrono::seconds::max(), std::chrono::hours::max(), std::chrono::years(1'000),
    std::chrono::duration<double>(1e300), std::chrono::duration<float>(std::numeric_limits<float>::infinity()),
    std::chrono::steady_clock::time_point::max().time_since_epoch());

constexpr auto passed = std::tuple(0ns, -1ns, std::chrono::nanoseconds::min(), std::chrono::hours::min(),
                                   std::chrono::duration<double>(-std::numeric_limits<double>::infinity()),
                                   std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()));

template <class Limits, class F>
void with_each(const Limits& limits, F f) {
  std::apply([&](auto... limit) { (f(limit), ...); }, limits);
}

// Opens a gate a while after somebody has begun to wait for what is behind it, most likely.
class later {
 public:
  explicit later(gate& g) : thread_([&g] { std::this_thread::sleep_for(20ms), g.open(); }) {}
  ~later() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST(durations, a_future_is_waited_for_however_long_the_limit) {
  troupe::runtime rt({.threads = 1});
  with_each(endless, [&](auto limit) {
    gate go;
    auto f = rt.spawn([&] { return go.pass(); });
    later opens(go);
    EXPECT_TRUE(f.wait_for(limit));
    EXPECT_TRUE(f.get());
  });
}

TEST(durations, a_body_waits_for_another_one_however_long_the_limit) {
  troupe::runtime rt({.threads = 2});
  with_each(endless, [&](auto limit) {
    gate go;
    auto f = rt.spawn([&] { return go.pass(); });
    auto waits = rt.spawn([&, limit] { return f.wait_for(limit); });
    later opens(go);
    EXPECT_TRUE(waits.get());
  });
}

TEST(durations, all_tasks_are_waited_for_however_long_the_limit) {
  troupe::runtime rt({.threads = 1});
  with_each(endless, [&](auto limit) {
    gate go;
    auto f = rt.spawn([&] { return go.pass(); });
    later opens(go);
    EXPECT_TRUE(rt.wait_all_for(limit));
    EXPECT_TRUE(f.is_ready());
  });
}

TEST(durations, a_host_view_is_waited_for_however_long_the_limit) {
  troupe::runtime rt({.threads = 1});
  with_each(endless, [&](auto limit) {
    auto a = rt.filled<int>({4}, troupe::tiles(4), 1);
    gate go;
    rt.spawn(
        [&](troupe::view<int, 1> v) {
          (void)go.pass();
          v(0) = 7;
        },
        update(a));
    later opens(go);
    auto seen = a.try_read_for(limit);
    ASSERT_TRUE(seen);
    EXPECT_EQ((*seen)(0), 7);
  });
}

TEST(durations, a_limit_that_has_passed_is_answered_at_once) {
  troupe::runtime rt({.threads = 1});
  auto a = rt.filled<int>({4}, troupe::tiles(4), 1);
  gate go;
  const test::opener at_the_end(go);
  auto f = rt.spawn([&](troupe::view<int, 1>) { (void)go.pass(); }, update(a));
  with_each(passed, [&](auto limit) {
    EXPECT_FALSE(f.wait_for(limit));
    EXPECT_FALSE(rt.wait_all_for(limit));
    EXPECT_FALSE(a.try_read_for(limit));
  });
}

TEST(durations, the_end_of_a_runtime_lets_bodies_finish_however_long_they_are_given) {
  for (const auto limit : {std::chrono::milliseconds::max(), std::chrono::milliseconds::max() / 2,
                           std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds::max())}) {
    gate go;
    bool finished = false;
    {
      troupe::runtime rt({.threads = 1, .shutdown_timeout = limit});
      gate begun;
      rt.spawn([&] {
        begun.open();
        finished = go.pass();
        std::this_thread::sleep_for(200ms);  // longer than a body is given that was asked to stop
      });
      ASSERT_TRUE(begun.pass());
      go.open();
    }
    EXPECT_TRUE(finished);
  }
}

TEST(durations, a_shutdown_lets_bodies_finish_however_long_they_are_given) {
  gate go, begun;
  troupe::runtime rt({.threads = 1});
  auto f = rt.spawn([&] {
    begun.open();
    const bool in_time = go.pass();
    std::this_thread::sleep_for(200ms);
    return in_time;
  });
  ASSERT_TRUE(begun.pass());
  go.open();
  const auto report = rt.shutdown(std::chrono::milliseconds::max());
  EXPECT_TRUE(report.complete);
  EXPECT_TRUE(f.get());
}

TEST(durations, options_may_be_as_large_as_their_types) {
  troupe::options o{.threads = 2, .core_groups = 2};
  o.spin = std::chrono::microseconds::max();
  o.window = std::chrono::microseconds::max();
  o.card_wait = std::chrono::milliseconds::max();
  o.shutdown_timeout = std::chrono::milliseconds::max();
  o.cluster.spin = std::chrono::microseconds::max();
  o.cluster.replay_max = std::chrono::milliseconds::max();
  troupe::runtime rt(o);
  auto a = rt.filled<int>({64}, troupe::tiles(8), 1);
  rt.for_each(
      troupe::grid(64),
      [](troupe::view<int, 1> v) {
        for (auto i = v.lo(0); i < v.hi(0); ++i) v(i) += 1;
      },
      update(a));
  EXPECT_EQ(rt.spawn([] { return 3; }).get(), 3);
  EXPECT_EQ(a.read()(63), 2);
}

TEST(durations, asking_the_members_of_a_cluster_ends_however_long_the_limit) {
  troupe::options o{.threads = 1};
  o.cluster.cluster_name = "durations";
  o.cluster.listen = {"127.0.0.1:0"};
  o.cluster.insecure_loopback = true;
  o.cluster.replay_max = std::chrono::milliseconds::max();
  o.cluster.spin = std::chrono::microseconds(0);
  troupe::runtime first(o);
  o.cluster.join = first.addresses();
  troupe::runtime second(o);
  EXPECT_TRUE(second.wait_for_nodes(1, std::chrono::milliseconds::max()));
  EXPECT_EQ(second.query_cluster(std::chrono::milliseconds::max()).members.size(), 2u);
}

}  // namespace
