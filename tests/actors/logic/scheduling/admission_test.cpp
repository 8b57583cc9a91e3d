// What this file is for: where a task gets the quantities that it asks for, here or on a node, and that they come back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/admission.hpp"

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

// The node itself has two of A, and B; node b four of A, node c one of C.
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
  admission::eligible_nodes where{true, set_of({b, c}), set_of({b, c})};
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
  all.finished(t);  // of a node that is gone
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

// Two of one thing here; times in milliseconds, and how long each is predicted to take.
class admission_over_time : public testing::Test {
 protected:
  ~admission_over_time() override {
    for (task_record& t : tasks_) delete t.extra;
  }
  task_record& queued(double amount, std::uint64_t lasts, int priority = 0, std::string name = "thing") {
    task_record& t = tasks_.emplace_back();
    t.extra = new detail::task_extra;
    t.extra->options.resources = {{std::move(name), amount}};
    t.extra->options.priority = priority;
    t.measured_ns = static_cast<float>(lasts);
    all.queue(t);
    return t;
  }
  std::vector<task_record*> admit(std::uint64_t now) {
    std::vector<task_record*> started;
    all.admit(
        now, [](const task_record&) { return admission::eligible_nodes{}; },
        [&](task_record& t) { started.push_back(&t); }, [](task_record&) { FAIL(); },
        [](const task_record& t) { return static_cast<std::uint64_t>(t.measured_ns); },
        [&](const task_record&, const held_device& d) { return d.name == near ? 0u : 1'000u; });
    return started;
  }

  admission all{{{"thing", 2}, {"other", 1}}, 1000, 1};
  std::string near;

 private:
  std::deque<task_record> tasks_;
};

TEST_F(admission_over_time, begins_a_large_one_of_high_priority_under_a_stream_of_small_ones) {
  std::deque<std::pair<std::uint64_t, task_record*>> running;
  for (int i = 0; i < 4; ++i) queued(1, 20);
  for (task_record* t : admit(0)) running.push_back({20, t});
  task_record* large = nullptr;
  for (std::uint64_t now = 5; now < 2000; now += 5) {
    if (now == 100) large = &queued(2, 20, 100);
    while (!running.empty() && running.front().first <= now) {
      all.finished(*running.front().second);
      running.pop_front();
      queued(1, 20);  // by those that waited for it
    }
    for (task_record* t : admit(now)) {
      running.push_back({now + 20, t});
      if (t != large) continue;
      EXPECT_LE(now, 140u);
      return;
    }
    all.look_again();
  }
  FAIL() << "it never began";
}

TEST_F(admission_over_time, lets_those_pass_that_end_before_it_begins) {
  task_record& holder = queued(1, 100);
  admit(0);
  task_record& large = queued(2, 10, 1);
  task_record& small = queued(1, 50);
  task_record& longer = queued(1, 150);
  EXPECT_THAT(admit(10), ElementsAre(&small));
  all.finished(small);
  EXPECT_THAT(admit(60), IsEmpty());
  EXPECT_EQ(all.due(), 100u) << "then it is known whether the prediction was right";
  all.finished(holder);
  EXPECT_THAT(admit(99), ElementsAre(&large));
  all.finished(large);
  EXPECT_THAT(admit(109), ElementsAre(&longer));
}

TEST_F(admission_over_time, is_held_up_by_no_number_of_those_that_want_something_else) {
  task_record& holder = queued(2, 10);
  EXPECT_THAT(admit(0), ElementsAre(&holder));
  for (int i = 0; i < 1000; ++i) queued(1, 10);
  task_record& other = queued(1, 10, 0, "other");
  EXPECT_THAT(admit(1), ElementsAre(&other));
}

TEST_F(admission_over_time, takes_those_out_that_were_cancelled_behind_one_that_waits) {
  task_record& holder = queued(2, 10);
  EXPECT_THAT(admit(0), ElementsAre(&holder));
  queued(1, 10);
  task_record& cancelled = queued(1, 10);
  cancelled.phase.store(detail::phase_done);
  EXPECT_THAT(admit(1), ElementsAre(&cancelled));
}

TEST_F(admission_over_time, gives_the_device_to_which_least_has_to_be_brought) {
  for (const int i : {0, 1, 2, 3})
    all.add_device({"sim:" + std::to_string(i), device_kind::sim, i}, static_cast<std::uint16_t>(i / 2));
  for (const char* const where : {"sim:3", "sim:1", "sim:2", "sim:0"}) {
    near = where;
    task_record& t = queued(1, 10, 0, "gpu");
    EXPECT_THAT(admit(0), ElementsAre(&t));
    EXPECT_EQ(t.extra->devices.at(0).name, where);
    all.finished(t);
  }
  near = "sim:3";
  for (const char* const where : {"sim:3", "sim:0", "sim:1"}) {
    task_record& t = queued(1, 10, 0, "gpu");
    EXPECT_THAT(admit(0), ElementsAre(&t));
    EXPECT_EQ(t.extra->devices.at(0).name, where) << "the next card is free, then what is left there";
  }
}

TEST_F(admission_over_time, gives_idle_devices_to_short_tasks_while_a_pair_waits) {
  for (const int i : {0, 1})
    all.add_device({"sim:" + std::to_string(i), device_kind::sim, i}, static_cast<std::uint16_t>(i));
  task_record& holder = queued(1, 1000, 0, "gpu");
  admit(0);
  task_record& pair = queued(2, 10, 0, "gpu");
  for (std::uint64_t now = 1; now < 900; now += 10) {
    task_record& small = queued(1, 1, 0, "gpu");
    EXPECT_THAT(admit(now), ElementsAre(&small));
    all.finished(small);
  }
  task_record& longer = queued(1, 500, 0, "gpu");
  EXPECT_THAT(admit(900), IsEmpty());
  all.finished(holder);
  EXPECT_THAT(admit(1000), ElementsAre(&pair));
  all.finished(pair);
  EXPECT_THAT(admit(1010), ElementsAre(&longer));
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
