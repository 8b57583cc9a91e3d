// What this file is for: edges between tasks, what becomes of them when tasks end meanwhile, and graphs side by side.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/task_graph.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using troupe::detail::task_record;
using troupe::detail::task_ref;
using troupe::logic::task_graph;

/// Tasks that are linked by hand.
class task_graph_test : public testing::Test {
 protected:
  // A task with its number, which one count keeps from being ready: its submission.
  task_record& task(task_graph& g, bool early = false) {
    task_record& t = tasks_.emplace_back();
    if (early) t.marks |= troupe::detail::mark_early;
    t.pending = 1;
    t.sequence = g.next_number();
    return t;
  }
  task_record& task(bool early = false) { return task(graph_, early); }
  static task_ref ref(const task_record& t) { return {const_cast<task_record*>(&t), t.sequence}; }
  // The task comes after these; returns what `link` says of the last.
  bool link_all(task_record& t, std::initializer_list<const task_record*> before, bool data = true) {
    bool linked = false;
    graph_.begin(t);
    for (const task_record* b : before) linked = graph_.link(ref(*b), t, data);
    graph_.end(t);
    return linked;
  }
  // Ends a task; returns those that became ready, and notes the others.
  std::vector<task_record*> retire(task_record& t) {
    std::vector<task_record*> ready;
    failed_.clear();
    fewer_.clear();
    graph_.retire(
        t, t.error != nullptr, [&](task_record& next) { failed_.push_back(&next); }, [&](task_record& next) { ready.push_back(&next); },
        [&](task_record& next) { fewer_.push_back(&next); });
    return ready;
  }
  // As a thread does that has run an early task: what waited for that alone is ready.
  static std::vector<task_record*> release(task_record& t) {
    std::vector<task_record*> ready;
    troupe::detail::release_early(t, [&](task_record& next) { ready.push_back(&next); });
    return ready;
  }
  using list = std::vector<task_record*>;

  task_graph graph_;
  std::deque<task_record> tasks_;
  list failed_, fewer_;
};

TEST_F(task_graph_test, counts_each_predecessor_once_and_is_ready_after_the_last) {
  task_record &a = task(), &b = task(), &c = task();
  EXPECT_TRUE(link_all(c, {&a, &a, &b}));
  EXPECT_EQ(c.pending, 3);
  --c.pending;  // it is submitted
  EXPECT_EQ(retire(a), list{});
  EXPECT_EQ(fewer_, list{&c});
  EXPECT_EQ(retire(b), list{&c});
  EXPECT_EQ(failed_, list{});
}

TEST_F(task_graph_test, links_no_task_to_itself_and_none_to_one_that_has_retired) {
  task_record &a = task(), &b = task();
  const task_ref old = ref(a);
  EXPECT_FALSE(link_all(a, {&a}));
  retire(a);
  EXPECT_FALSE(graph_.alive(old));
  graph_.begin(b);
  EXPECT_FALSE(graph_.link(old, b, true));
  a.sequence = graph_.next_number();  // the record is another task now
  EXPECT_FALSE(graph_.link(old, b, true));
  graph_.end(b);
  EXPECT_EQ(b.pending, 1);
  EXPECT_EQ(a.pending, 1);
}

TEST_F(task_graph_test, fails_those_that_read_what_a_failed_task_was_to_write) {
  task_record &a = task(), &reader = task(), &later = task();
  link_all(reader, {&a}, true);
  link_all(later, {&a}, false);
  --reader.pending;
  --later.pending;
  a.error = std::make_exception_ptr(std::runtime_error("no"));
  EXPECT_EQ(retire(a), (list{&reader, &later}));
  EXPECT_EQ(failed_, list{&reader});
}

TEST_F(task_graph_test, an_edge_that_carries_data_is_added_beside_one_that_does_not) {
  task_record &a = task(), &b = task();
  link_all(b, {&a}, false);
  link_all(b, {&a}, true);
  EXPECT_EQ(b.pending, 3);
  link_all(b, {&a}, false);  // that is known by the other one
  EXPECT_EQ(b.pending, 3);
}

TEST_F(task_graph_test, an_early_task_is_not_ready_while_it_is_linked_whatever_ends) {
  task_record &a = task(true), &b = task(true);
  link_all(a, {});
  --a.pending;
  graph_.begin(b);
  EXPECT_TRUE(graph_.link(ref(a), b, true));
  EXPECT_TRUE(graph_.has_added());
  EXPECT_EQ(release(a), list{});
  graph_.end(b);
  EXPECT_EQ(b.pending, 1) << "its submission";
}

