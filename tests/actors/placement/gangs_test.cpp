// What this file is for: parts of runs over several nodes go together, and in one order on all nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/gangs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "loose_graph.hpp"

namespace {

using namespace test;
using enum troupe::access_mode;

constexpr std::uint16_t here = run_gang::no_node, b = 1, c = 2;

/// Runs of graphs with a part here and on two nodes, of which this test plays the executors.
class gangs_of_parts : public testing::Test, protected loose_graph {
 protected:
  gangs_of_parts() : runs(order.graph()) { order.graph().note_predecessors(&found); }

  /// A run; its parts are ordered one after the other by `order_part`.
  struct run {
    std::vector<task_record*> parts;
    task_record* join;
  };
  /// Makes a run whose part i uses the tiles uses[i], on the node at[i].
  run make(const std::vector<std::vector<use>>& uses, const std::vector<std::uint16_t>& at) {
    const auto gang = std::make_shared<run_gang>();
    run r{.parts = {}, .join = task({})};
    r.join->kind = task_kind::join;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      task_record* const t = task(uses[i]);
      gang->add(*t, at[i]);
      extra(t).gang = gang;
      r.parts.push_back(t);
    }
    return r;
  }
  /// Orders a task as placement does.
  void come(task_record* t) {
    std::vector<task_record*> combines;
    found.clear();
    order.order(*t, combines);
    runs.ordered(*t, found);
    if (--t->pending == 0) make_ready(t);
    go_on();
  }
  run submit(const std::vector<std::vector<use>>& uses, const std::vector<std::uint16_t>& at) {
    const run r = make(uses, at);
    for (task_record* t : r.parts) come(t);
    for (task_record* t : r.parts) order.graph().link({t, t->sequence}, *r.join, false);
    come(r.join);
    return r;
  }
  task_record* plain(const std::vector<use>& uses) {
    task_record* const t = task(uses);
    come(t);
    return t;
  }
  /// Ends a task that has been given to its executor.
  void end(task_record* t) {
    runs.retires(*t);
    gone.erase(t);
    const std::vector<task_record*> ready = retire(t);
    for (task_record* next : ready) make_ready(next);
    for (task_record* next : still_wait) runs.waits_for_fewer(*next);
    go_on();
  }
  /// An access that has its task wait for another one.
  static troupe::detail::access after(task_record* t) {
    troupe::detail::access x{};
    x.link = link_mode::order;
    x.task = t;
    t->references.fetch_add(1);
    return x;
  }
  void make_ready(task_record* t) {
    if (runs.may_go(*t, true)) go(t);
  }
  void go(task_record* t) {
    gone.insert(t);
    if (keeps_data_from_c && gangs::is_part(*t) && t->executor == c) return;
    runs.given(*t);
    given.push_back(t);
  }
  void go_on() {
    while (runs.has_due()) {
      const gangs::due d = runs.take_due();
      if (d.is_ready)
        make_ready(d.part);
      else if (d.part->pending > 0 && runs.may_go(*d.part, false))
        may_follow.push_back(d.part);
    }
  }
  bool has_gone(task_record* t) const { return gone.contains(t); }
  using tasks = std::vector<task_record*>;

  std::vector<troupe::logic::task_graph::edge> found;
  gangs runs;
  std::set<task_record*> gone;
  tasks given, may_follow;
  bool keeps_data_from_c = false;
};

TEST_F(gangs_of_parts, no_part_goes_before_all_are_ready) {
  array_core *const x = array("x"), *const y = array("y");
  task_record* const before = plain({{x, write}});
  const run r = submit({{{x, update}}, {{y, update}}}, {here, b});
  EXPECT_FALSE(has_gone(r.parts[1]));
  end(before);
  EXPECT_TRUE(has_gone(r.parts[0]));
  EXPECT_TRUE(has_gone(r.parts[1]));
}

