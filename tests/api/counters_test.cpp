// What this file is for: executors count the bodies that have run, each attempt, and those that threw.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stdexcept>
#include <stop_token>

#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "tests/api/nodes/several_nodes.hpp"

namespace {

using namespace troupe;

void throw_until(int attempt, const task_context& c) {
  if (c.attempt() < attempt) throw std::runtime_error("not yet");
}

TEST(counters, of_an_executor_have_each_attempt_and_each_that_threw) {
  runtime rt(options{.threads = 1});
  rt.spawn({.retries = 5}, [](task_context& c) { throw_until(4, c); });
  rt.wait_all();
  EXPECT_EQ(rt.executors()[0].tasks, 4u);
  EXPECT_EQ(rt.executors()[0].failed, 3u);
  rt.spawn({.retries = 2}, [] { throw std::runtime_error("never"); });
  rt.spawn([] {});
  rt.wait_all();
  EXPECT_EQ(rt.executors()[0].tasks, 4u + 3u + 1u);
  EXPECT_EQ(rt.executors()[0].failed, 3u + 3u);
  EXPECT_EQ(rt.report().finished, 3u);
}

TEST(counters, of_an_executor_leave_out_bodies_that_have_not_begun) {
  runtime rt(options{.threads = 1});
  std::stop_source stop;
  rt.spawn({.retries = 5, .stop = stop.get_token()}, [&](task_context&) {
    stop.request_stop();
    throw std::runtime_error("no");
  });
  rt.wait_all();
  EXPECT_EQ(rt.executors()[0].tasks, 1u);
  EXPECT_EQ(rt.executors()[0].failed, 1u);
}

TEST(counters, of_an_executor_have_the_attempts_of_recorded_calls) {
  runtime rt(options{.threads = 1});
  const graph g = rt.record([](recorder& r) { r.spawn({.retries = 5}, [](task_context& c) { throw_until(3, c); }); });
  rt.run(g).get();
  rt.wait_all();
  EXPECT_EQ(rt.executors()[0].tasks, 1u + 3u);  // the run itself
  EXPECT_EQ(rt.executors()[0].failed, 2u);
}

constexpr auto stubborn = kernel<inout<int, 1>, int>("stubborn").on(sim, routine<[](device_call&, view<int, 1>, int n) {
  static int calls = 0;
  if (++calls < n) throw std::runtime_error("not yet");
}>);

TEST(counters, of_a_device_have_each_attempt_and_each_that_threw) {
  options o{.threads = 1};
  o.cost_cache = "none";
  o.devices.push_back({"sim:0"});
  runtime rt(o);
  const auto a = rt.filled<int>({4}, tiles(4), 1, "a");
  rt.spawn({.retries = 5}, stubborn, update(a), 4).get();
  rt.wait_all();
  EXPECT_EQ(rt.executors()[1].tasks, 4u);
  EXPECT_EQ(rt.executors()[1].failed, 3u);
}

TEST(counters, of_a_member_are_those_of_its_executors) {
  runtime rt(test::node_options("a", {}, 1));
  rt.spawn({.retries = 5}, [](task_context& c) { throw_until(4, c); });
  rt.wait_all();
  const cluster_report r = rt.query_cluster(std::chrono::milliseconds(0));
  ASSERT_EQ(r.members.size(), 1u);
  EXPECT_EQ(r.members[0].tasks, 4u);
  EXPECT_EQ(r.members[0].failed, 3u);
}

}  // namespace
