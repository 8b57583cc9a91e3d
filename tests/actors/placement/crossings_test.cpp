// What this file is for: where a task goes that comes after tasks on several nodes, and what these send it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/crossings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "actors/logic/data/directory.hpp"
#include "loose_graph.hpp"

namespace {

using namespace test;
using enum troupe::access_mode;

/// Cores, and three nodes of which the first two reach each other; a fourth one reaches nobody.
class crossings_between_nodes : public testing::Test, protected loose_graph {
 protected:
  crossings_between_nodes() : assignment(1e9f, 0), crossings(assignment) {
    assignment.add({0, "cpu:0", troupe::device_kind::cpu, 0, 1});
    for (std::uint16_t i = 1; i <= 4; ++i)
      assignment.add({i, "node:" + std::to_string(i), troupe::device_kind::node, i, 1});
    for (const memory_space a : {1, 2, 3})
      for (const memory_space b : {1, 2, 3})
        if (a != b) assignment.connect(a, b);
    offered = troupe::detail::id_set{1, 2, 3, 4};
    for (std::size_t i = 1; i <= 4; ++i) crossings.note_far(i, true);
    order.graph().note_predecessors(&found);
  }
  /// Orders a call that only these executors may run, and counts what it comes after.
  task_record* call(const std::vector<use>& uses, std::initializer_list<int> where, std::uint16_t executor = 0) {
    task_record* const t = task(uses);
    t->kernel = &for_nodes;
    extra(t).executors = where;
    in_order(t);
    t->executor = executor;
    for (const auto& [first, next, data] : found)
      if (next == t && first->executor != 0) crossings.count(*t, *first, data);
    found.clear();
    return t;
  }

  troupe::detail::shown_ids offered;
  kernel_info for_nodes{.name = "for nodes", .key = 92, .kinds = 1, .portable = true, .nodes = &offered};
  troupe::logic::assignment assignment;
  std::vector<troupe::logic::task_graph::edge> found;
  troupe::detail::crossings crossings;
};

TEST_F(crossings_between_nodes, send_a_task_where_only_it_may_run_and_name_what_the_other_writes) {
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  const task_record *here = call({{a, write}}, {1}, 1), *there = call({{b, write}}, {2}, 2);
  task_record* const t = call({{a, read}, {b, read}, {c, write}}, {1});
  ASSERT_TRUE(crossings.has_all(*t));
  const auto plan = crossings.find(*t);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->executor, 1u);
  ASSERT_EQ(plan->boxes.size(), 1u) << "what its own node writes is there";
  const promise& p = plan->boxes[0];
  EXPECT_EQ(p.array, b);
  EXPECT_EQ(p.writer, there->sequence);
  EXPECT_EQ(p.where, b->tile_box(0));
  EXPECT_EQ(p.lender, 2);
  EXPECT_EQ(p.borrower, 1);
  EXPECT_NE(here->sequence, p.writer);
}

TEST_F(crossings_between_nodes, prefer_the_node_with_most_of_the_data) {
  array_core *small = array("small", 2), *large = array("large", 20), *to = array("to");
  call({{small, write}}, {1}, 1), call({{large, write}}, {2}, 2);
  const auto plan = crossings.find(*call({{small, read}, {large, read}, {to, write}}, {1, 2, 3}));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->executor, 2u);
  ASSERT_EQ(plan->boxes.size(), 1u);
  EXPECT_EQ(plan->boxes[0].array, small);
}

TEST_F(crossings_between_nodes, wait_until_all_predecessors_have_been_sent_or_have_ended) {
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  task_record* const first = call({{a, write}}, {1}, 1);
  task_record* const later = call({{b, write}}, {0});  // on cores
  call({{c, write}}, {2}, 2);
  task_record* const t = call({{a, read}, {b, read}, {c, update}}, {2});
  EXPECT_FALSE(crossings.has_all(*t));
  EXPECT_FALSE(crossings.find(*t).has_value());
  retire(later);
  ASSERT_TRUE(crossings.has_all(*t));
  EXPECT_TRUE(crossings.find(*t).has_value());
  crossings.count_not(*t, *first);  // it has been returned
  EXPECT_FALSE(crossings.has_all(*t));
}

TEST_F(crossings_between_nodes, are_between_nodes_that_reach_each_other) {
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  call({{a, write}}, {1}, 1), call({{b, write}}, {4}, 4);
  EXPECT_FALSE(crossings.find(*call({{a, read}, {b, read}, {c, write}}, {1})).has_value());
}

