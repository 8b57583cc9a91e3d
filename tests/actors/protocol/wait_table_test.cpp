// What this file is for: who waits for a task sleeps until that one is done, and not for others or beyond a deadline.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/wait_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <unistd.h>

#include "actors/protocol/phase.hpp"
#include "tests/support/system_threads.hpp"

namespace {

using namespace troupe::detail;
using std::chrono::steady_clock;

constexpr auto for_ever = steady_clock::time_point::max();

bool is_watched(const task_record& t) { return (t.phase.load() & phase_watched) != 0; }
/// Returns once a thread has begun to wait for the task.
void await_watcher(const task_record& t) {
  while (!is_watched(t)) std::this_thread::yield();
}
void end(task_record& t, wait_table& board) {
  ASSERT_TRUE(claim(t));
  fulfil(t, board);
}

TEST(wait_table, lets_nobody_wait_for_a_task_that_is_done) {
  wait_table board;
  task_record t;
  end(t, board);
  EXPECT_TRUE(board.wait(t, for_ever));
  EXPECT_TRUE(board.wait(t, steady_clock::time_point{})) << "also if the deadline has passed";
}

TEST(wait_table, gives_up_at_the_deadline) {
  wait_table board;
  task_record t;
  EXPECT_FALSE(board.wait(t, steady_clock::time_point{}));
  EXPECT_TRUE(is_watched(t)) << "whoever ends the task must look for waiters";
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(2);
  EXPECT_FALSE(board.wait(t, deadline));
  EXPECT_GE(steady_clock::now(), deadline);
  end(t, board);
  EXPECT_TRUE(board.wait(t, steady_clock::time_point{}));
}

TEST(wait_table, wakes_all_who_wait_for_a_task) {
  wait_table board;
  task_record t;
  std::atomic<int> woken{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, limit = i % 2 == 0 ? for_ever : steady_clock::now() + std::chrono::minutes(10)] {
      if (board.wait(t, limit) && is_fulfilled(t)) ++woken;
    });
  await_watcher(t);
  end(t, board);
  threads.clear();
  EXPECT_EQ(woken, 4);
}

TEST(wait_table, does_not_take_the_end_of_another_task_for_the_one_it_waits_for) {
  wait_table board;
  std::array<task_record, 40> others;  // some share what the thread sleeps on
  task_record t;
  std::atomic<bool> was_done{false};
  std::jthread waits([&] { was_done = board.wait(t, for_ever) && is_fulfilled(t); });
  await_watcher(t);
  for (task_record& o : others) {
    board.wait(o, steady_clock::time_point{});  // so that its end is announced
    end(o, board);
  }
  board.announce(t);  // nothing has happened
  end(t, board);
  waits.join();
  EXPECT_TRUE(was_done);
}

// A service has hundreds of threads that wait, each for a task of its own.
TEST(wait_table, lets_who_waits_for_another_task_sleep) {
  wait_table board;
  task_record t;
  std::atomic<int> id{0};
  std::jthread waits([&] {
    id = ::gettid();
    board.wait(t, for_ever);
  });
  while (id == 0 || !is_watched(t) || !test::sleeps(id)) std::this_thread::yield();
  const std::uint64_t before = test::switches_of(id);
  std::vector<task_record> others(400);  // some are where that one is
  for (task_record& o : others) {
    board.wait(o, steady_clock::time_point{});
    end(o, board);
    std::this_thread::yield();
  }
  EXPECT_EQ(test::switches_of(id), before);
  end(t, board);
}

TEST(wait_table, wakes_each_of_many) {
  wait_table board;
  std::vector<task_record> tasks(60);
  std::atomic<int> right{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 120; ++i)
    threads.emplace_back([&, i] {
      task_record& mine = tasks[static_cast<std::size_t>(i) % tasks.size()];
      for (int k = 0; k < 3; ++k) board.wait(mine, steady_clock::now());  // seats come and go
      if (board.wait(mine, for_ever) && is_fulfilled(mine)) ++right;
    });
  for (task_record& t : tasks) {
    await_watcher(t);
    end(t, board);
  }
  threads.clear();
  EXPECT_EQ(right, 120);
}

}  // namespace