TEST_F(gangs_of_parts, a_part_is_not_kept_for_runs_that_have_gone) {
  array_core *const x = array("x"), *const y = array("y");
  const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
  const run second = submit({{{x, update}}, {{y, update}}}, {here, b});
  // The second run's part may be sent behind the first one's on its node, and goes as soon as that has ended, not when all parts have.
  EXPECT_EQ(may_follow, tasks({second.parts[1]}));
  EXPECT_FALSE(has_gone(second.parts[1]));
  end(first.parts[1]);
  EXPECT_TRUE(has_gone(second.parts[1]));
  EXPECT_FALSE(has_gone(second.parts[0]));
  end(first.parts[0]);
  EXPECT_TRUE(has_gone(second.parts[0]));
}

// A run is far behind where it waits for the end of one: others are not to wait for it.
TEST_F(gangs_of_parts, what_waits_for_the_join_of_a_run_is_kept_until_that_has_ended) {
  array_core *const x = array("x"), *const y = array("y");
  const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
  const run second = make({{}, {{y, update}}}, {here, b});
  second.parts[0]->accesses[second.parts[0]->access_count++] = after(first.join);
  for (task_record* t : second.parts) come(t);
  come(second.join);
  const run other = submit({{}, {}}, {here, b});
  EXPECT_TRUE(has_gone(other.parts[1]));
  end(first.parts[0]);
  EXPECT_TRUE(may_follow.empty());
  end(first.parts[1]);
  EXPECT_FALSE(has_gone(second.parts[1]));
  end(first.join);
  EXPECT_TRUE(has_gone(second.parts[0]));
  EXPECT_TRUE(has_gone(second.parts[1]));
}

TEST_F(gangs_of_parts, a_run_that_waits_for_one_that_waits_goes_with_it) {
  array_core *const x = array("x"), *const y = array("y"), *const z = array("z");
  task_record* const before = plain({{x, write}});
  const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
  const run second = submit({{{y, update}}, {{z, update}}}, {b, c});
  EXPECT_FALSE(has_gone(second.parts[1]));
  end(before);
  EXPECT_TRUE(has_gone(first.parts[1]));
  EXPECT_TRUE(has_gone(second.parts[1]));
  EXPECT_EQ(may_follow, tasks({second.parts[0]}));
}

TEST_F(gangs_of_parts, a_task_between_two_runs_keeps_the_second) {
  array_core *const x = array("x"), *const y = array("y");
  const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
  task_record* const between = plain({{x, update}});
  const run second = submit({{{x, update}}, {{y, update}}}, {here, b});
  end(first.parts[1]);
  EXPECT_FALSE(has_gone(second.parts[1]));
  end(first.parts[0]);
  EXPECT_FALSE(has_gone(second.parts[1]));
  end(between);
  EXPECT_TRUE(has_gone(second.parts[0]));
  EXPECT_TRUE(has_gone(second.parts[1]));
}

// What waits at c for what came earlier waits for runs that were released earlier.
TEST_F(gangs_of_parts, each_node_is_given_parts_in_the_order_of_their_runs) {
  array_core *const x = array("x"), *const y = array("y"), *const z = array("z");
  const run first = submit({{{x, update}}, {{y, update}}}, {b, c});
  const run second = submit({{{z, update}}, {{y, update}}}, {b, c});  // its part on c waits for the first one's
  const run third = submit({{}, {}}, {b, c});
  EXPECT_TRUE(has_gone(second.parts[0]));
  EXPECT_TRUE(has_gone(third.parts[0]));
  EXPECT_FALSE(has_gone(third.parts[1]));
  end(first.parts[1]);
  EXPECT_TRUE(has_gone(second.parts[1]));
  EXPECT_TRUE(has_gone(third.parts[1]));
  const auto at = [&](task_record* t) { return std::ranges::find(given, t); };
  EXPECT_LT(at(second.parts[1]), at(third.parts[1]));
}

