// What this file is for: which tasks may be ordered aside, and that several sides may come after one task of a turn.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/side_orders.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "actors/logic/data/reduction.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/protocol/successors.hpp"
#include "loose_graph.hpp"

namespace {

using namespace troupe::detail;
using troupe::access_mode;

struct nobody_fails : troupe::logic::dependencies::callbacks {
  task_record* make_combine(array_core&, reduction&) override { return nullptr; }
  void fail(task_record&, std::exception_ptr, bool) override { ++failed; }
  std::atomic<int> failed{0};
};

struct side_orders_test : testing::Test {
  side_orders_test() {
    EXPECT_TRUE(sides.make());
    turns.want(1);
    turns.note_handled(1);
    turns.open();
  }
  // Another generation; all arrays are free again.
  // As if a turn had handled a task that was posted and uses the array.
  void hand_to_anybody(array_core* a) {
    turns.close();
    task_record posted;
    posted.accesses = posted.own_accesses.data();
    posted.accesses[0].array = a;
    posted.access_count = 1;
    turns.note_posted(posted, ++fetch);
    turns.note_handled(fetch);
    turns.open();
  }
  // Returns whether the task is ordered aside, and orders it then.
  bool order_aside(std::size_t side, task_record& t) {
    bool asked = false;
    if (!turns.try_take(side, asked)) return false;
    const bool may = side_orders::is_simple(t) && sides.may_take(turns, side, t);
    if (may) {
      t.marks |= mark_early;
      sides.order(side, t);
    }
    (void)turns.leave(side);
    return may;
  }
  // Retires a task of which the graph does not know, and frees it.
  void end(task_record* t) {
    graph.retire(t);
    recycle(t);
  }
  bool may_order(std::size_t side, const std::vector<test::use>& uses) {
    task_record* const t = graph.task(uses);
    if (!turns.try_take(side, told)) throw std::logic_error("the side turn is held");
    const bool may = side_orders::is_simple(*t) && sides.may_take(turns, side, *t);
    (void)turns.leave(side);
    return may;
  }

