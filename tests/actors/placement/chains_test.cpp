// What this file is for: which tasks are sent behind which, and what is counted when one of them comes back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/chains.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "actors/logic/data/directory.hpp"
#include "actors/placement/gangs.hpp"
#include "actors/placement/notifications.hpp"
#include "actors/protocol/chaining.hpp"
#include "collector.hpp"
#include "loose_graph.hpp"

namespace {

using namespace test;
using enum troupe::access_mode;

/// A core group and two devices with memory of their own.
class chains_on_devices : public testing::Test, protected loose_graph {
 protected:
  explicit chains_on_devices(float window_ns = 1e9f, troupe::device_kind kind = troupe::device_kind::cpu)
      : assignment(window_ns, 0), chains(order.graph(), assignment, executors, told, parts, nullptr) {
    offered = troupe::detail::id_set{1, 2};
    for (std::uint16_t i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<collector>(
          executor_facts{i, "executor " + std::to_string(i), i ? kind : troupe::device_kind::cpu, i, 1}));
      executors.push_back(all.back().get());
      assignment.add(all.back()->facts());
      chains.add(i != host_space);
    }
  }
  /// Orders a task that only that device may run, as placement does.
  task_record* on(int device, const std::vector<use>& uses, int priority = 0) {
    task_record* const t = task(uses);
    t->kernel = &for_all;
    extra(t).executors = {device};
    extra(t).options.priority = priority;
    std::vector<task_record*> combines;
    t->pending = 1;
    order.order(*t, combines);
    chains.note_ordered(*t);
    if (--t->pending == 0)
      assignment.assign(*t);
    else
      chains.send_behind(*t);
    return t;
  }
  /// Hands over what is outgoing at a device. Returns what it was given.
  std::vector<task_record*> hand_over(std::size_t device) {
    chains.send_held_back(device);
    for (task_record* t : assignment.outgoing(device))
      if (!(t->marks & mark_chained)) troupe::logic::note_sent(*t, assignment.space_of(*t), false);
    chains.hand_over(device);
    std::vector<task_record*> given = assignment.outgoing(device);
    assignment.sent(device);
    return given;
  }
  /// The device has run the task; true if it retires now.
  bool end(task_record* t, std::exception_ptr why = nullptr) {
    if (claim(*t)) {
      t->error = why;
      t->measured_ns = 1'000;
      fulfil(*t, board);
    }
    if (chains.has_ended_early(*t)) return false;
    assignment.finished(*t);
    troupe::logic::note_done(*t, assignment.space_of(*t));
    chains.note_not_handed(*t);
    for (task_record* next : retire(t)) next->marks &= static_cast<std::uint16_t>(~mark_chained);
    for (task_record* next : still_wait) chains.note_fewer(*next);
    chains.send_fewer();
    return true;
  }
  using tasks = std::vector<task_record*>;

  std::vector<std::unique_ptr<collector>> all;
  std::vector<executor*> executors;
  troupe::detail::shown_ids offered;
  kernel_info for_all{.name = "for all", .key = 92, .kinds = 1, .portable = true, .nodes = &offered};
  troupe::logic::assignment assignment;
  notifications told;
  gangs parts{order.graph()};
  troupe::detail::chains chains;
};

TEST_F(chains_on_devices, are_sent_as_a_whole_with_their_first_task) {
  array_core* const a = array("a");
  task_record *t = on(1, {{a, write}}), *u = on(1, {{a, update}}), *v = on(1, {{a, update}});
  EXPECT_EQ(u->pending, 1);
  EXPECT_EQ(hand_over(1), (tasks{t, u, v}));
  EXPECT_FALSE(t->marks & mark_chained);
  EXPECT_FALSE(is_chained(t->phase));
  for (task_record* b : {u, v}) {
    EXPECT_TRUE(b->marks & mark_chained);
    EXPECT_EQ(epoch_of(b->phase), epoch_mark(0));
  }
}