TEST_F(gangs_of_parts, a_part_that_waits_for_data_keeps_its_place) {
  const run first = make({{}, {}}, {b, c});
  first.parts[1]->executor = c;
  keeps_data_from_c = true;
  for (task_record* t : first.parts) come(t);
  come(first.join);
  const run second = submit({{}, {}}, {b, c});
  EXPECT_TRUE(has_gone(first.parts[1]));
  EXPECT_TRUE(has_gone(second.parts[0]));
  EXPECT_FALSE(has_gone(second.parts[1]));
  runs.given(*first.parts[1]);
  go_on();
  EXPECT_TRUE(has_gone(second.parts[1]));
}

TEST_F(gangs_of_parts, a_part_waits_for_tasks_beside_runs_that_have_gone) {
  for (const bool task_ends_first : {false, true}) {
    array_core *const x = array("x"), *const y = array("y"), *const z = array("z"), *const v = array("v");
    const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
    task_record* const between = plain({{v, write}});
    const run second = submit({{{x, update}, {v, update}}, {{z, update}}}, {here, c});
    EXPECT_FALSE(has_gone(second.parts[1]));
    end(task_ends_first ? between : first.parts[0]);
    EXPECT_EQ(has_gone(second.parts[1]), task_ends_first);
    end(task_ends_first ? first.parts[0] : between);
    EXPECT_TRUE(has_gone(second.parts[0]));
    EXPECT_TRUE(has_gone(second.parts[1]));
  }
}

TEST_F(gangs_of_parts, a_part_that_comes_back_gets_its_place_again) {
  array_core *const x = array("x"), *const y = array("y");
  const run first = submit({{{x, update}}, {{y, update}}}, {b, c});
  const run second = submit({{{x, update}}, {{y, update}}}, {b, c});
  const run third = submit({{{x, update}}, {{y, update}}}, {b, c});
  for (const run* r : {&second, &third}) runs.given(*r->parts[0]);  // behind the first one
  go_on();
  runs.came_back(*third.parts[0]);
  runs.came_back(*second.parts[0]);
  go_on();
  may_follow.clear();
  const run fourth = submit({{}, {}}, {b, c});
  end(first.parts[0]);
  EXPECT_TRUE(has_gone(second.parts[0]));
  EXPECT_EQ(may_follow, tasks({third.parts[0]}));
  EXPECT_FALSE(has_gone(fourth.parts[0]));
  end(second.parts[0]);
  EXPECT_TRUE(has_gone(third.parts[0]));
  EXPECT_TRUE(has_gone(fourth.parts[0]));
}

TEST_F(gangs_of_parts, parts_here_that_hold_quantities_go_in_order_as_well) {
  array_core *const x = array("x"), *const y = array("y");
  const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
  const run second = submit({{{x, update}}, {}}, {run_gang::here_in_order, b});
  const run third = submit({{}, {}}, {run_gang::here_in_order, b});
  EXPECT_TRUE(has_gone(third.parts[1]));
  EXPECT_FALSE(has_gone(third.parts[0]));
  EXPECT_FALSE(runs.has_to_give()) << "to a node";
  end(first.parts[0]);
  EXPECT_TRUE(has_gone(second.parts[0]));
  EXPECT_TRUE(has_gone(third.parts[0]));
}

TEST_F(gangs_of_parts, it_is_known_when_a_part_has_yet_to_be_given_to_its_node) {
  array_core *const x = array("x"), *const y = array("y");
  task_record* const before = plain({{x, write}});
  const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
  EXPECT_FALSE(runs.has_to_give()) << "it has not been released";
  end(before);
  EXPECT_FALSE(runs.has_to_give());
  const run second = submit({{{x, update}}, {{y, update}}}, {here, b});
  EXPECT_TRUE(runs.has_to_give());
  end(first.parts[1]);
  EXPECT_FALSE(runs.has_to_give());
}

