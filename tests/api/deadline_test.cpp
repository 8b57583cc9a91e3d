// What this file is for: deadlines of tasks: what has not begun by then never does, what runs is asked to stop.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <thread>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace std::chrono_literals;
using troupe::errc;

errc code_of(const troupe::future<void>& f) {
  try {
    f.get();
  } catch (const troupe::error& e) {
    return e.code();
  }
  return errc::bad_argument;
}

TEST(deadline, of_a_task_that_has_not_begun_ends_it) {
  test::gate closed;
  troupe::runtime rt({.threads = 1, .waiting_thread_helps = false});
  const test::opener opens(closed);
  const auto holds = rt.spawn([&] { EXPECT_TRUE(closed.pass()); });
  const auto late = rt.spawn({.name = "late", .deadline = 5ms}, [] { FAIL() << "it has begun"; });
  ASSERT_TRUE(late.wait_for(test::patience));
  try {
    late.get();
    FAIL() << "nothing was thrown";
  } catch (const troupe::task_failed& e) {
    EXPECT_EQ(e.code(), errc::timed_out);
    EXPECT_EQ(e.task(), "late");
    EXPECT_NE(std::string(e.what()).find("deadline"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(holds.is_ready());
  closed.open();
  rt.wait_all();
}

TEST(deadline, asks_a_body_that_runs_to_stop_and_keeps_what_it_returns) {
  troupe::runtime rt({.threads = 1});
  const auto f = rt.spawn({.deadline = 5ms}, [](troupe::task_context& c) {
    while (!c.stop_requested()) std::this_thread::yield();
    return 7;
  });
  EXPECT_EQ(f.get(), 7);
}

TEST(deadline, that_is_far_away_changes_nothing) {
  troupe::runtime rt({.threads = 1});
  EXPECT_EQ(rt.spawn({.deadline = std::chrono::milliseconds::max()}, [] { return 1; }).get(), 1);
  EXPECT_EQ(rt.spawn({.deadline = 1h}, [] { return 2; }).get(), 2);
  EXPECT_THROW(rt.spawn({.deadline = -1ms}, [] {}), troupe::error);
}

TEST(deadline, leaves_the_callers_own_stop_token_as_it_is) {
  test::gate closed;
  troupe::runtime rt({.threads = 1, .waiting_thread_helps = false});
  const test::opener opens(closed);
  const auto holds = rt.spawn([&] { EXPECT_TRUE(closed.pass()); });
  std::stop_source stop;
  const auto f = rt.spawn({.stop = stop.get_token(), .deadline = 1h}, [] {});
  stop.request_stop();
  EXPECT_EQ(code_of(f), errc::cancelled);
  closed.open();
  rt.wait_all();
}

TEST(deadline, of_thousands_of_tasks_that_end_in_time_leaves_nothing_behind) {
  troupe::runtime rt({.threads = 2});
  for (int i = 0; i < 20'000; ++i) rt.spawn({.deadline = 1h}, [] {});
  rt.wait_all();
}

}  // namespace
