// What this file is for: successors that are released where a task has ended, with several groups of cores: each runs
// in the group that its scope names, all values are right, and what others may run goes where there is room.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

// Groups of two threads, and a device that none of the tasks can use, or none.
struct setting {
  int groups;
  const char* device;
};
std::ostream& operator<<(std::ostream& out, const setting& s) {
  return out << s.groups << " groups, device " << s.device;
}

options in_groups(const setting& s) {
  options o;
  o.threads = 2 * s.groups;
  o.core_groups = s.groups;
  o.devices = {{s.device}};
  o.cost_cache = "none";
  return o;
}

task_options in_group(int g) {
  task_options o;
  o.where = scope::executor("cpu:" + std::to_string(g));
  return o;
}

// Bodies that take a gate to pass, or none. One type, so that all calls have one predicted time.
struct adds {
  test::gate* waits = nullptr;
  test::gate* begun = nullptr;
  const char* where = nullptr;
  void operator()(task_context& c, view<int, 1> v) const {
    if (begun) begun->open();
    if (waits) {
      EXPECT_TRUE(waits->pass());
    }
    if (where) {
      EXPECT_EQ(c.executor(), std::string_view(where));
    }
    v(0) += 1;
  }
};

// The same for 10 us: what takes four times as long as predicted needs a turn, as a much shorter body that another core
// has run before may.
struct adds_slowly : adds {
  void operator()(task_context& c, view<int, 1> v) const {
    adds::operator()(c, v);
    const auto until = std::chrono::steady_clock::now() + 10us;
    while (std::chrono::steady_clock::now() < until) {
    }
  }
};

// Has the kernels' times known: only such tasks are released early.
void warm_up(runtime& rt) {
  auto a = rt.filled<int>({4}, tiles(4), 0);
  for (int i = 0; i < 64; ++i) {
    rt.spawn(adds{}, update(a));
    rt.spawn(adds_slowly{}, update(a));
  }
  rt.wait_all();
}

class early_groups : public testing::TestWithParam<setting> {};

TEST_P(early_groups, get_through_a_chain_in_one_of_them_without_a_turn_for_each_task) {
  runtime rt(in_groups(GetParam()));
  warm_up(rt);
  constexpr int length = 1'000;
  auto x = rt.filled<int>({4}, tiles(4), 0);
  test::gate begun, first;
  const int last = GetParam().groups - 1;
  const std::string there = "cpu:" + std::to_string(last);
  rt.spawn(in_group(last), adds_slowly{{&first, &begun}}, update(x));
  ASSERT_TRUE(begun.pass());
  for (int i = 0; i < length; ++i) rt.spawn(in_group(last), adds_slowly{{.where = there.c_str()}}, update(x));
  const auto before = rt.report().scheduling_passes;  // all are in order now
  first.open();
  rt.wait_all();
  EXPECT_LT(rt.report().scheduling_passes - before, length / 4);
  EXPECT_EQ(x.read()(0), length + 1);
}

TEST_P(early_groups, hand_a_chain_to_each_other_without_a_turn_for_each_task) {
  runtime rt(in_groups(GetParam()));
  warm_up(rt);
  constexpr int length = 1'000;
  auto x = rt.filled<int>({4}, tiles(4), 0);
  test::gate begun, first;
  rt.spawn(in_group(0), adds{&first, &begun}, update(x));
  ASSERT_TRUE(begun.pass());
  std::vector<std::string> names;
  for (int g = 0; g < GetParam().groups; ++g) names.push_back("cpu:" + std::to_string(g));
  for (int i = 0; i < length; ++i) {
    const int g = i % GetParam().groups;
    rt.spawn(in_group(g), adds_slowly{{.where = names[static_cast<std::size_t>(g)].c_str()}}, update(x));
  }
  const auto before = rt.report().scheduling_passes;
  first.open();
  rt.wait_all();
  EXPECT_LT(rt.report().scheduling_passes - before, length / 4);
  EXPECT_EQ(x.read()(0), length + 1);
}