TEST_F(task_graph_test, no_edge_leads_from_a_task_that_has_released_its_successors) {
  task_record &a = task(true), &b = task(true), &c = task();
  link_all(a, {});
  --a.pending;
  graph_.begin(b);
  EXPECT_EQ(release(a), list{});
  EXPECT_FALSE(graph_.link(ref(a), b, true)) << "it has released its successors";
  graph_.end(b);
  EXPECT_EQ(b.pending, 1);
  EXPECT_FALSE(link_all(c, {&a}));
  EXPECT_EQ(c.pending, 1);
  EXPECT_TRUE(graph_.alive(ref(a))) << "it has not retired";
}

TEST_F(task_graph_test, an_edge_that_was_added_too_late_is_taken_back) {
  task_record &a = task(true), &b = task(true), &c = task();
  link_all(a, {});
  for (task_record* const t : {&b, &c}) {
    a.pending = 0;
    graph_.begin(*t);
    ASSERT_TRUE(graph_.link(ref(a), *t, true));
    a.pending = troupe::detail::sealed_from;  // whoever ended it had counted no successor
    graph_.end(*t);
    EXPECT_EQ(t->pending, 1);
  }
}

TEST_F(task_graph_test, hands_an_early_successor_to_the_thread_that_ended_the_last_before_it) {
  task_record &a = task(true), &b = task(true), &c = task(true);
  for (task_record* t : {&a, &b}) {
    link_all(*t, {});
    --t->pending;
  }
  link_all(c, {&a, &b});
  --c.pending;
  EXPECT_EQ(c.pending, 2);
  EXPECT_EQ(release(a), list{});
  EXPECT_EQ(release(b), list{&c});
  EXPECT_EQ(retire(a), list{});
  EXPECT_EQ(retire(b), list{});
}

TEST_F(task_graph_test, goes_beyond_what_a_record_has_room_for) {
  task_record& a = task();
  list all;
  for (int i = 0; i < 100; ++i) {
    task_record& t = task();
    link_all(t, {&a});
    --t.pending;
    all.push_back(&t);
  }
  EXPECT_EQ(retire(a), all);
}

TEST_F(task_graph_test, knows_the_latest_edges) {
  task_record &a = task(), &b = task(), &c = task();
  link_all(c, {&a});
  EXPECT_TRUE(graph_.is_linked(ref(a), c));
  EXPECT_FALSE(graph_.is_linked(ref(b), c));
  EXPECT_FALSE(graph_.is_linked(ref(a), b));
}

TEST_F(task_graph_test, finds_paths_and_no_others) {
  task_record &a = task(), &b = task(), &c = task(), &beside = task();
  link_all(b, {&a});
  link_all(c, {&b});
  EXPECT_TRUE(graph_.reaches(a, c));
  EXPECT_FALSE(graph_.reaches(c, a));
  EXPECT_FALSE(graph_.reaches(a, beside));
  EXPECT_TRUE(graph_.reaches(a, nullptr)) << "any that can be waited for";
  EXPECT_FALSE(graph_.reaches(c, nullptr));
  retire(b);
  EXPECT_FALSE(graph_.reaches(b, c));
}

TEST_F(task_graph_test, notes_edges_also_to_tasks_that_have_ended) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> noted;
  std::vector<task_graph::edge> found;
  graph_.note_edges(&noted);
  graph_.note_predecessors(&found);
  task_record &a = task(), &b = task(), &c = task();
  link_all(b, {&a});
  const task_ref ended = ref(a);
  retire(a);
  graph_.begin(c);
  graph_.link(ended, c, false);
  graph_.link(ref(b), c, false);
  graph_.end(c);
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> all{
      {ended.sequence, b.sequence}, {ended.sequence, c.sequence}, {b.sequence, c.sequence}};
  EXPECT_EQ(noted, all);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].from, &b);
  EXPECT_EQ(found[1].to, &c);
  EXPECT_FALSE(found[1].data);
}

TEST_F(task_graph_test, a_task_of_one_side_comes_after_tasks_of_the_main_graph_and_of_no_other_side) {
  task_graph left(graph_, 1), right(graph_, 2);
  task_record &here = task(), &there = task(left), &other = task(right);
  EXPECT_TRUE(left.may_follow(ref(here)));
  EXPECT_TRUE(left.may_follow(ref(there)));
  EXPECT_FALSE(left.may_follow(ref(other)));
  left.begin(there);
  EXPECT_TRUE(left.link(ref(here), there, true));
  left.end(there);
  EXPECT_EQ(there.pending, 2);
  EXPECT_TRUE(graph_.alive(ref(there)));
  const task_ref gone = ref(other);
  retire(other);
  EXPECT_TRUE(left.may_follow(gone)) << "it has retired";
  retire(here);
}

TEST_F(task_graph_test, forgets_all_records_at_once) {
  task_record& a = task();
  const task_ref r = ref(a);
  graph_.forget_all();
  EXPECT_FALSE(graph_.alive(r));
  EXPECT_TRUE(graph_.alive(ref(task())));
}

}  // namespace
