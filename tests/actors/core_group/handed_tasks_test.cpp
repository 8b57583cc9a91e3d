// What this file is for: tasks that one thread hands over come out once and in order, and their sums with them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/handed_tasks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace troupe::detail;

struct handed_tasks_test : testing::Test {
  task_record& task(float ns) {
    made.push_back(std::make_unique<task_record>());
    made.back()->predicted_ns = ns;
    return *made.back();
  }
  std::size_t take(std::size_t takers = 1, bool moves_cost = true) {
    return handed.take_batch(out.data(), takers, moves_cost, &sums);
  }

  std::vector<std::unique_ptr<task_record>> made;
  handed_tasks handed;
  std::array<task_record*, task_worth::batch_max> out{};
  task_worth::sums sums;
};

TEST_F(handed_tasks_test, come_out_in_order_and_in_batches_that_are_worth_dividing) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(handed.push(task(600)));
  EXPECT_EQ(take(2), 1u);
  EXPECT_EQ(out[0], made[0].get());
  EXPECT_FLOAT_EQ(sums.ns, 600);
  EXPECT_FLOAT_EQ(sums.first_ns, 600);
  EXPECT_FLOAT_EQ(sums.beside_ns, 0);
  EXPECT_EQ(take(1), 2u) << "nobody else could run the other";
  EXPECT_EQ(out[0], made[1].get());
  EXPECT_EQ(out[1], made[2].get());
  EXPECT_FLOAT_EQ(sums.beside_ns, 400);
  EXPECT_EQ(take(1), 0u);
}

TEST_F(handed_tasks_test, are_taken_in_shares_that_others_can_have_too) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(handed.push(task(2'000)));
  EXPECT_EQ(take(4), 25u);
  EXPECT_EQ(take(4, false), 21u);
  EXPECT_FALSE(sums.moves_cost);
  EXPECT_EQ(take(1), task_worth::batch_max);
  handed_tasks long_ones;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(long_ones.push(task(50'000)));
  EXPECT_EQ(long_ones.take_batch(out.data(), 1, true, nullptr), 2u) << "a batch has so much work at most";
}

TEST_F(handed_tasks_test, have_room_again_for_as_many_as_were_taken) {
  for (std::size_t i = 0; i < handed_tasks::capacity; ++i) ASSERT_TRUE(handed.push(task(20)));
  EXPECT_FALSE(handed.push(task(20)));
  EXPECT_EQ(handed.size(), handed_tasks::capacity);
  const std::size_t n = take();
  ASSERT_GT(n, 0u);
  for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(handed.push(task(20)));
  EXPECT_FALSE(handed.push(task(20)));
  EXPECT_EQ(handed.size_now(), handed_tasks::capacity);
  EXPECT_EQ(handed.takes(), n);
}

TEST_F(handed_tasks_test, are_pushed_together_as_far_as_there_is_room) {
  std::vector<task_record*> some;
  for (std::size_t i = 0; i < handed_tasks::capacity - 10; ++i) some.push_back(&task(50'000));
  EXPECT_EQ(handed.push(some), some.size());
  EXPECT_EQ(handed.push(std::span<task_record* const>()), 0u);
  std::vector<task_record*> more;
  for (int i = 0; i < 20; ++i) more.push_back(&task(100'000));
  EXPECT_EQ(handed.push(more), 10u);
  EXPECT_EQ(handed.push(more), 0u);
  EXPECT_FLOAT_EQ(handed.stealable_ns(false), 50'000.0f * (handed_tasks::capacity - 10) + 10 * 100'000.0f);
  for (task_record* t : some) {
    ASSERT_EQ(take(1'000), 1u);
    EXPECT_EQ(out[0], t);
  }
  EXPECT_FLOAT_EQ(handed.stealable_ns(false), 10 * 100'000.0f) << "the first ten of those that came last";
  EXPECT_EQ(handed.push(std::span(more).subspan(10)), 10u);
  for (task_record* t : more) {
    ASSERT_EQ(take(1'000), 1u);
    EXPECT_EQ(out[0], t);
  }
  EXPECT_EQ(handed.stealable_ns(false), 0);
}

TEST_F(handed_tasks_test, say_what_they_are_worth_until_they_are_taken) {
  EXPECT_EQ(handed.stealable_ns(true), 0);
  handed.push(task(20));
  handed.push(task(1'000));
  EXPECT_FLOAT_EQ(handed.stealable_ns(true), 800) << "to move a task costs 200";
  EXPECT_FLOAT_EQ(handed.stealable_ns(false), 1'020);
  EXPECT_EQ(handed.unplaced().tasks, 2);
  EXPECT_FLOAT_EQ(handed.unplaced().ns, 1'020);
  EXPECT_FALSE(handed.take_first(*made[1]));
  EXPECT_TRUE(handed.take_first(*made[0]));
  EXPECT_FLOAT_EQ(handed.stealable_ns(false), 1'000);
  EXPECT_EQ(handed.take_passing([](float ns) { return ns < 1'000; }), nullptr);
  EXPECT_EQ(handed.take_passing([](float ns) { return ns == 1'000; }), made[1].get());
  EXPECT_EQ(handed.stealable_ns(false), 0);
  EXPECT_EQ(handed.unplaced().tasks, 0);
}

TEST_F(handed_tasks_test, are_all_taken_back_as_far_as_there_is_room) {
  for (int i = 0; i < 5; ++i) handed.push(task(100));
  std::array<task_record*, 3> room{};
  EXPECT_EQ(handed.take_all(room).size(), 3u);
  EXPECT_EQ(room[2], made[2].get());
  EXPECT_EQ(handed.take_all(room).size(), 2u);
  EXPECT_EQ(room[0], made[3].get());
  EXPECT_TRUE(handed.take_all(room).empty());
  EXPECT_EQ(handed.stealable_ns(false), 0);
}

// One thread hands over, others take in every way: each task comes out once, and to each thread in order.
TEST_F(handed_tasks_test, come_out_once_where_many_take_them) {
  constexpr std::size_t takers = 4, tasks = 100'000;
  for (std::size_t i = 0; i < tasks; ++i) task(static_cast<float>(i % 7 == 0 ? 5'000 : 30)).id = i;
  std::atomic<std::size_t> taken{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (std::size_t k = 0; k < takers; ++k)
    all.emplace_back([&, k] {
      std::array<task_record*, task_worth::batch_max> got{};
      std::uint64_t next = 0;
      for (std::size_t round = k; taken.load() < tasks; ++round) {
        std::size_t n = 0;
        if (round % 8 == 0) {
          n = handed.take_all(std::span(got).first(3)).size();
        } else if (round % 8 == 1) {
          got[0] = handed.take_passing([](float) { return true; });
          n = got[0] ? 1 : 0;
        } else {
          n = handed.take_batch(got.data(), takers, round % 2 == 0, nullptr);
        }
        for (std::size_t i = 0; i < n; ++i) {
          if (got[i]->id < next) ++wrong;
          next = got[i]->id + 1;
          got[i]->access_count += 1;
        }
        taken += n;
        if (n == 0) std::this_thread::yield();
      }
    });
  for (const auto& t : made)
    while (!handed.push(*t)) std::this_thread::yield();
  for (std::thread& t : all) t.join();
  EXPECT_EQ(wrong.load(), 0);
  for (const auto& t : made) ASSERT_EQ(t->access_count, 1);
  EXPECT_EQ(handed.size(), 0u);
  EXPECT_EQ(handed.stealable_ns(true), 0);
  EXPECT_EQ(handed.stealable_ns(false), 0);
  EXPECT_EQ(handed.unplaced().tasks, 0);
}

}  // namespace