// An idle group sleeps, and is woken for a task that another one has made ready.
TEST_P(early_groups, wake_each_other_for_one_task) {
  runtime rt(in_groups(GetParam()));
  warm_up(rt);
  for (int round = 0; round < 200; ++round) {
    auto x = rt.filled<int>({4}, tiles(4), 0);
    test::gate begun, first;
    rt.spawn(in_group(0), adds{&first, &begun}, update(x));
    ASSERT_TRUE(begun.pass());
    auto after = rt.spawn(in_group(1), adds{.where = "cpu:1"}, update(x));
    (void)rt.report();
    first.open();
    ASSERT_TRUE(after.wait_for(test::patience)) << round;
    EXPECT_EQ(x.read()(0), 2);
  }
}

TEST_P(early_groups, run_each_of_many_tasks_that_one_makes_ready_where_it_is_to) {
  runtime rt(in_groups(GetParam()));
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0);
  std::atomic<int> wrong{0}, seen{0};
  const int groups = GetParam().groups;
  for (int round = 0; round < 50; ++round) {
    test::gate first;
    auto before = rt.spawn(in_group(round % groups), adds{&first}, update(x));
    for (int i = 0; i < 120; ++i) {
      const int g = i % (groups + 1);  // the last is anywhere
      const auto body = [&, round](task_context& c, view<const int, 1> v, int to) {
        if (v(0) != round + 1) ++wrong;
        if (to < groups && c.executor() != "cpu:" + std::to_string(to)) ++wrong;
        ++seen;
      };
      g == groups ? rt.spawn(body, read(x), g) : rt.spawn(in_group(g), body, read(x), g);
    }
    (void)rt.report();
    first.open();
    before.get();
  }
  rt.wait_all();
  EXPECT_EQ(seen, 50 * 120);
  EXPECT_EQ(wrong, 0);
}

// Random programs against the same in order: every array has a number that each task changes in its own way.
TEST_P(early_groups, give_what_the_program_gives_in_order) {
  const int groups = GetParam().groups;
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    options o = in_groups(GetParam());
    if (seed % 3 == 1) o.threads = groups;
    if (seed % 4 == 3) o.tasks_in_flight_max = 16;
    runtime rt(o);
    constexpr std::size_t arrays = 6;
    std::vector<array<std::uint32_t, 1>> all;
    std::vector<std::uint32_t> expected(arrays, 1);
    for (std::size_t i = 0; i < arrays; ++i) all.push_back(rt.filled<std::uint32_t>({4}, tiles(4), 1U));
    std::atomic<int> astray{0};
    const auto mixes = [&astray](task_context& c, int to, std::uint32_t by, view<const std::uint32_t, 1> a,
                                 view<std::uint32_t, 1> b) {
      if (to >= 0 && c.executor() != "cpu:" + std::to_string(to)) ++astray;
      b(0) = b(0) * by + a(0);
    };
    for (int i = 0; i < 3'000; ++i) {
      const std::size_t a = random() % arrays, b = (a + 1 + random() % (arrays - 1)) % arrays;
      const auto by = static_cast<std::uint32_t>(random() | 1);
      const int to = static_cast<int>(random() % static_cast<unsigned>(groups + 1)) - 1;
      task_options where = to < 0 ? task_options() : in_group(to);
      if (random() % 16 == 0) where.priority = static_cast<int>(random() % 3) - 1;
      rt.spawn(where, mixes, to, by, read(all[a]), update(all[b]));
      expected[b] = expected[b] * by + expected[a];
      if (random() % 400 == 0) {
        EXPECT_EQ(all[b].read()(0), expected[b]) << "seed " << seed << ", task " << i;
      }
    }
    for (std::size_t i = 0; i < arrays; ++i) EXPECT_EQ(all[i].read()(0), expected[i]) << "seed " << seed;
    EXPECT_EQ(astray, 0) << "seed " << seed;
  }
}

