// What this file is for: how much of a group's ready work one thread takes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "actors/core_group/task_queue.hpp"

namespace {

using namespace troupe::detail;

class queue_of : public testing::Test {
 protected:
  // Tasks that are predicted to take this long; 0: nobody knows.
  std::vector<task_record*> tasks(std::size_t n, float ns) {
    std::vector<task_record*> made;
    for (std::size_t i = 0; i < n; ++i) {
      kept_.push_back(std::make_unique<task_record>());
      kept_.back()->predicted_ns = ns;
      made.push_back(kept_.back().get());
    }
    return made;
  }
  task_record* out[task_queue::batch_max] = {};

 private:
  std::vector<std::unique_ptr<task_record>> kept_;
};

TEST_F(queue_of, tiny_tasks_gives_a_full_batch_to_one_thread) {
  task_queue q(2);
  q.push(tasks(40, 20));
  EXPECT_EQ(q.take_batch(out), task_queue::batch_max);
}

TEST_F(queue_of, two_tasks_that_are_worth_moving_gives_one_to_each_thread) {
  task_queue q(2);
  q.push(tasks(2, 600));
  EXPECT_EQ(q.take_batch(out), 1u);
  q.push(tasks(1, 250));
  EXPECT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(q.take_batch(out), 1u);
  q.push(tasks(4, 250));  // another thread would save little of each
  EXPECT_EQ(q.take_batch(out), 4u);
}

TEST_F(queue_of, a_batch_gives_its_predictions_in_sums) {
  task_queue q(2);
  q.push(tasks(3, 250));
  task_queue::sums s;
  EXPECT_EQ(q.take_batch(out, &s), 3u);
  EXPECT_FLOAT_EQ(s.ns, 750);
  EXPECT_FLOAT_EQ(s.beside_ns, 2 * 50);  // to move a task costs 200
}

TEST_F(queue_of, early_tasks_and_others_says_what_other_executors_may_have) {
  task_queue q(2);
  const auto early = tasks(3, 1200), others = tasks(2, 700);
  for (task_record* t : early) t->marks |= mark_early;
  q.push(early);
  EXPECT_FALSE(q.has_movable());
  EXPECT_FLOAT_EQ(q.movable_ns(), 0);
  q.push(others);
  EXPECT_TRUE(q.has_movable());
  EXPECT_FLOAT_EQ(q.movable_ns(), 2 * 500);  // to move a task costs 200
  EXPECT_FLOAT_EQ(q.stealable_ns(), 3 * 1000 + 2 * 500);
  for (bool movable : {false, false, false, true, true}) {
    task_queue::sums s;
    ASSERT_EQ(q.take_batch(out, &s), 1u);
    EXPECT_EQ(s.movable, movable);
  }
  EXPECT_FALSE(q.has_movable());
  EXPECT_FLOAT_EQ(q.movable_ns(), 0);
  q.hand(*early[0], 0);
  EXPECT_FALSE(q.has_movable()) << "rings have early tasks only";
}

TEST_F(queue_of, many_tasks_gives_each_that_may_pass_to_who_asks_for_one) {
  task_queue q(2);
  const auto all = tasks(500, 20);
  q.push(all);
  for (task_record* t : all) ASSERT_EQ(q.take_passing(0, [](float ns) { return ns <= 20; }), t);
  EXPECT_EQ(q.take_passing(0, [](float) { return true; }), nullptr);
}

TEST_F(queue_of, tasks_of_a_higher_priority_gives_those_to_who_passes_whatever_they_take) {
  task_queue q(2);
  const auto low = tasks(3, 1000), high = tasks(1, 1000);
  q.push(low);
  task_extra urgent;
  urgent.options.priority = 5;
  high[0]->extra = &urgent;
  q.push(high);
  EXPECT_EQ(q.take_passing(4, [](float) { return false; }), high[0]);
  EXPECT_EQ(q.take_passing(4, [](float) { return false; }), nullptr);
  EXPECT_EQ(q.size(), 3u);
}

TEST_F(queue_of, tasks_leaves_to_a_thread_with_none_ahead_what_it_has_made_ready) {
  task_queue q(2);
  q.push(tasks(3, 1000));
  task_queue::share mine{.tasks = 1, .ns = 1000};
  EXPECT_TRUE(q.is_to_keep(mine, 0));
  mine.add(1000);
  EXPECT_FALSE(q.is_to_keep(mine, 1));  // others save something by running the next one
  mine.begins(1000, 0);
  EXPECT_TRUE(q.is_to_keep(mine, 0));
}

TEST_F(queue_of, no_tasks_leaves_to_a_thread_as_many_as_are_not_worth_the_move) {
  task_queue q(2);
  task_queue::share mine{.tasks = 1, .ns = 100};
  mine.add(250);
  EXPECT_TRUE(q.is_to_keep(mine, 1));
  q.push(tasks(1, 250));
  EXPECT_FALSE(q.is_to_keep(mine, 1));
  for (int i = 0; i < 8; ++i) mine.add(250);  // 50 ns each beside the move
  task_record* got[task_queue::batch_max];
  EXPECT_EQ(q.take_batch(got), 1u);
  EXPECT_FALSE(q.is_to_keep(mine, 9));
}

TEST_F(queue_of, tasks_gets_back_a_thread_that_has_run_enough) {
  task_queue q(2);
  task_queue::share many{.tasks = task_queue::batch_max}, long_one{.tasks = 1, .ns = task_queue::batch_ns};
  EXPECT_FALSE(q.is_to_keep(many, 0));
  EXPECT_FALSE(q.is_to_keep(long_one, 0));
  task_queue::share closed{.tasks = 1, .open = false};
  EXPECT_FALSE(q.is_to_keep(closed, 0));
}

TEST_F(queue_of, a_task_of_a_higher_priority_leaves_nothing_to_a_thread_until_it_is_taken) {
  task_queue q(2);
  const auto high = tasks(1, 1000), low = tasks(1, 1000);
  task_extra urgent, late;
  urgent.options.priority = 1;
  late.options.priority = -1;
  high[0]->extra = &urgent;
  low[0]->extra = &late;
  const task_queue::share mine{.tasks = 1, .ns = 1000};
  q.push(low);
  EXPECT_TRUE(q.is_to_keep(mine, 0));
  q.push(high);
  EXPECT_FALSE(q.is_to_keep(mine, 0));
  EXPECT_TRUE(q.take(*high[0]));
  EXPECT_TRUE(q.is_to_keep(mine, 0));
  q.put_back(std::span(high).subspan(0, 1));
  EXPECT_FALSE(q.is_to_keep(mine, 0));
  EXPECT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(out[0], high[0]);
  EXPECT_TRUE(q.is_to_keep(mine, 0));
}

TEST_F(queue_of, early_tasks_and_others_says_how_many_the_early_ones_are) {
  task_queue q(2);
  const auto early = tasks(4, 1000), others = tasks(2, 1000);
  for (task_record* t : early) t->marks |= mark_early;
  const auto expect = [&](int n) {
    EXPECT_EQ(q.unplaced().tasks, n);
    EXPECT_FLOAT_EQ(q.unplaced().ns, 1000.0f * static_cast<float>(n));
  };
  expect(0);
  q.push(others);
  expect(0);
  q.push(early);
  expect(4);
  EXPECT_TRUE(q.take(*early[1]));
  expect(3);
  q.put_back(std::span(early).subspan(1, 1));
  expect(4);
  EXPECT_EQ(q.take_batch(out), 1u);  // the one that was put back
  expect(3);
  task_record* room[1];
  EXPECT_EQ(q.take_newest(room, [](const task_record&) { return true; }), 1u);
  expect(2);
  EXPECT_EQ(q.take_passing(0, [](float) { return true; }), others[0]);
  expect(2);
  while (q.take_batch(out) != 0) {
  }
  expect(0);
}

TEST_F(queue_of, few_long_tasks_gives_one_to_each) {
  task_queue q(2);
  q.push(tasks(3, 50'000));
  EXPECT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(q.size(), 1u);
}

TEST_F(queue_of, unknown_tasks_gives_one_at_a_time) {
  task_queue q(1);
  q.push(tasks(100, 0));
  EXPECT_EQ(q.take_batch(out), 1u);
}

TEST_F(queue_of, middling_tasks_gives_a_share_and_no_more_than_a_batch_of_work) {
  task_queue q(2);
  q.push(tasks(8, 2'000));
  EXPECT_EQ(q.take_batch(out), 2u);  // a quarter
  task_queue many(2);
  many.push(tasks(192, 4'000));
  EXPECT_EQ(many.take_batch(out), 20u);  // 80 us
}

TEST_F(queue_of, tasks_gives_the_oldest_first_and_what_was_put_back_before_all) {
  task_queue q(1);
  const auto t = tasks(4, 100'000);
  q.push(t);
  ASSERT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(out[0], t[0]);
  q.put_back(std::span(t).subspan(0, 1));
  ASSERT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(out[0], t[0]);
  ASSERT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(out[0], t[1]);
}

TEST_F(queue_of, tasks_gives_the_one_that_is_asked_for) {
  task_queue q(1);
  const auto t = tasks(3, 1'000);
  q.push(t);
  EXPECT_TRUE(q.take(*t[1]));
  EXPECT_FALSE(q.take(*t[1]));
  EXPECT_EQ(q.size(), 2u);
  std::vector<task_record*> all(8);
  EXPECT_EQ(q.take_newest(all, [](const task_record&) { return true; }), 2u);
  EXPECT_EQ(all[0], t[2]);
  EXPECT_EQ(all[1], t[0]);
}

TEST_F(queue_of, tasks_hands_back_the_newest_that_are_wanted) {
  task_queue q(1);
  const auto t = tasks(5, 1'000);
  q.push(t);
  std::vector<task_record*> back(2);
  EXPECT_EQ(q.take_newest(back, [&](const task_record& r) { return &r != t[4]; }), 2u);
  EXPECT_EQ(back[0], t[3]);
  EXPECT_EQ(back[1], t[2]);
  EXPECT_EQ(q.size(), 3u);
  ASSERT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(out[0], t[0]);
}

TEST_F(queue_of, tasks_says_what_running_them_elsewhere_would_save) {
  task_queue q(1);
  EXPECT_EQ(q.stealable_ns(), 0);
  q.push(tasks(10, 100));  // moving one costs more
  EXPECT_EQ(q.stealable_ns(), 0);
  q.push(tasks(1, 5'200));
  EXPECT_FLOAT_EQ(q.stealable_ns(), 5'200 - task_queue::move_ns);
  std::vector<task_record*> all(16);
  q.take_newest(all, [](const task_record&) { return true; });
  EXPECT_EQ(q.stealable_ns(), 0);
}

TEST_F(queue_of, tiny_tasks_gives_shares_where_they_cost_the_same_on_any_core) {
  task_queue q(2);
  q.set_moves_cost(false);
  q.push(tasks(40, 100));
  EXPECT_FLOAT_EQ(q.stealable_ns(), 4'000);
  EXPECT_EQ(q.take_batch(out), 10u);
  q.set_moves_cost(true);
  EXPECT_FLOAT_EQ(q.stealable_ns(), 0);
}

TEST_F(queue_of, tasks_in_lanes_counts_and_gives_all_of_them) {
  task_queue q(1);
  const auto a = tasks(2, 1'000), b = tasks(3, 1'000), c = tasks(1, 1'000);
  EXPECT_TRUE(q.empty());
  q.push_own(a, 3);
  EXPECT_FALSE(q.empty());
  q.push(c);
  q.push_own(b, task_queue::own_lanes - 1);
  EXPECT_EQ(q.size(), 6u);
  EXPECT_EQ(q.size_now(), 6u);
  EXPECT_FLOAT_EQ(q.stealable_ns(), 6 * 800.0f);
  EXPECT_FALSE(q.take(*b[1])) << "it is not the oldest of its lane";
  EXPECT_TRUE(q.take(*b[0]));
  EXPECT_FALSE(q.take(*b[0]));
  EXPECT_EQ(q.take_passing(0, [](float) { return true; }), c[0]);
  EXPECT_EQ(q.take_passing(0, [](float) { return true; }), a[0]);
  EXPECT_EQ(q.size(), 3u);
  const std::uint32_t before = q.takes();
  EXPECT_EQ(q.take_batch(out, nullptr, {.turn = 3}), 1u);
  EXPECT_EQ(out[0], a[1]);
  EXPECT_EQ(q.takes(), before + 1);
  std::vector<task_record*> back(2);
  EXPECT_EQ(q.take_newest(back, [](const task_record&) { return true; }), 0u) << "nobody else may run them";
  EXPECT_EQ(q.take_early(back, [&](const task_record& t) { return &t == b[2]; }), 1u);
  EXPECT_EQ(back[0], b[2]);
  EXPECT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(out[0], b[1]) << "it stays";
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.take_batch(out), 0u);
}

TEST_F(queue_of, tasks_in_lanes_gives_a_thread_those_of_its_own_first_or_last) {
  task_queue q(1);
  const auto own = tasks(3, 100'000), other = tasks(2, 100'000), first = tasks(2, 100'000);
  q.push_own(own, 1);
  q.push_own(other, 2);
  q.push(first);
  const auto next = [&](bool is_own, std::size_t turn) {
    return q.take_batch(out, nullptr, {.own = 1, .is_own = is_own, .turn = turn}) == 1 ? out[0] : nullptr;
  };
  EXPECT_EQ(next(true, 0), own[0]);
  EXPECT_EQ(next(false, 0), first[0]);
  EXPECT_EQ(next(false, 1), other[0]) << "the lane between them is empty";
  EXPECT_EQ(next(false, 2), other[1]);
  EXPECT_EQ(next(false, 3), first[1]);
  EXPECT_EQ(next(false, 4), own[1]) << "there is nothing else";
  EXPECT_EQ(next(true, 5), own[2]);
  EXPECT_EQ(next(true, 6), nullptr);
}

// Whatever the number of lanes, and whichever is the thread's own, it comes to each of the others.
TEST_F(queue_of, tasks_in_lanes_makes_none_of_another_lane_wait_for_ever) {
  for (std::size_t lanes = 1; lanes <= task_queue::own_lanes; ++lanes)
    for (std::size_t own = 0; own < lanes; ++own)
      for (std::size_t of = 0; of < lanes; ++of) {
        if (of == own) continue;
        task_queue q(1);
        const auto waits = tasks(1, 100'000), others = tasks(4 * lanes, 100'000);
        for (std::size_t i = 0; i < lanes; ++i)
          for (std::size_t k = 0; k < 3; ++k)
            if (i != of) q.push_own({&others[3 * i + k], 1}, i);
        for (std::size_t k = 0; k < lanes; ++k) q.push({&others[3 * lanes + k], 1});
        q.push_own(waits, of);
        bool came = false;
        for (std::size_t turn = 0; turn < lanes && !came; ++turn) {
          ASSERT_EQ(q.take_batch(out, nullptr, {.own = own, .turn = turn}), 1u);
          came = out[0] == waits[0];
        }
        EXPECT_TRUE(came) << "lane " << of << " of " << lanes << ", own " << own;
      }
}

TEST_F(queue_of, tasks_in_lanes_gives_those_of_a_higher_priority_before_and_of_a_lower_one_after_them) {
  task_queue q(1);
  const auto own = tasks(8, 100'000), high = tasks(1, 100'000), low = tasks(1, 100'000);
  task_extra urgent, late;
  urgent.options.priority = 1;
  late.options.priority = -1;
  high[0]->extra = &urgent;
  low[0]->extra = &late;
  q.push(low);
  q.push_own(own, 0);
  for (std::size_t turn = 0; turn < 4; ++turn) {
    ASSERT_EQ(q.take_batch(out, nullptr, {.is_own = true}), 1u);
    EXPECT_EQ(out[0], own[turn]);
  }
  q.push(high);
  ASSERT_EQ(q.take_batch(out, nullptr, {.is_own = true}), 1u);
  EXPECT_EQ(out[0], high[0]);
  for (std::size_t turn = 4; turn < 8; ++turn) {
    ASSERT_EQ(q.take_batch(out, nullptr, {.is_own = true}), 1u);
    EXPECT_EQ(out[0], own[turn]);
  }
  ASSERT_EQ(q.take_batch(out, nullptr, {.is_own = true}), 1u);
  EXPECT_EQ(out[0], low[0]);
}

TEST_F(queue_of, tasks_tells_of_a_task_whether_one_of_a_higher_priority_waits) {
  task_queue q(1);
  const auto usual = tasks(2, 1'000), ones = tasks(2, 1'000), low = tasks(1, 1'000);
  task_extra urgent, late;
  urgent.options.priority = 1;
  late.options.priority = -1;
  for (task_record* t : ones) t->extra = &urgent;
  low[0]->extra = &late;
  const auto overtaken = [&] {
    return std::vector<bool>{q.is_overtaken(*ones[1]), q.is_overtaken(*usual[1]), q.is_overtaken(*low[0])};
  };
  EXPECT_EQ(overtaken(), (std::vector<bool>{false, false, false})) << "nothing waits";
  q.push_own(std::span(usual).first(1), 0);
  EXPECT_EQ(overtaken(), (std::vector<bool>{false, false, true})) << "in a lane of a worker's";
  ASSERT_EQ(q.take_batch(out), 1u);
  q.push(std::span(usual).first(1));
  EXPECT_EQ(overtaken(), (std::vector<bool>{false, false, true}));
  q.push(std::span(ones).first(1));
  EXPECT_EQ(overtaken(), (std::vector<bool>{false, true, true}));
  while (q.take_batch(out) != 0) continue;
  EXPECT_EQ(overtaken(), (std::vector<bool>{false, false, false}));
}

TEST_F(queue_of, tasks_that_were_handed_over_counts_and_gives_them_as_those_of_lanes) {
  task_queue q(1);
  const auto a = tasks(3, 1'000), b = tasks(2, 1'000), c = tasks(1, 1'000), own = tasks(1, 1'000);
  q.hand(*a[0], 2);
  EXPECT_FALSE(q.empty());
  EXPECT_FLOAT_EQ(q.stealable_ns_of(2), 800);
  q.hand(*a[1], 2);
  q.hand(*a[2], 2);
  for (task_record* t : b) q.hand(*t, 5);
  EXPECT_FLOAT_EQ(q.stealable_ns_of(2), 2'400);
  EXPECT_FLOAT_EQ(q.stealable_ns_of(5), 1'600);
  q.push(c);
  q.push_own(own, 0);
  EXPECT_EQ(q.size(), 7u);
  EXPECT_EQ(q.size_now(), 7u);
  EXPECT_FLOAT_EQ(q.stealable_ns(), 7 * 800.0f);
  EXPECT_EQ(q.unplaced().tasks, 6) << "what is handed over or released is early";
  EXPECT_FLOAT_EQ(q.unplaced().ns, 6'000);
  EXPECT_FALSE(q.take(*a[1])) << "it is not the first";
  EXPECT_TRUE(q.take(*a[0]));
  EXPECT_TRUE(q.take(*a[1]));
  const std::uint32_t before = q.takes();
  std::vector<task_record*> got;
  for (std::size_t turn = 0; !q.empty(); ++turn) {
    ASSERT_LE(turn, 100u);
    const std::size_t n = q.take_batch(out, nullptr, {.is_own = turn % 2 == 0, .turn = turn});
    got.insert(got.end(), out, out + n);
  }
  EXPECT_EQ(q.takes(), before + 5);
  EXPECT_EQ(q.stealable_ns(), 0);
  EXPECT_EQ(q.unplaced().tasks, 0);
  EXPECT_EQ(got.size(), 5u);
  for (task_record* t : {a[2], b[0], b[1], c[0], own[0]}) EXPECT_EQ(std::count(got.begin(), got.end(), t), 1);
  EXPECT_LT(std::find(got.begin(), got.end(), b[0]), std::find(got.begin(), got.end(), b[1]));
}

TEST_F(queue_of, tasks_that_were_handed_over_gives_one_that_may_pass_and_those_that_are_taken_back) {
  task_queue q(1);
  const auto a = tasks(4, 1'000);
  for (task_record* t : a) q.hand(*t, 0);
  EXPECT_EQ(q.take_passing(0, [](float ns) { return ns < 1'000; }), nullptr);
  EXPECT_EQ(q.take_passing(0, [](float ns) { return ns <= 1'000; }), a[0]);
  EXPECT_EQ(q.take_passing(-1, [](float) { return false; }), a[1]) << "they have the usual priority";
  std::vector<task_record*> back(4);
  EXPECT_EQ(q.take_early(back, [&](const task_record& t) { return &t == a[3]; }), 1u);
  EXPECT_EQ(back[0], a[3]);
  EXPECT_EQ(q.take_batch(out), 1u);
  EXPECT_EQ(out[0], a[2]) << "it stays";
  EXPECT_TRUE(q.empty());
}

TEST_F(queue_of, more_tasks_than_a_thread_may_hand_over_gives_all_of_them) {
  task_queue q(1);
  const auto all = tasks(3 * handed_tasks::capacity, 20);
  for (task_record* t : all) q.hand(*t, 7);
  EXPECT_EQ(q.size(), all.size());
  std::vector<task_record*> got;
  for (std::size_t turn = 0; !q.empty(); ++turn) {
    ASSERT_LE(turn, all.size());
    const std::size_t n = q.take_batch(out, nullptr, {.turn = turn});
    got.insert(got.end(), out, out + n);
  }
  std::vector<task_record*> expected = all;
  std::sort(expected.begin(), expected.end());
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, expected);
}

// Whatever the number of lanes and of threads that hand over, a thread comes to each of them.
TEST_F(queue_of, tasks_that_were_handed_over_makes_none_wait_for_ever) {
  for (std::size_t lanes = 1; lanes <= task_queue::own_lanes; ++lanes)
    for (std::size_t of = 0; of < task_queue::handing_max; ++of) {
      task_queue q(1);
      const auto waits = tasks(1, 100'000), others = tasks(100, 100'000);
      for (std::size_t i = 0; i < lanes; ++i) q.push_own(std::span(others).subspan(8 * i, 8), i);
      q.push(std::span(others).subspan(80, 20));
      q.hand(*waits[0], of);
      bool came = false;
      for (std::size_t turn = 0; turn < lanes + of + 1 && !came; ++turn) {
        ASSERT_EQ(q.take_batch(out, nullptr, {.own = 0, .turn = turn}), 1u);
        came = out[0] == waits[0];
      }
      EXPECT_TRUE(came) << of << " beside " << lanes << " lanes";
    }
}

// Threads that push to lanes of their own, or hand over, and take from all: each task comes out once.
TEST_F(queue_of, more_tasks_than_a_lane_has_room_for_gives_all_of_them) {
  task_queue q(1);
  const auto all = tasks(handed_tasks::capacity + 30, 100'000);
  q.push_own(std::span(all).first(handed_tasks::capacity - 10), 4);
  q.push_own(std::span(all).subspan(handed_tasks::capacity - 10), 4);
  EXPECT_EQ(q.size(), all.size());
  EXPECT_FLOAT_EQ(q.stealable_ns(), static_cast<float>(all.size()) * 99'800.0f);
  std::vector<task_record*> got(all.size());
  EXPECT_EQ(q.take_newest(got, [](const task_record&) { return true; }), 30u) << "the rest is in the first lane";
  EXPECT_EQ(q.take_early(std::span(got).subspan(30), [](const task_record&) { return true; }), handed_tasks::capacity);
  EXPECT_TRUE(q.empty());
  std::vector<task_record*> expected = all;
  std::sort(expected.begin(), expected.end());
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, expected);
}

// Workers with one lane push into it at the same time, while others take.
TEST_F(queue_of, tasks_in_one_lane_gives_each_once_to_threads_that_push_and_take) {
  constexpr std::size_t each = 20'000, pushing = 3, taking = 2;
  task_queue q(4);
  const auto all = tasks(pushing * each, 600);
  std::vector<std::vector<task_record*>> got(taking);
  std::atomic<std::size_t> left{all.size()};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < pushing; ++i)
    threads.emplace_back([&, i] {
      for (std::size_t k = 0; k < each; k += 2) q.push_own(std::span(all).subspan(i * each + k, 2), 3);
    });
  for (std::size_t i = 0; i < taking; ++i)
    threads.emplace_back([&, i] {
      task_record* some[task_queue::batch_max];
      for (std::size_t turn = 0; left.load() != 0; ++turn) {
        const std::size_t n = q.take_batch(some, nullptr, {.own = 2 + i, .is_own = turn % 4 != 0, .turn = turn});
        got[i].insert(got[i].end(), some, some + n);
        left -= n;
      }
    });
  for (std::thread& t : threads) t.join();
  std::vector<task_record*> expected = all, found = got[0];
  found.insert(found.end(), got[1].begin(), got[1].end());
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(q.stealable_ns(), 0);
}

TEST_F(queue_of, tasks_in_lanes_gives_each_once_to_threads_that_push_and_take) {
  constexpr std::size_t threads = 6, each = 20'000;
  task_queue q(threads);
  std::vector<std::vector<task_record*>> all;
  for (std::size_t i = 0; i < threads; ++i) all.push_back(tasks(each, 20));
  std::atomic<std::size_t> taken{0};
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      task_record* got[task_queue::batch_max];
      std::size_t turn = i, next = 0;
      while (taken.load() < threads * each) {
        for (int k = 0; k < 3 && next < each; ++k) {
          const std::span<task_record* const> one(&all[i][next++], 1);
          if (i == 0)
            q.push(one);
          else if (i % 2 == 0)
            q.push_own(one, i % task_queue::own_lanes);
          else
            q.hand(*one[0], i);
        }
        const std::size_t n =
            q.take_batch(got, nullptr, {.own = i % task_queue::own_lanes, .is_own = turn % 4 != 0, .turn = turn});
        ++turn;
        for (std::size_t k = 0; k < n; ++k) got[k]->access_count += 1;
        taken += n;
        if (n == 0) std::this_thread::yield();
      }
    });
  for (std::thread& t : running) t.join();
  EXPECT_TRUE(q.empty());
  EXPECT_FLOAT_EQ(q.stealable_ns(), 0);
  for (const auto& of_one : all)
    for (const task_record* t : of_one) ASSERT_EQ(t->access_count, 1);
}

}  // namespace