TEST_F(chains_on_devices, grow_by_tasks_that_are_ordered_while_the_device_works) {
  array_core* const a = array("a");
  task_record* const t = on(1, {{a, write}});
  EXPECT_EQ(hand_over(1), tasks{t});
  task_record* const u = on(1, {{a, update}});
  EXPECT_TRUE(u->marks & mark_chained);
  EXPECT_EQ(hand_over(1), tasks{u});
}

TEST_F(chains_on_devices, have_no_task_that_also_comes_after_one_elsewhere) {
  array_core *a = array("a"), *b = array("b");
  task_record *t = on(1, {{a, write}}), *other = on(2, {{b, write}});
  hand_over(1), hand_over(2);
  task_record* const u = on(1, {{a, update}, {b, update}});
  EXPECT_FALSE(u->marks & mark_chained);
  EXPECT_EQ(u->ahead, 1) << "one of its two predecessors";
  EXPECT_TRUE(end(other));
  EXPECT_FALSE(chains.send_behind(*u)) << "what the other device has written is in the way";
  EXPECT_TRUE(end(t));
  EXPECT_EQ(u->ahead, 0);
}

TEST_F(chains_on_devices, get_a_task_when_all_it_waits_for_elsewhere_has_ended) {
  array_core *a = array("a"), *b = array("b");
  task_record* const here = on(0, {{a, write}});
  task_record* const first = on(1, {{b, write}});
  task_record* const both = on(1, {{a, read}, {b, update}});
  EXPECT_EQ(hand_over(1), (tasks{first}));
  EXPECT_TRUE(assignment.outgoing(1).empty()) << "one of those before it runs elsewhere";
  assignment.sent(0);
  EXPECT_TRUE(end(here));
  EXPECT_EQ(hand_over(1), (tasks{both}));
  EXPECT_TRUE(both->marks & mark_chained);
  EXPECT_TRUE(end(first));
}

TEST_F(chains_on_devices, get_no_task_that_has_failed_by_what_it_waited_for_elsewhere) {
  array_core *a = array("a"), *b = array("b");
  task_record* const here = on(0, {{a, write}});
  task_record* const first = on(1, {{b, write}});
  on(1, {{a, read}, {b, update}});
  EXPECT_EQ(hand_over(1), (tasks{first}));
  assignment.sent(0);
  EXPECT_TRUE(end(here, std::make_exception_ptr(std::runtime_error("it fails"))));
  EXPECT_TRUE(assignment.outgoing(1).empty());
}

TEST_F(chains_on_devices, have_tasks_of_one_priority_only) {
  array_core* const a = array("a");
  task_record *t = on(1, {{a, write}}), *u = on(1, {{a, update}}, 1);
  EXPECT_EQ(hand_over(1), tasks{t});
  EXPECT_EQ(u->ahead, 0);
}

TEST_F(chains_on_devices, retire_in_order_whatever_ends_first) {
  array_core* const a = array("a");
  task_record *t = on(1, {{a, write}}), *u = on(1, {{a, update}});
  hand_over(1);
  EXPECT_FALSE(end(u)) << "its predecessor has not ended";
  EXPECT_TRUE(u->marks & mark_ended_early);
  EXPECT_TRUE(end(t));
  EXPECT_TRUE(end(u));
}

TEST_F(chains_on_devices, after_a_failure_are_sent_with_a_new_count_of_setbacks) {
  array_core *a = array("a"), *b = array("b");
  end((on(1, {{a, write}}), hand_over(1).at(0)), std::make_exception_ptr(1));
  on(1, {{b, write}});
  task_record* const u = on(1, {{b, update}});
  hand_over(1);
  EXPECT_EQ(epoch_of(u->phase), epoch_mark(1));
  on(2, {{array("c"), write}});
  array_core* const d = array("d");
  on(2, {{d, write}});
  task_record* const elsewhere = on(2, {{d, update}});
  hand_over(2);
  EXPECT_EQ(epoch_of(elsewhere->phase), epoch_mark(0)) << "each device has a count of its own";
}