TEST_P(early_groups, fail_what_comes_after_a_failed_task_of_another_one) {
  runtime rt(in_groups(GetParam()));
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  const auto adds_or_throws = [](view<int, 1> v, bool throws) {
    v(0) += 1;
    if (throws) throw std::runtime_error("as asked");
  };
  const auto sums = [](view<const int, 1> a, view<const int, 1> b) { return a(0) + b(0); };
  int x_is = 0, y_is = 0;
  for (int round = 0; round < 300; ++round) {
    const bool fails = round % 3 == 2;
    auto of_x = rt.spawn(in_group(0), adds_or_throws, update(x), false);
    auto of_y = rt.spawn(in_group(1), adds_or_throws, update(y), fails);
    auto sum = rt.spawn(in_group(round % 2), sums, read(x), read(y));
    ++x_is;
    if (!fails) {
      ++y_is;
      EXPECT_EQ(sum.get(), x_is + y_is);
      continue;
    }
    try {
      sum.get();
      ADD_FAILURE() << "it has read what a failed task was to write";
    } catch (const task_failed& e) {
      EXPECT_EQ(e.code(), errc::dependency_failed);
    }
    of_x.get();
    rt.spawn([y_is](view<int, 1> v) { v(0) = y_is; }, write(y));
  }
  rt.wait_all();
}

TEST_P(early_groups, end_all_tasks_of_a_chain_when_the_runtime_ends_in_the_middle) {
  for (int round = 0; round < 20; ++round) {
    std::vector<future<void>> all;
    {
      runtime rt(in_groups(GetParam()));
      warm_up(rt);
      auto x = rt.filled<int>({4}, tiles(4), 0);
      for (int i = 0; i < 2000; ++i) all.push_back(rt.spawn(in_group(i / 3 % GetParam().groups), adds{}, update(x)));
      all[static_cast<std::size_t>(round * 40)].get();
      (void)rt.shutdown(0ms);
    }
    bool over = false;
    for (future<void>& f : all) {
      try {
        f.get();
        EXPECT_FALSE(over) << "a task has run after one that was given up";
      } catch (const error& e) {
        over = true;
        EXPECT_EQ(e.code(), errc::runtime_stopped);
      }
    }
  }
}

TEST_P(early_groups, are_given_what_others_may_run_beside_what_they_alone_may) {
  // The first group has a long line of its own, of which nothing is ready. What any group may run goes on beside it.
  runtime rt(in_groups(GetParam()));
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0);
  test::gate begun, first;
  rt.spawn(in_group(0), adds{&first, &begun}, update(x));
  ASSERT_TRUE(begun.pass());
  for (int i = 0; i < 100; ++i) rt.spawn(in_group(0), adds{.where = "cpu:0"}, update(x));
  auto y = rt.filled<int>({4}, tiles(4), 0);
  for (int i = 0; i < 100; ++i) rt.spawn(adds{}, update(y));
  EXPECT_EQ(y.read()(0), 100);
  first.open();
  EXPECT_EQ(x.read()(0), 101);
}

TEST_P(early_groups, tell_what_was_predicted_and_measured_of_each) {
  runtime rt(in_groups(GetParam()));
  warm_up(rt);
  const int last = GetParam().groups - 1;
  const auto of_last = [&] {
    const runtime_report r = rt.report();
    return *std::ranges::find(r.executors, "cpu:" + std::to_string(last), &executor_report::name);
  };
  const executor_report before = of_last();
  auto x = rt.filled<int>({4}, tiles(4), 0);
  test::gate begun, first;
  rt.spawn(in_group(last), adds{&first, &begun}, update(x));
  ASSERT_TRUE(begun.pass());
  const auto lasts = [](view<int, 1> v) {
    const auto until = std::chrono::steady_clock::now() + 100us;
    while (std::chrono::steady_clock::now() < until) ++v(1);
    v(0) += 1;
  };
  for (int i = 0; i < 300; ++i) rt.spawn(in_group(last), lasts, update(x));
  first.open();
  rt.wait_all();
  const executor_report after = of_last();
  EXPECT_GE(after.tasks - before.tasks, 301u);
  EXPECT_GT(after.measured - before.measured, 20ms) << "of 30, as the first are not predicted";
}

INSTANTIATE_TEST_SUITE_P(settings, early_groups,
                         testing::Values(setting{2, "none"}, setting{3, "none"}, setting{2, "sim"}));

}  // namespace