TEST_F(gangs_of_parts, who_waits_without_an_edge_is_known) {
  array_core *const x = array("x"), *const y = array("y"), *const z = array("z");
  const auto kept = [&](task_record* from, task_record* to) {
    tasks all;
    runs.add_kept_behind(*from, *to, all);
    return all;
  };
  task_record* const before = plain({{x, write}});
  const run first = submit({{{x, update}}, {{y, update}}}, {here, b});
  EXPECT_EQ(kept(before, first.parts[0]), tasks({first.parts[1]}));
  EXPECT_EQ(kept(first.parts[0], first.parts[0]), tasks());
  EXPECT_EQ(kept(first.parts[0], before), tasks());
  end(before);
  const run second = submit({{{y, update}}, {{z, update}}}, {b, c});
  const run third = submit({{}, {}}, {b, c});
  const run fourth = submit({{}, {}}, {b, c});
  EXPECT_EQ(kept(first.parts[1], first.parts[1]), tasks()) << "it has been given to its node";
  EXPECT_EQ(kept(first.parts[1], second.parts[0]), tasks());
  EXPECT_EQ(kept(second.parts[0], second.parts[0]), tasks({third.parts[0]}));
  EXPECT_EQ(kept(third.parts[0], third.parts[0]), tasks({fourth.parts[0]}));
  EXPECT_EQ(kept(fourth.parts[0], fourth.parts[0]), tasks());
}

// What the released run's part does while it runs does not hold up the other run.
TEST_F(gangs_of_parts, a_run_that_is_kept_does_not_wait_for_runs_that_have_gone) {
  array_core *const x = array("x"), *const y = array("y"), *const v = array("v");
  const run first = submit({{{x, update}}, {}}, {here, b});
  task_record* const other = plain({{v, write}});
  const run second = submit({{{x, update}}, {{y, update}}, {{v, update}}}, {here, b, c});
  tasks kept;
  runs.add_kept_behind(*first.parts[0], *second.parts[0], kept);
  EXPECT_EQ(kept, tasks());
  runs.add_kept_behind(*other, *second.parts[2], kept);
  EXPECT_EQ(kept, tasks({second.parts[0], second.parts[1]}));
}

TEST_F(gangs_of_parts, a_part_that_retires_is_not_due) {
  array_core *const x = array("x"), *const y = array("y");
  task_record* const before = plain({{x, write}});
  const run r = submit({{{x, update}}, {{y, update}}}, {here, b});
  runs.retires(*before);
  for (task_record* t : retire(before)) EXPECT_FALSE(runs.may_go(*t, true));
  ASSERT_TRUE(runs.has_due());
  for (task_record* t : r.parts) {
    runs.retires(*t);
    retire(t);
  }
  EXPECT_FALSE(runs.has_due());
}

TEST_F(gangs_of_parts, a_part_that_has_failed_keeps_no_other) {
  array_core *const x = array("x"), *const y = array("y");
  task_record* const before = plain({{x, write}});
  const run r = submit({{{x, update}}, {{y, update}}}, {here, b});
  const run next = submit({{{y, update}}, {}}, {b, c});
  EXPECT_FALSE(has_gone(next.parts[1]));
  runs.retires(*before);
  for (task_record* t : retire(before, std::make_exception_ptr(1))) {
    EXPECT_EQ(t, r.parts[0]);
    runs.retires(*t);  // it has failed with what it reads, and is never ready
    retire(t);
  }
  go_on();
  EXPECT_TRUE(has_gone(r.parts[1]));
  EXPECT_TRUE(has_gone(next.parts[1]));
  end(r.parts[1]);
  EXPECT_TRUE(has_gone(next.parts[0]));
}

TEST_F(gangs_of_parts, parts_that_are_kept_are_given_up_at_the_end) {
  array_core *const x = array("x"), *const y = array("y");
  task_record* const before = plain({{x, write}});
  const run r = submit({{{x, update}}, {{y, update}}}, {here, b});
  tasks dropped;
  runs.drop_kept([&](task_record& t) { dropped.push_back(&t); });
  EXPECT_EQ(dropped, tasks({r.parts[1]}));
  end(r.parts[1]);
  end(before);
  EXPECT_TRUE(has_gone(r.parts[0]));
}

}  // namespace
