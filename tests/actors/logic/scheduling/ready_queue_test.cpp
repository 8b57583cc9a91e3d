// What this file is for: the order in which ready things leave the queue, against a sorted model.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "actors/logic/scheduling/ready_queue.hpp"

namespace {

using troupe::logic::ready_queue;
using troupe::logic::ring;

TEST(ring, keeps_order_while_it_grows_with_its_head_in_the_middle) {
  ring<int> r;
  int in = 0, out = 0;
  for (int i = 0; i < 40; ++i) r.push_back(in++);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(r.pop_front(), out++);
  while (in < 1000) r.push_back(in++);  // wraps, then grows several times
  EXPECT_EQ(r.size(), 970u);
  EXPECT_EQ(r.at(0), 30);
  EXPECT_EQ(r.at(969), 999);
  while (!r.empty()) ASSERT_EQ(r.pop_front(), out++);
  EXPECT_EQ(out, 1000);
}

TEST(ring, grows_at_its_front_as_at_its_back) {
  ring<int> r;
  for (int i = 0; i < 500; ++i) r.push_front(i);
  r.push_back(-1);
  for (int i = 499; i >= 0; --i) ASSERT_EQ(r.pop_front(), i);
  EXPECT_EQ(r.pop_front(), -1);
  EXPECT_TRUE(r.empty());
}

class ready_queue_test : public testing::Test {
 protected:
  int* item(int i) { return &items_[static_cast<std::size_t>(i)]; }
  ready_queue<int*> queue_;

 private:
  std::vector<int> items_ = std::vector<int>(10'000);
};

TEST_F(ready_queue_test, gives_null_when_it_is_empty) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.pop(), nullptr);
}

TEST_F(ready_queue_test, gives_the_highest_priority_first_and_equal_ones_in_order) {
  queue_.push(item(0), 0);
  queue_.push(item(1), -5);
  queue_.push(item(2), 7);
  queue_.push(item(3), 0);
  queue_.push(item(4), 7);
  for (const int i : {2, 4, 0, 3, 1}) EXPECT_EQ(queue_.pop(), item(i));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ready_queue_test, looks_past_what_was_taken_out_of_the_front) {
  for (int i = 0; i < 200; ++i) queue_.push(item(i), 0);
  std::vector<int*> taken;
  const auto take = [&](int* v) { taken.push_back(v); };
  for (int i = 1; i < 199; ++i) queue_.take_first(8, [&](int* v) { return v == item(i); }, take);
  EXPECT_EQ(taken.size(), 198u);
  queue_.take_first(2, [](int*) { return true; }, take);
  EXPECT_EQ(taken.back(), item(199));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ready_queue_test, puts_what_is_pushed_to_the_front_before_its_equals_only) {
  queue_.push(item(0), 1);
  queue_.push(item(1), 0);
  queue_.push_front(item(2), 0);
  for (const int i : {0, 2, 1}) EXPECT_EQ(queue_.pop(), item(i));
}

TEST_F(ready_queue_test, takes_an_entry_out_only_within_reach_of_the_end) {
  for (int i = 0; i < 10; ++i) queue_.push(item(i), 0);
  EXPECT_FALSE(queue_.take(item(6), 3));
  EXPECT_TRUE(queue_.take(item(7), 3));
  EXPECT_FALSE(queue_.take(item(7), 3)) << "it was taken already";
  EXPECT_FALSE(queue_.take(item(7), 0));
  EXPECT_EQ(queue_.size(), 9u);
  for (const int i : {0, 1, 2, 3, 4, 5, 6, 8, 9}) EXPECT_EQ(queue_.pop(), item(i));
  EXPECT_EQ(queue_.pop(), nullptr);
}

TEST_F(ready_queue_test, is_empty_once_all_of_its_entries_were_taken) {
  queue_.push(item(0), 3);
  queue_.push(item(1), 4);
  EXPECT_TRUE(queue_.take(item(0), 8));
  EXPECT_TRUE(queue_.take(item(1), 8));
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.pop(), nullptr);
}

TEST_F(ready_queue_test, does_what_a_sorted_list_does) {
  struct entry {
    int* what;
    int priority;
  };
  std::mt19937 random(6);
  std::vector<entry> model;  // in the order of leaving
  int next = 0;
  for (int step = 0; step < 20'000; ++step) {
    const int priority = static_cast<int>(random() % 4) - 1;
    const auto after = [&](const entry& e) { return e.priority < priority; };
    const auto at_or_after = [&](const entry& e) { return e.priority <= priority; };
    switch (random() % 5) {
      case 0:
      case 1:
        queue_.push(item(next), priority);
        model.insert(std::find_if(model.begin(), model.end(), after), {item(next), priority});
        next = (next + 1) % 10'000;
        break;
      case 2:
        queue_.push_front(item(next), priority);
        model.insert(std::find_if(model.begin(), model.end(), at_or_after), {item(next), priority});
        next = (next + 1) % 10'000;
        break;
      case 3:
        if (model.empty()) {
          ASSERT_EQ(queue_.pop(), nullptr);
        } else {
          ASSERT_EQ(queue_.pop(), model.front().what);
          model.erase(model.begin());
        }
        break;
      default:
        if (!model.empty()) {
          const std::size_t i = random() % model.size();
          ASSERT_TRUE(queue_.take(model[i].what, 1u << 20));
          model.erase(model.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    ASSERT_EQ(queue_.size(), model.size());
    ASSERT_EQ(queue_.begins_above(priority), !model.empty() && model.front().priority > priority);
  }
}

}  // namespace