TEST_F(chains_on_devices, lose_the_successors_of_what_comes_back) {
  array_core* const a = array("a");
  task_record* const t = on(1, {{a, write}});
  hand_over(1);
  extra(t).options.priority = 0;
  task_record* const other = on(1, {{a, update}}, 1);  // not sent behind it
  task_record* const u = on(1, {{a, update}});         // comes after both
  EXPECT_EQ(u->ahead, 0);
  EXPECT_EQ(other->ahead, 0);
  task_record* const reader = on(1, {{array("b"), write}});
  hand_over(1);
  chains.note_returned(*t, true);
  chains.note_returned(*reader, false);
  array_core* const c = array("c");
  on(1, {{c, write}});
  task_record* const next = on(1, {{c, update}});
  hand_over(1);
  EXPECT_EQ(epoch_of(next->phase), epoch_mark(1)) << "one of the two counted as a setback";
}

TEST_F(chains_on_devices, get_no_more_tasks_behind_one_that_was_asked_for) {
  array_core* const a = array("a");
  task_record* const t = on(1, {{a, write}});
  hand_over(1);
  EXPECT_TRUE(chains.leads_nobody(*t));
  chains.lead_no_more(*t);
  task_record* const u = on(1, {{a, update}});
  EXPECT_EQ(u->ahead, 0);
  EXPECT_FALSE(u->marks & mark_chained);
}

TEST_F(chains_on_devices, know_whether_something_was_sent_behind_a_task) {
  array_core* const a = array("a");
  task_record* const t = on(1, {{a, write}});
  hand_over(1);
  EXPECT_TRUE(chains.leads_nobody(*t));
  on(1, {{a, update}});
  EXPECT_FALSE(chains.leads_nobody(*t));
}

TEST_F(chains_on_devices, end_with_the_runtime) {
  array_core* const a = array("a");
  task_record *t = on(1, {{a, write}}), *u = on(1, {{a, update}});
  chains.stop();
  EXPECT_EQ(hand_over(1), tasks{t});
  EXPECT_FALSE(u->marks & mark_chained);
}

TEST_F(chains_on_devices, have_no_task_on_cores) {
  array_core* const a = array("a");
  task_record* const t = on(0, {{a, write}});
  const tasks given = assignment.outgoing(0);
  assignment.sent(0);
  EXPECT_EQ(given, tasks{t});
  task_record* const u = on(0, {{a, update}});
  EXPECT_EQ(u->ahead, 0);
}

class short_chains : public chains_on_devices {
 protected:
  short_chains() : chains_on_devices(2'500) {
    array_core* const a = array("a");
    for (int i = 0; i < 8; ++i) {  // it is known then what they take: 1,000 ns
      on(1, {{a, write}});
      end(hand_over(1).at(0));
    }
  }
};

TEST_F(short_chains, hold_back_what_a_device_does_not_need_yet_and_send_it_before_it_runs_dry) {
  array_core* const a = array("a");
  task_record* const t = on(1, {{a, write}});
  tasks rest;
  for (int i = 0; i < 3; ++i) rest.push_back(on(1, {{a, update}}));
  EXPECT_EQ(hand_over(1), (tasks{t, rest[0], rest[1]})) << "more than the window of work";
  EXPECT_EQ(chains.next_holding_back(0), 1);
  EXPECT_EQ(chains.next_holding_back(2), troupe::logic::executor_set::end);
  EXPECT_TRUE(end(t));
  EXPECT_EQ(hand_over(1), tasks()) << "more than half a window is left";
  EXPECT_TRUE(end(rest[0]));
  EXPECT_EQ(hand_over(1), tasks{rest[2]});
  EXPECT_EQ(chains.next_holding_back(0), troupe::logic::executor_set::end);
}

