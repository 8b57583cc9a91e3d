// What this file is for: where a task gets the quantities that it asks for, here or on a node, and that they come back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>

#include <troupe/error.hpp>

namespace {

using namespace troupe;
using detail::holds_here;
using detail::holds_nowhere;
using detail::task_record;
using logic::admission;
using logic::executor_set;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint16_t b = 1, c = 2;

// This node has two of A, and B; node b four of A, node c one of C.
class admission_among_nodes : public testing::Test {
 protected:
  admission_among_nodes() {
    all.add_node(b, {{"A", 4}});
    all.add_node(c, {{"C", 1}});
  }
  ~admission_among_nodes() override {
    for (task_record& t : tasks_) delete t.extra;
  }

  task_record& queued(std::vector<resource> asks, int priority = 0) {
    task_record& t = tasks_.emplace_back();
    t.extra = new detail::task_extra;
    t.extra->options.resources = std::move(asks);
    t.extra->options.priority = priority;
    all.queue(t);
    return t;
  }
  // Where those that can go have gone.
  std::vector<std::uint16_t> admit() {
    std::vector<std::uint16_t> to;
    refused.clear();
    all.admit(
        0, [&](const task_record&) { return where; }, [&](task_record& t) { to.push_back(t.extra->holds_at); },
        [&](task_record& t) { refused.push_back(&t); });
    return to;
  }
  static executor_set set_of(std::initializer_list<std::uint16_t> ids) {
    executor_set s;
    for (const std::uint16_t id : ids) s.insert(id);
    return s;
  }
  double free_here() const { return all.free().at(0).amount; }

  admission all{{{"A", 2}, {"B", 1}}};
  admission::places where{true, set_of({b, c}), set_of({b, c})};
  std::vector<task_record*> refused;

 private:
  std::deque<task_record> tasks_;
};

TEST_F(admission_among_nodes, takes_where_the_largest_part_is_left_and_here_where_that_is_the_same) {
  for (int i = 0; i < 7; ++i) queued({{"A", 1}});
  // 3/4 at b are more than 1/2 here; 1/2 of both; then 1/4 against 1/2 ...
  EXPECT_THAT(admit(), ElementsAre(b, holds_here, b, b, holds_here, b)) << "the seventh has to wait";
  EXPECT_EQ(free_here(), 0);
  EXPECT_THAT(refused, IsEmpty());
}

TEST_F(admission_among_nodes, gives_back_to_whom_it_was_taken_from) {
  task_record& there = queued({{"A", 3}});
  task_record& here = queued({{"A", 2}});
  queued({{"A", 4}});
  EXPECT_THAT(admit(), ElementsAre(b, holds_here));
  all.finished(here);
  EXPECT_EQ(free_here(), 2);
  EXPECT_THAT(admit(), IsEmpty()) << "four are only at b";
  all.finished(there);
  EXPECT_EQ(there.extra->holds_at, holds_nowhere);
  EXPECT_THAT(admit(), ElementsAre(b));
}

TEST_F(admission_among_nodes, keeps_to_where_a_task_may_run) {
  where = {false, set_of({b}), set_of({b})};
  queued({{"A", 1}});
  EXPECT_THAT(admit(), ElementsAre(b));
  where = {true, {}, {}};
  queued({{"A", 1}});
  EXPECT_THAT(admit(), ElementsAre(holds_here));
}

TEST_F(admission_among_nodes, waits_for_a_node_that_takes_nothing_for_now) {
  where.open = {};
  queued({{"A", 3}});
  EXPECT_THAT(admit(), IsEmpty());
  EXPECT_THAT(refused, IsEmpty());
  where.open = set_of({b});
  all.look_again();
  EXPECT_THAT(admit(), ElementsAre(b));
}

TEST_F(admission_among_nodes, refuses_what_nobody_has_any_more) {
  task_record& t = queued({{"C", 1}});
  task_record& later = queued({{"C", 1}});
  EXPECT_THAT(admit(), ElementsAre(c));
  EXPECT_THAT(refused, IsEmpty());
  all.remove_node(c);
  EXPECT_THAT(admit(), IsEmpty());
  EXPECT_THAT(refused, ElementsAre(&later));
  all.finished(t);  // of somebody who is gone
  all.add_node(c, {{"C", 1}});
  queued({{"C", 1}});
  queued({{"C", 1}});
  EXPECT_THAT(admit(), ElementsAre(c)) << "one is there, not two";
}

TEST_F(admission_among_nodes, asks_for_all_of_one_request_in_one_place) {
  queued({{"A", 1}, {"B", 1}});
  queued({{"A", 1}, {"B", 1}});
  queued({{"A", 1}, {"C", 1}});
  EXPECT_THAT(admit(), ElementsAre(holds_here));
  EXPECT_EQ(refused.size(), 1u) << "A and C are nowhere together";
}

TEST_F(admission_among_nodes, binds_nobody_who_asks_for_one_slot_only) {
  queued({{"cpu", 0}});
  queued({{"cpu", 2}});
  EXPECT_THAT(admit(), ElementsAre(holds_nowhere, holds_here));
}

TEST_F(admission_among_nodes, gives_to_the_higher_priority_first) {
  task_record& low = queued({{"A", 4}});
  task_record& high = queued({{"A", 4}}, 1);
  EXPECT_THAT(admit(), ElementsAre(b));
  EXPECT_EQ(high.extra->holds_at, b);
  EXPECT_EQ(low.extra->holds_at, holds_nowhere);
}

TEST_F(admission_among_nodes, knows_no_end_of_what_there_is_without_end) {
  all.add_node(c, {{"E", std::numeric_limits<double>::infinity()}});
  for (int i = 0; i < 3; ++i) queued({{"E", 1e9}});
  EXPECT_THAT(admit(), ElementsAre(c, c, c));
}

TEST_F(admission_among_nodes, checks_against_all_that_are_there) {
  EXPECT_NO_THROW(all.check({{"A", 4}}));
  EXPECT_NO_THROW(all.check({{"C", 1}}));
  const auto code_of = [&](const std::vector<resource>& asks) {
    try {
      all.check(asks);
    } catch (const error& e) {
      return e.code();
    }
    return errc{};
  };
  EXPECT_EQ(code_of({{"A", 5}}), errc::no_resource);
  EXPECT_EQ(code_of({{"A", 1}, {"C", 1}}), errc::no_resource);
  EXPECT_EQ(code_of({{"A", -1}}), errc::bad_argument);
  EXPECT_EQ(code_of({{"D", 1}}), errc::no_resource);
  all.remove_node(c);
  EXPECT_EQ(code_of({{"C", 1}}), errc::no_resource);
}

}  // namespace