  test::loose_graph graph;
  nobody_fails around;
  side_turns turns;
  side_orders sides{around, graph.order};
  std::uint64_t fetch = 1;
  bool told = false;
};

TEST_F(side_orders_test, take_tasks_on_whole_tiles_that_were_written) {
  array_core* const a = graph.array("a");
  EXPECT_TRUE(may_order(0, {{a, access_mode::read}}));
  EXPECT_TRUE(may_order(0, {{a, access_mode::update}}));
  a->single.valid = false;
  EXPECT_FALSE(may_order(0, {{a, access_mode::read}})) << "a turn complains";
  EXPECT_TRUE(may_order(0, {{a, access_mode::write}}));
}

TEST_F(side_orders_test, take_no_task_on_an_array_of_another_side) {
  array_core *const a = graph.array("a"), *const b = graph.array("b");
  EXPECT_TRUE(may_order(0, {{a, access_mode::read}}));
  EXPECT_FALSE(may_order(1, {{a, access_mode::read}}));
  EXPECT_FALSE(may_order(1, {{b, access_mode::update}, {a, access_mode::read}}));
  EXPECT_TRUE(may_order(1, {{b, access_mode::update}}));
}

TEST_F(side_orders_test, take_no_task_on_what_has_failed_or_is_half_done) {
  array_core* const a = graph.array("a");
  a->single.poison = std::make_exception_ptr(std::runtime_error("failed"));
  EXPECT_FALSE(may_order(0, {{a, access_mode::write}}));
  a->single.poison = nullptr;
  a->single.parts = std::make_unique<fragment_list>(a->tile_box(0));
  EXPECT_FALSE(may_order(0, {{a, access_mode::write}}));
  a->single.parts.reset();
  reduction open;
  a->open = &open;
  EXPECT_FALSE(may_order(0, {{a, access_mode::write}}));
  a->open = nullptr;
  EXPECT_TRUE(may_order(0, {{a, access_mode::write}}));
}

TEST_F(side_orders_test, take_no_reduction_no_part_no_future_and_no_priority) {
  array_core* const a = graph.array("a");
  EXPECT_FALSE(may_order(0, {{a, access_mode::reduce}}));
  task_record* const part = graph.task({{a, access_mode::read}});
  region where;
  part->accesses[0].where = &where;
  EXPECT_FALSE(side_orders::is_simple(*part));
  part->accesses[0].where = nullptr;
  EXPECT_TRUE(side_orders::is_simple(*part));
  task_extra more;
  part->extra = &more;
  EXPECT_TRUE(side_orders::is_simple(*part));
  for (const int priority : {-1, 1}) {
    more.options.priority = priority;
    EXPECT_FALSE(side_orders::is_simple(*part)) << "threads that hand tasks over do so in their order";
  }
  part->extra = nullptr;
  part->accesses[0].array = nullptr;
  EXPECT_FALSE(side_orders::is_simple(*part));
  part->accesses[0].array = a;
}

TEST_F(side_orders_test, take_no_task_behind_unfinished_ones_of_another_side) {
  array_core* const a = graph.array("a");
  task_record* const first = graph.task({{a, access_mode::update}});
  first->pending = 1;
  ASSERT_TRUE(order_aside(0, *first));
  hand_to_anybody(a);
  EXPECT_FALSE(may_order(1, {{a, access_mode::read}}));
  graph.retire(first);
  hand_to_anybody(a);
  EXPECT_TRUE(may_order(1, {{a, access_mode::read}}));
}

TEST_F(side_orders_test, take_no_writer_behind_unfinished_readers_of_another_side) {
  array_core* const a = graph.array("a");
  task_record* const reader = graph.task({{a, access_mode::read}});
  reader->pending = 1;
  ASSERT_TRUE(order_aside(0, *reader));
  hand_to_anybody(a);
  EXPECT_FALSE(may_order(1, {{a, access_mode::write}}));
  hand_to_anybody(a);
  EXPECT_TRUE(may_order(1, {{a, access_mode::read}})) << "readers do not wait for each other";
  graph.retire(reader);
}

TEST_F(side_orders_test, put_tasks_behind_those_of_turns) {
  array_core* const a = graph.array("a");
  task_record* const first = graph.ordered({{a, access_mode::update}});
  task_record* const next = graph.task({{a, access_mode::update}});
  next->pending = 1;
  ASSERT_TRUE(order_aside(2, *next));
  EXPECT_EQ(next->pending, 2);
  graph.retire(first);
  EXPECT_EQ(next->pending, 1);
  graph.retire(next);
}

TEST_F(side_orders_test, number_tasks_in_series_and_go_on_from_the_same_number) {
  array_core *const a = graph.array("a"), *const b = graph.array("b");
  std::vector<task_record*> all;
  for (int i = 0; i < 5; ++i) all.push_back(graph.task({{a, access_mode::read}}));
  all.push_back(graph.task({{b, access_mode::read}}));
  for (task_record* t : all) t->pending = 1;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(order_aside(0, *all[static_cast<std::size_t>(i)]));
  ASSERT_TRUE(order_aside(1, *all[5]));
  EXPECT_NE(all[0]->sequence, all[5]->sequence);
  EXPECT_EQ(number_of(all[0]->sequence), number_of(all[5]->sequence));
  EXPECT_EQ(sides.ordered(), 6u);
  const std::uint64_t last = sides.even_out();
  EXPECT_EQ(last, number_of(all[4]->sequence));
  EXPECT_EQ(graph.order.graph().next_number(), last + 1);
  for (task_record* t : all) graph.retire(t);
}

TEST_F(side_orders_test, forget_records_of_all_sides) {
  array_core* const a = graph.array("a");
  task_record* const t = graph.task({{a, access_mode::update}});
  t->pending = 1;
  ASSERT_TRUE(order_aside(0, *t));
  EXPECT_TRUE(graph.order.graph().alive({t, t->sequence}));
  const std::uint64_t sequence = t->sequence;
  graph.retire(t);
  sides.forget_all();
  t->sequence = sequence;  // memory that is something else now
  EXPECT_FALSE(graph.order.graph().alive({t, sequence}));
  hand_to_anybody(a);
  EXPECT_TRUE(may_order(1, {{a, access_mode::update}}));
  t->sequence = 0;
}

TEST(side_orders, do_not_look_at_records_that_were_forgotten_before_they_existed) {
  test::loose_graph graph;
  array_core* const a = graph.array("a");
  task_record* const t = graph.ordered({{a, access_mode::update}});
  const std::uint64_t sequence = t->sequence;
  graph.retire(t);
  nobody_fails around;
  side_orders sides{around, graph.order};
  sides.forget_all();
  t->sequence = sequence;  // memory that is something else now
  ASSERT_TRUE(sides.make());
  side_turns turns;
  turns.want(1);
  turns.note_handled(1);
  turns.open();
  task_record* const next = graph.task({{a, access_mode::read}});
  next->pending = 1;
  bool told = false;
  ASSERT_TRUE(turns.try_take(0, told));
  ASSERT_TRUE(sides.may_take(turns, 0, *next));
  sides.order(0, *next);
  EXPECT_FALSE(turns.leave(0));
  EXPECT_EQ(next->pending, 1) << "it comes after nothing";
  t->sequence = 0;
  graph.retire(next);
}

// Each side adds successors to the same tasks while another thread ends these: each is released once, or was not added.
TEST_F(side_orders_test, of_several_may_add_to_a_task_that_ends_meanwhile) {
  constexpr std::size_t count = 4, rounds = 3'000, each = 6;
  std::vector<array_core*> arrays;
  std::vector<test::use> all_of_them;
  for (std::size_t i = 0; i < count; ++i)
    all_of_them.push_back({arrays.emplace_back(graph.array("a")), access_mode::update});
  for (std::size_t round = 0; round < rounds; ++round) {
    turns.close();
    task_record* const first = test::plain_task(*graph.rt, all_of_them, {});
    first->marks |= mark_early;
    first->pending = 1;
    std::vector<task_record*> made;
    graph.order.order(*first, made);
    first->pending = 0;
    std::vector<std::vector<task_record*>> next(count);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < each; ++k) {
        next[i].push_back(test::plain_task(*graph.rt, {{arrays[i], access_mode::read}}, {}));
        next[i].back()->pending = 1;
      }
    turns.want(1);
    turns.note_handled(1);
    turns.open();
    std::atomic<int> refused{0}, released{0};
    std::latch start(count + 1);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        for (task_record* t : next[i])
          if (!order_aside(i, *t)) ++refused;
      });
    start.arrive_and_wait();
    for (std::size_t spin = 0; spin < round % 64; ++spin) spin_lock::pause();
    EXPECT_FALSE(release_early(*first, [&](task_record&) { ++released; }));
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(released, 0) << "each has its own count, too";
    for (const auto& some : next)
      for (task_record* t : some) EXPECT_EQ(t->pending, 1) << "released once, or not added";
    turns.close();
    for (auto& some : next)
      for (task_record* t : some) end(t);
    end(first);
    turns.open();
  }
  EXPECT_EQ(around.failed, 0);
}

}  // namespace
