// What this file is for: the watchdog of the tests hears of a group that stands still for long, and of no other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/stall_watch.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <span>
#include <thread>

#include "actors/protocol/executor.hpp"

namespace {

using namespace troupe::detail;

// Stands still for as many looks as it is told to.
class standing final : public executor {
 public:
  explicit standing(int looks) : looks_(looks) {
    facts_.name = "cpu:standing";
    watch_for_stalls(*this);
  }
  ~standing() override { forget_stalls(*this); }
  void go_on() { looks_ = 0; }
  void wait_looked_at(int times) const {
    while (seen_.load() < times) std::this_thread::yield();
  }
  bool is_stalled() const override { return seen_++ < looks_; }

  const executor_facts& facts() const override { return facts_; }
  void run_tasks(std::span<task_record* const>, attention) override {}
  int sleepers() const override { return 0; }
  void wake_one() override {}
  void keep_watch() override {}
  std::size_t queued() const override { return 0; }
  std::size_t unstarted() const override { return 0; }
  float queued_ns() const override { return 0; }
  std::size_t take_back(std::span<task_record*>, const std::function<bool(const task_record&)>&) override { return 0; }
  troupe::executor_report report() const override { return {}; }
  void start() override {}

 private:
  std::atomic<int> looks_;
  executor_facts facts_;
  mutable std::atomic<int> seen_{0};
};

TEST(stall_watch, names_a_group_that_stands_still) {
  standing s(1 << 30);
  EXPECT_EQ(stalled_groups(), std::vector<std::string>{"cpu:standing"});
  s.go_on();
  EXPECT_TRUE(stalled_groups().empty());
}

TEST(stall_watch, fails_the_test_in_which_a_group_stands_still) {
  EXPECT_NONFATAL_FAILURE_ON_ALL_THREADS(
      {
        const standing s(1 << 30);
        s.wait_looked_at(60);  // a watchdog that does not get its time begins again
      },
      "cpu:standing has tasks that could run");
}

TEST(stall_watch, minds_no_group_that_goes_on_soon) {
  const standing s(3);
  s.wait_looked_at(10);
}

}  // namespace
