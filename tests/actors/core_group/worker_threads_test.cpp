// What this file is for: threads of a group begin, end and are awaited; workers are lent, and used again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/worker_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "lone_workplace.hpp"

namespace {

using namespace troupe::detail;
using namespace std::chrono_literals;

constexpr auto long_enough = 30s;

class threads_of_a_group : public testing::Test {
 protected:
  ~threads_of_a_group() override {
    go_.set_value();
    threads.wait_ended(std::chrono::steady_clock::now() + long_enough);
  }

 private:
  const test::lone_workplace work_;
  std::promise<void> go_;
  const std::shared_future<void> gone_ = go_.get_future().share();

 protected:
  // Threads end at once, or as the test does.
  bool stay = false;
  std::atomic<bool> dismissed{false};
  std::vector<bool> lanes_of_helpers;
  worker_threads threads{work_.where, [this](worker&, bool helps) { lanes_of_helpers.push_back(helps); },
                         [this](std::shared_ptr<worker> w) -> std::function<void()> {
                           return [this, w = std::move(w), stays = stay] {
                             if (stays) gone_.wait();
                             w->parking_state.dismissed = dismissed;
                             threads.ended(*w);
                           };
                         }};
  bool all_ended_by(std::chrono::milliseconds limit) {
    return threads.wait_ended(std::chrono::steady_clock::now() + limit);
  }
};

TEST_F(threads_of_a_group, are_counted_until_they_have_ended) {
  stay = true;
  threads.add();
  threads.add();
  EXPECT_EQ(threads.count(), 2);
  std::set<int> numbers;
  threads.each([&](const worker& w) { numbers.insert(w.number); });
  EXPECT_EQ(numbers, (std::set<int>{0, 1}));
}

TEST_F(threads_of_a_group, are_awaited) {
  threads.add();
  threads.add();
  EXPECT_TRUE(all_ended_by(long_enough));
  EXPECT_EQ(threads.count(), 0);
}

TEST_F(threads_of_a_group, leave_their_worker_to_the_next_one_where_they_were_dismissed) {
  dismissed = true;
  threads.add();
  ASSERT_TRUE(all_ended_by(long_enough));
  threads.add();
  ASSERT_TRUE(all_ended_by(long_enough));
  EXPECT_EQ(lanes_of_helpers, std::vector<bool>{false}) << "no second worker was made";
}

TEST_F(threads_of_a_group, that_were_not_dismissed_leave_nothing) {
  threads.add();
  ASSERT_TRUE(all_ended_by(long_enough));
  threads.add();
  ASSERT_TRUE(all_ended_by(long_enough));
  EXPECT_EQ(lanes_of_helpers.size(), 2u);
}

TEST_F(threads_of_a_group, are_not_over_while_a_worker_is_lent) {
  worker& lent = threads.take_helper();
  EXPECT_TRUE(lent.parking_state.has_slot);
  EXPECT_FALSE(all_ended_by(0ms));
  int all = 0, own = 0;
  threads.each([&](const worker&) { ++all; });
  threads.each_own([&](const worker&) { ++own; });
  EXPECT_EQ(all, 1);
  EXPECT_EQ(own, 0);
  threads.give_helper(lent);
  EXPECT_TRUE(all_ended_by(0ms));
  EXPECT_EQ(&threads.take_helper(), &lent) << "the same worker is lent again";
  threads.give_helper(lent);
  EXPECT_EQ(lanes_of_helpers, std::vector<bool>{true});
}

TEST_F(threads_of_a_group, are_left_alone_while_another_thread_looks_at_them) {
  stay = true;
  threads.add();
  threads.each([&](const worker&) {
    std::async(std::launch::async, [&] {
      bool busy = false;
      EXPECT_EQ(threads.try_find(busy, [](const worker&) { return true; }), nullptr);
      EXPECT_TRUE(busy);
      EXPECT_FALSE(threads.try_each([](const worker&) {}));
    }).get();
  });
  bool busy = true;
  EXPECT_NE(threads.try_find(busy, [](const worker&) { return true; }), nullptr);
  EXPECT_FALSE(busy);
  EXPECT_EQ(threads.try_find(busy, [](const worker&) { return false; }), nullptr);
}

}  // namespace
