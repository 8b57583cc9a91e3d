// What this file is for: runs that threads of several core groups join: which may, whose come first, which are woken.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "actors/execution/open_runs.hpp"
#include "made_graph.hpp"
#include "tests/actors/placement/collector.hpp"

namespace {

using namespace troupe::detail;
using test::made_graph;

/// A group of threads that sleep until they are woken.
class sleepy final : public test::collector {
 public:
  sleepy(std::uint16_t id, int slots, int sleeping) : collector(facts(id, slots)), sleeping_(sleeping) {}
  int sleepers() const override { return sleeping_; }
  void wake_one() override {
    --sleeping_;
    ++woken;
  }
  int woken = 0;

 private:
  static executor_facts facts(std::uint16_t id, int slots) {
    executor_facts f;
    f.id = id;
    f.name = "cpu:" + std::to_string(id);
    f.slots = slots;
    return f;
  }
  int sleeping_;
};

troupe::logic::executor_set set_of(std::initializer_list<std::uint16_t> ids) {
  troupe::logic::executor_set s;
  for (const std::uint16_t id : ids) s.insert(id);
  return s;
}

class open_runs_of_three_groups : public testing::Test {
 protected:
  open_runs_of_three_groups() {
    for (sleepy* const group : {&first, &second, &third}) runs.add(*group);
  }
  sleepy first{0, 2, 2}, second{1, 3, 2}, third{2, 4, 3};
  open_runs runs;
  static constexpr std::uint16_t a = 0, b = 1, c = 2;
  made_graph six{6, {}};
};

TEST_F(open_runs_of_three_groups, are_joined_by_the_groups_in_their_scope_only) {
  graph_run run(six.graph, 4);
  EXPECT_FALSE(runs.any(a));
  runs.open(run, a, set_of({0, 2}));
  EXPECT_TRUE(runs.any(a));
  EXPECT_FALSE(runs.any(b));
  EXPECT_TRUE(runs.any(c));
  EXPECT_TRUE(runs.has_nodes(c, false));
  EXPECT_FALSE(runs.has_nodes(c, true));
  EXPECT_FALSE(runs.has_nodes(b, false));
  EXPECT_EQ(runs.join(b), nullptr);
  graph_run::hand* const hand = runs.join(c);
  ASSERT_NE(hand, nullptr);
  EXPECT_EQ(hand->run, &run);
  std::uint32_t node = 0;
  EXPECT_TRUE(run.next(*hand, node, 0));
  EXPECT_EQ(node, 0u);
  run.finished(*hand, node, true, 1);
  while (run.next(*hand, node, 0)) run.finished(*hand, node, true, 1);
  run.give_hand(*hand);
  run.leave();
  EXPECT_TRUE(run.is_over());
  EXPECT_EQ(runs.join(a), nullptr) << "there are no nodes left";
  runs.close(run);
  for (const std::uint16_t s : {a, b, c}) EXPECT_FALSE(runs.any(s));
  EXPECT_FALSE(runs.has_nodes(a, true));
  run.wait_for_helpers();
}

TEST_F(open_runs_of_three_groups, of_a_group_itself_come_before_those_of_others) {
  made_graph other(2, {});
  graph_run older(six.graph, 4), own(other.graph, 4);
  runs.open(older, a, set_of({0, 1}));
  runs.open(own, b, set_of({0, 1}));
  graph_run::hand* const hand = runs.join(b);
  ASSERT_NE(hand, nullptr);
  EXPECT_EQ(hand->run, &own);
  std::uint32_t node = 0;
  while (own.next(*hand, node, 0)) own.finished(*hand, node, true, 1);
  own.give_hand(*hand);
  own.leave();
  graph_run::hand* const next = runs.join(b);
  ASSERT_NE(next, nullptr) << "its own has no nodes left";
  EXPECT_EQ(next->run, &older);
  older.give_hand(*next);
  older.leave();
  runs.close(older);
  runs.close(own);
}

TEST_F(open_runs_of_three_groups, wake_as_many_threads_of_others_as_are_asked_for_and_sleep) {
  graph_run run(six.graph, 4);
  EXPECT_EQ(runs.slots_of(set_of({0, 1, 2})), 9u);
  EXPECT_EQ(runs.slots_of(set_of({1})), 3u);
  runs.open(run, a, set_of({0, 1}));
  runs.call_others(run, a, 1);
  EXPECT_EQ(second.woken, 1);
  runs.call_others(run, a, 5);
  EXPECT_EQ(second.woken, 2) << "the rest of its threads is awake";
  runs.call_others(run, b, 1);
  EXPECT_EQ(first.woken, 1) << "asked for by a thread that has joined";
  EXPECT_EQ(third.woken, 0) << "it is not in the scope";
  // Without nodes for others nobody is called.
  graph_run::hand& mine = run.take_hand();
  std::uint32_t node = 0;
  while (run.next(mine, node, 0)) run.finished(mine, node, true, 1);
  runs.call_others(run, b, 1);
  EXPECT_EQ(first.woken + second.woken + third.woken, 3);
  run.give_hand(mine);
  runs.close(run);
}

}  // namespace