/// Two nodes that reach each other.
class chains_across_nodes : public chains_on_devices {
 protected:
  chains_across_nodes() : chains_on_devices(1e9f, troupe::device_kind::node) {
    assignment.connect(1, 2);
    assignment.connect(2, 1);
    chains.note_far(1, true);
    chains.note_far(2, true);
  }
  array_core *a = array("a"), *b = array("b"), *c = array("c");
};

TEST_F(chains_across_nodes, are_sent_what_they_read_by_who_writes_it) {
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}}), *v = on(2, {{a, read}, {b, read}, {c, write}});
  EXPECT_EQ(hand_over(1), tasks{t});
  EXPECT_EQ(hand_over(2), (tasks{u, v}));
  EXPECT_TRUE(v->marks & mark_chained);
  EXPECT_TRUE(v->marks & mark_uncertain);
  ASSERT_EQ(all[1]->promised.size(), 1u);
  EXPECT_EQ(all[1]->promised[0].array, a);
  EXPECT_EQ(all[1]->promised[0].writer, t->sequence);
  EXPECT_TRUE(all[2]->promised.empty());
  ASSERT_EQ(all[2]->expected[v].size(), 1u);
  EXPECT_EQ(all[2]->expected[v][0].number, all[1]->promised[0].number);
  EXPECT_EQ(all[2]->expected[v][0].stay, 5u);
  EXPECT_FALSE(a->coherence->tiles[0].cached.contains(2)) << "it has no version of it that is current";
  EXPECT_FALSE(end(v)) << "known before the others have";
  EXPECT_TRUE(end(u));
  EXPECT_TRUE(end(t));
  EXPECT_EQ(v->pending, 0);
}

// A part of a run that has begun elsewhere may hold up what would send it the boxes.
TEST_F(chains_across_nodes, are_sent_nothing_ahead_while_a_part_of_a_run_has_yet_to_be_given) {
  task_record* const part = task({});
  const auto run = std::make_shared<run_gang>();
  run->add(*part, 2);
  extra(part).gang = run;
  std::vector<task_record*> combines;
  part->pending = 1;
  order.order(*part, combines);
  parts.ordered(*part, {});
  part->pending = 0;
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}}), *v = on(2, {{a, read}, {b, read}, {c, write}});
  EXPECT_EQ(hand_over(1), tasks{t});
  EXPECT_EQ(hand_over(2), tasks{u});
  EXPECT_FALSE(chains.has_postponed());
  parts.given(*part);
  ASSERT_TRUE(chains.has_postponed());
  chains.send_postponed();
  EXPECT_EQ(hand_over(2), tasks{v});
  EXPECT_FALSE(chains.has_postponed());
  end(u), end(t);
  parts.retires(*part);
}

TEST_F(chains_across_nodes, share_what_several_tasks_of_a_node_read) {
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}});
  array_core* const d = array("d");
  task_record *v = on(2, {{a, read}, {b, read}, {c, write}}), *w = on(2, {{a, read}, {b, read}, {d, write}});
  hand_over(1), hand_over(2);
  EXPECT_EQ(all[1]->promised.size(), 1u);
  ASSERT_EQ(all[2]->expected[v].size(), 1u);
  EXPECT_FALSE(all[2]->expected[v][0].shared);
  ASSERT_EQ(all[2]->expected[w].size(), 1u);
  EXPECT_TRUE(all[2]->expected[w][0].shared);
  EXPECT_EQ(all[2]->expected[w][0].number, all[1]->promised[0].number);
  end(t), end(u);
}