TEST_F(crossings_between_nodes, bring_only_what_is_read) {
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  call({{a, write}, {c, write}}, {1}, 1), call({{b, write}}, {2}, 2);
  EXPECT_FALSE(crossings.find(*call({{a, update}, {b, read}}, {2})).has_value()) << "it changes what the other writes";
  call({{a, write}, {c, write}}, {1}, 1), call({{b, write}}, {2}, 2);
  EXPECT_FALSE(crossings.find(*call({{a, write}, {c, read}, {b, read}}, {2})).has_value()) << "it overwrites it";
}

// Its reader on another node reads a copy; but until that has ended nobody knows that it has come.
TEST_F(crossings_between_nodes, follow_data_and_not_only_order) {
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  call({{a, read}, {c, write}}, {1}, 1);
  call({{b, write}}, {2}, 2);
  EXPECT_FALSE(crossings.find(*call({{a, write}, {b, read}}, {2})).has_value());
  call({{a, read}, {c, write}}, {1}, 1);
  call({{b, write}}, {2}, 2);
  EXPECT_TRUE(crossings.find(*call({{a, write}, {b, read}, {c, read}}, {2})).has_value()) << "it reads c of that task";
}

TEST_F(crossings_between_nodes, are_of_small_boxes) {
  array_core *a = array("a", 513), *b = array("b"), *c = array("c", 512);
  call({{a, write}}, {1}, 1), call({{b, write}}, {2}, 2), call({{c, write}}, {1}, 1);
  EXPECT_FALSE(crossings.find(*call({{a, read}, {b, update}}, {2})).has_value());
  call({{b, write}}, {2}, 2);
  EXPECT_TRUE(crossings.find(*call({{c, read}, {b, update}}, {2})).has_value());
}

TEST_F(crossings_between_nodes, are_not_of_tasks_that_run_once_or_have_come_back) {
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  call({{a, write}}, {1}, 1), call({{b, write}}, {2}, 2);
  task_record* const back = call({{a, read}, {b, read}, {c, write}}, {1});
  EXPECT_TRUE(crossings.find(*back).has_value());
  extra(back).no_pulls = true;
  EXPECT_FALSE(crossings.find(*back).has_value());
  const kernel_info once{
      .name = "once", .key = 93, .kinds = 1, .repeat = purity::once, .portable = true, .nodes = &offered};
  extra(back).no_pulls = false;
  back->kernel = &once;
  EXPECT_FALSE(crossings.find(*back).has_value());
}

TEST_F(crossings_between_nodes, do_not_come_from_who_pulls_what_it_was_not_promised) {
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  task_record* const lends = call({{a, write}}, {1}, 1);
  call({{b, write}}, {2}, 2);
  extra(lends).pulls.push_back({c, 0, 0, 3});
  EXPECT_FALSE(crossings.find(*call({{a, read}, {b, update}}, {2})).has_value());
}

TEST_F(crossings_between_nodes, number_each_box_and_hand_them_out_once) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  call({{a, write}}, {1}, 1), call({{b, write}}, {2}, 2), call({{d, write}}, {3}, 3);
  task_record* const t = call({{a, read}, {b, read}, {d, read}, {c, write}}, {1});
  auto plan = crossings.find(*t);
  ASSERT_TRUE(plan.has_value());
  EXPECT_FALSE(crossings.are_any());
  crossings.send(*t, std::move(plan->boxes));
  EXPECT_TRUE(crossings.are_any());
  EXPECT_FALSE(crossings.has_all(*t)) << "it is not counted any more";
  const std::vector<promise> boxes = crossings.take(*t);
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].number % 2, 1u) << "even numbers are the nodes'";
  EXPECT_EQ(boxes[1].number % 2, 1u);
  EXPECT_NE(boxes[0].number, boxes[1].number);
  EXPECT_TRUE(crossings.take(*t).empty());
}

TEST_F(crossings_between_nodes, are_between_nodes_that_are_far_away) {
  for (std::size_t i = 2; i <= 4; ++i) crossings.note_far(i, false);
  array_core *a = array("a"), *b = array("b");
  call({{a, write}}, {1}, 1), call({{b, write}}, {2}, 2);
  EXPECT_FALSE(crossings.has_all(*call({{a, read}, {b, update}}, {2})));
}

}  // namespace
