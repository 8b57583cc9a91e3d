// What this file is for: the order in which tasks leave for a device, and what is known of the next use of tiles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/lookahead_queue.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/residency.hpp"

namespace {

using troupe::access_mode;
using troupe::detail::array_core;
using troupe::detail::task_record;
using troupe::logic::lookahead_queue;
using troupe::logic::replica;
using troupe::logic::residency;

class outlook_of : public testing::Test {
 protected:
  outlook_of() { array_.id = 7; }
  /// A task that reads these tiles.
  task_record* task(std::uint64_t sequence, std::initializer_list<std::uint32_t> tiles) {
    task_record& t = tasks_.emplace_back();
    t.sequence = sequence;
    t.accesses = t.own_accesses.data();
    for (const std::uint32_t tile : tiles) {
      troupe::detail::access& x = t.accesses[t.access_count++];
      x.array = &array_;
      x.tile = tile;
      x.mode = access_mode::read;
    }
    return &t;
  }
  std::uint64_t next(std::uint32_t tile) const {
    const lookahead_queue::turn* t = queue_.next_use(array_.id, tile);
    return t ? t->sequence : 0;
  }
  replica copy_of(std::uint32_t tile) {
    replica r;
    r.array = &array_;
    r.array_id = array_.id;
    r.tile = tile;
    return r;
  }
  replica* victim() {
    return cache_.victim([](const replica&) { return true; },
                         [&](const replica& r) { return queue_.next_use(r.array_id, r.tile); });
  }

  array_core array_;
  std::deque<task_record> tasks_;
  lookahead_queue queue_;
  residency cache_;
};

TEST_F(outlook_of, is_a_plain_queue_until_it_looks_ahead) {
  task_record *a = task(3, {1}), *b = task(1, {1});
  queue_.push(a, 0);
  queue_.push(b, 0);
  EXPECT_EQ(next(1), 0u);
  EXPECT_EQ(queue_.pop(), a);
  EXPECT_EQ(queue_.pop(), b);
  EXPECT_EQ(queue_.pop(), nullptr);
}

TEST_F(outlook_of, looking_ahead_gives_tasks_in_program_order_and_those_of_higher_priority_first) {
  task_record *a = task(3, {}), *b = task(1, {}), *c = task(9, {}), *d = task(2, {});
  queue_.push(a, 0);
  queue_.push(b, 0);
  queue_.look_ahead();
  queue_.push(c, 1);
  queue_.push(d, 0);
  EXPECT_EQ(queue_.size(), 4u);
  for (task_record* t : {c, b, d, a}) EXPECT_EQ(queue_.pop(), t);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(outlook_of, knows_the_first_task_that_uses_a_tile) {
  queue_.look_ahead();
  queue_.push(task(5, {1, 2}), 0);
  queue_.push(task(8, {1, 3}), 0);
  queue_.push(task(6, {3, 3}), 0);
  EXPECT_EQ(next(1), 5u);
  EXPECT_EQ(next(3), 6u);
  EXPECT_EQ(next(4), 0u);
  queue_.pop();
  EXPECT_EQ(next(2), 5u) << "the one that is being started has a right to its tiles";
  queue_.pop();
  EXPECT_EQ(next(1), 8u);
  EXPECT_EQ(next(2), 0u);
}

TEST_F(outlook_of, a_task_that_could_not_be_started_comes_first_again) {
  queue_.look_ahead();
  queue_.push(task(5, {1}), 0);
  queue_.push(task(6, {1}), 0);
  task_record* const first = queue_.pop();
  queue_.push_front(first, 0);
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(queue_.pop(), first);
  queue_.pop();
  EXPECT_EQ(next(1), 6u);
  EXPECT_EQ(queue_.pop(), nullptr);
  EXPECT_EQ(next(1), 0u);
}

TEST_F(outlook_of, what_is_taken_out_is_no_use_any_more) {
  queue_.look_ahead();
  task_record *a = task(5, {1}), *b = task(6, {2}), *c = task(7, {1});
  for (task_record* t : {a, b, c}) queue_.push(t, 0);
  std::vector<task_record*> taken;
  queue_.take_newest(
      2, [&](const task_record* t) { return t != b; }, [&](task_record* t) { taken.push_back(t); });
  EXPECT_EQ(taken, (std::vector<task_record*>{c, a}));
  EXPECT_EQ(next(1), 0u);
  EXPECT_EQ(next(2), 6u);
  EXPECT_EQ(queue_.pop(), b);
}

TEST_F(outlook_of, is_plain_again_after_a_rest) {
  queue_.look_ahead();
  queue_.push(task(5, {1}), 0);
  queue_.pop();
  queue_.rest();
  EXPECT_EQ(next(1), 0u);
  task_record *a = task(9, {1}), *b = task(8, {1});
  queue_.push(a, 0);
  queue_.push(b, 0);
  EXPECT_EQ(queue_.pop(), a);
}

TEST_F(outlook_of, the_copy_that_goes_is_one_that_nobody_needs_else_the_one_that_is_needed_last) {
  queue_.look_ahead();
  queue_.push(task(1, {10}), 0);
  queue_.push(task(2, {11}), 0);
  queue_.push(task(3, {10, 12}), 0);
  for (const std::uint32_t tile : {10u, 12u, 11u, 13u}) cache_.add(copy_of(tile));
  EXPECT_EQ(victim()->tile, 13u);
  cache_.erase(*victim());
  EXPECT_EQ(victim()->tile, 12u);
  ++cache_.find(7, 12)->pins;
  EXPECT_EQ(victim()->tile, 11u);
  cache_.find(7, 11)->leaving = true;
  EXPECT_EQ(victim()->tile, 10u);
  ++cache_.find(7, 10)->pins;
  EXPECT_EQ(victim(), nullptr);
}

}  // namespace