TEST_F(chains_across_nodes, are_continued_by_tasks_that_overwrite_what_is_at_home) {
  array_core* const d = array("d");
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}});
  hand_over(1), hand_over(2);
  EXPECT_TRUE(end(t));
  EXPECT_TRUE(end(u));
  a->coherence->tiles[0].dirty_in = b->coherence->tiles[0].dirty_in = host_space;
  task_record *v = on(1, {{b, read}, {a, update}}), *x = on(2, {{c, write}});
  EXPECT_EQ(hand_over(1), tasks{v});
  EXPECT_EQ(hand_over(2), tasks{x});
  b->coherence->tiles[0].dirty_in = 2;
  task_record* const w = on(2, {{a, read}, {c, read}, {b, write}});
  EXPECT_EQ(hand_over(2), tasks()) << "v may have to run again, and to read b";
  b->coherence->tiles[0].dirty_in = host_space;
  EXPECT_TRUE(chains.send_behind(*w));
  EXPECT_EQ(hand_over(2), tasks{w});
  std::vector<std::string> gone_on;
  chains.each_that_went_on(*v, [&](const executor& e, array_core& what, std::uint32_t) {
    gone_on.push_back(what.spec.name + " on " + e.facts().name);
  });
  EXPECT_EQ(gone_on, (std::vector<std::string>{"b on executor 2"}));
  chains.each_that_went_on(*x, [&](const executor&, array_core& what, std::uint32_t) {
    ADD_FAILURE() << what.spec.name << ": nothing comes after it that it touches";
  });
  EXPECT_FALSE(chains.send_behind(*on(1, {{b, write}, {d, write}}))) << "another node is to write it before";
}

TEST_F(chains_across_nodes, are_sent_once_what_they_overwrite_has_come_home) {
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}});
  hand_over(1), hand_over(2);
  task_record* const v = on(1, {{b, read}, {c, write}});
  EXPECT_EQ(hand_over(1), tasks{v});
  task_record* const w = on(2, {{c, read}, {a, read}, {b, write}});
  EXPECT_EQ(hand_over(2), tasks()) << "b is not known to have been written";
  EXPECT_TRUE(end(u));
  b->coherence->tiles[0].dirty_in = host_space;
  chains.send_blocked_by(*u);
  EXPECT_EQ(hand_over(2), tasks{w});
  end(t);
}

TEST_F(chains_across_nodes, end_before_tasks_that_run_once) {
  static constexpr kernel_info once{.name = "once", .key = 93, .kinds = 1, .repeat = purity::once};
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}});
  task_record* const v = on(2, {{a, read}, {b, read}, {c, write}});
  task_record* const w = task({{c, update}});
  w->kernel = &once;
  extra(w).executors = {2};
  in_order(w);
  hand_over(1);
  EXPECT_EQ(hand_over(2), (tasks{u, v})) << "not what comes after v";
  end(t);
}

TEST_F(chains_across_nodes, know_what_was_lost_of_tasks_that_had_ended) {
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}}), *v = on(2, {{a, read}, {b, read}, {c, write}});
  hand_over(1), hand_over(2);
  EXPECT_FALSE(end(v));
  const std::pair<array_core*, std::uint32_t> lost[] = {{a, 0}, {c, 0}};
  chains.note_lost(1, lost, nullptr);
  EXPECT_TRUE(chains.take_lost(*v).empty()) << "on another node";
  EXPECT_TRUE(end(u));
  (void)t;
}

TEST_F(chains_across_nodes, hand_out_what_was_lost_when_the_task_retires) {
  task_record *t = on(1, {{a, write}}), *u = on(2, {{b, write}}), *v = on(2, {{a, read}, {b, read}, {c, write}});
  hand_over(1), hand_over(2);
  EXPECT_FALSE(end(v));
  const std::pair<array_core*, std::uint32_t> lost[] = {{a, 0}, {c, 0}};
  chains.note_lost(2, lost, nullptr);
  end(u), end(t);
  const auto tiles = chains.take_lost(*v);
  ASSERT_EQ(tiles.size(), 1u) << "it does not write a";
  EXPECT_EQ(tiles[0].array, c);
  EXPECT_TRUE(chains.take_lost(*v).empty());
}

}  // namespace
