// What this file is for: which copies are begun for a task, and what the end of each means for its tile.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/transfers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/logic/data/home_box.hpp"
#include "actors/protocol/peer_loan.hpp"
#include "collector.hpp"
#include "loose_graph.hpp"

namespace {

using namespace test;
using enum troupe::access_mode;
using troupe::device_kind;
using outcome = transfers::outcome;

/// A core group (space 0), two devices that reach each other (1, 2), one that reaches none (3), two nodes (4, 5).
class copies : public testing::Test, protected loose_graph {
 protected:
  copies() : assignment(1e6f, 0), moves(*rt, order.graph(), assignment, executors, told) {
    for (std::uint16_t i = 0; i < 6; ++i) {
      all.push_back(std::make_unique<collector>(
          executor_facts{i, "executor " + std::to_string(i), i < 4 ? device_kind::cpu : device_kind::node, i, 1}));
      executors.push_back(all.back().get());
      assignment.add(all.back()->facts());
    }
    moves.connect(1, 2);
    for (const std::size_t i : {4, 5}) moves.add_node(all[i]->facts(), {1'000, 1}, {1'000, 1}, true);
  }
  ~copies() override {
    for (const auto& e : all)
      for (task_record* t : e->held) own(t);
  }
  array_core* dirty_in(memory_space s, const std::string& name = "a", troupe::index_t elements = 1) {
    array_core* const a = array(name, elements);
    a->coherence = std::make_unique<array_coherence>(1);
    a->coherence->tiles[0].dirty_in = s;
    a->coherence->tiles[0].cached.insert(s);
    a->coherence->spaces.insert(s);
    return a;
  }
  static coherence_entry& entry(array_core* a) { return a->coherence->tiles[0]; }
  /// A task that reads elements [lo, hi) of an array, after those before it.
  task_record* reads(array_core* a, troupe::index_t lo, troupe::index_t hi, troupe::access_mode how = read) {
    task_record* const t = task({{a, how}});
    region* const where = rt->regions.take();
    *where = {};
    where->lo = {lo, 0, 0, 0};
    where->hi = {hi, 1, 1, 1};
    where->limit_hi = a->spec.size;
    t->accesses[0].where = where;
    return in_order(t);
  }
  /// Ends what has been asked for as a part, with the part here, or not.
  outcome end_part(task_record* fetch, bool here, std::exception_ptr why = nullptr) {
    fetch->extra->home_boxes.front()->here = here;
    return end(fetch, std::move(why));
  }
  bool must_wait(task_record* t, memory_space where) { return moves.must_wait(*t, where, where >= 4); }
  /// Takes the task that the executor was given last; it has it no more.
  task_record* taken(std::size_t executor) {
    auto& held = all[executor]->held;
    if (held.empty()) return nullptr;
    task_record* const t = own(held.back());
    held.pop_back();
    return t;
  }
  outcome end(task_record* t, std::exception_ptr why = nullptr) {
    claim(*t);
    t->error = why;
    const outcome o = moves.ended(*t);
    t->error = nullptr;
    fulfil(*t, board);
    retire(t);
    return o;
  }
  static std::exception_ptr trouble() { return std::make_exception_ptr(std::runtime_error("trouble")); }

  std::vector<std::unique_ptr<collector>> all;
  std::vector<executor*> executors;
  troupe::logic::assignment assignment;
  notifications told;
  transfers moves;
};

TEST_F(copies, are_not_made_of_what_is_where_the_task_runs) {
  array_core* const a = dirty_in(3);
  EXPECT_FALSE(must_wait(ordered({{a, update}}), 3));
  EXPECT_FALSE(must_wait(ordered({{array("b"), read}}), 3)) << "host memory has it";
  EXPECT_EQ(taken(3), nullptr);
}

TEST_F(copies, bring_home_what_a_task_needs_here_once_for_all_that_wait) {
  array_core* const a = dirty_in(3);
  task_record *t = ordered({{a, read}}), *u = ordered({{a, read}});
  EXPECT_TRUE(must_wait(t, host_space));
  EXPECT_TRUE(must_wait(u, host_space));
  task_record* const transfer = taken(3);
  ASSERT_NE(transfer, nullptr);
  EXPECT_EQ(transfer->kind, task_kind::transfer);
  EXPECT_EQ(transfer->accesses[0].mode, read);
  EXPECT_EQ(taken(3), nullptr) << "one is enough";
  EXPECT_EQ(t->pending, 1);
  EXPECT_EQ(u->pending, 1);
  EXPECT_EQ(end(transfer), outcome::at_home);
  EXPECT_EQ(entry(a).dirty_in, host_space);
  EXPECT_EQ(t->pending, 0);
  EXPECT_FALSE(must_wait(t, host_space));
}

TEST_F(copies, are_given_up_where_the_task_overwrites_all_of_the_tile) {
  array_core* const a = dirty_in(3);
  EXPECT_TRUE(must_wait(ordered({{a, write}}), host_space));
  EXPECT_EQ(taken(3)->accesses[0].mode, write) << "nothing is copied";
}

TEST_F(copies, are_lent_by_a_device_to_one_that_reaches_it) {
  array_core* const a = dirty_in(1);
  task_record* const t = ordered({{a, read}});
  EXPECT_TRUE(must_wait(t, 2));
  task_record* const lend = taken(1);
  ASSERT_NE(lend, nullptr);
  EXPECT_EQ(lend->kind, task_kind::lend);
  int memory = 0;
  lend->extra->loans.at(0)->open(&memory);
  claim(*lend), fulfil(*lend, board);
  retire(lend);
  EXPECT_FALSE(must_wait(t, 2));
  ASSERT_EQ(t->extra->loans.size(), 1u);
  EXPECT_EQ(entry(a).dirty_in, 1) << "it remains the owner";
}

TEST_F(copies, go_through_the_host_where_devices_do_not_reach_each_other) {
  array_core* const a = dirty_in(1);
  EXPECT_TRUE(must_wait(ordered({{a, read}}), 3));
  EXPECT_EQ(taken(1)->kind, task_kind::transfer);
}

TEST_F(copies, go_through_the_host_when_the_loan_has_been_called_back) {
  array_core* const a = dirty_in(1);
  task_record* const t = ordered({{a, read}});
  EXPECT_TRUE(must_wait(t, 2));
  task_record* const lend = taken(1);
  claim(*lend), fulfil(*lend, board);
  retire(lend);  // it was not opened
  EXPECT_TRUE(must_wait(t, 2));
  EXPECT_EQ(taken(1)->kind, task_kind::transfer);
}

TEST_F(copies, are_pulled_by_a_node_from_the_other_without_a_wait) {
  array_core* const a = dirty_in(4);
  task_record* const t = ordered({{a, read}});
  EXPECT_FALSE(must_wait(t, 5));
  moves.leaves(*t, 5, true);
  ASSERT_EQ(t->extra->pulls.size(), 1u);
  EXPECT_EQ(t->extra->pulls[0].array, a);
  EXPECT_EQ(t->extra->pulls[0].space, 4);
  EXPECT_EQ(taken(4), nullptr);
}

TEST_F(copies, are_not_pulled_again_by_a_task_of_which_a_pull_has_failed) {
  array_core* const a = dirty_in(4);
  task_record* const t = ordered({{a, read}});
  extra(t).no_pulls = true;
  EXPECT_TRUE(must_wait(t, 5));
  EXPECT_EQ(taken(4)->kind, task_kind::transfer);
}

TEST_F(copies, of_a_large_tile_are_passed_on_by_those_that_have_it) {
  array_core* const a = dirty_in(4, "large", 40'000);
  const auto source = [&](memory_space to) {
    task_record* const t = ordered({{a, read}});
    EXPECT_FALSE(must_wait(t, to));
    moves.leaves(*t, to, true);
    return t->extra->pulls.at(0).space;
  };
  for (std::uint16_t i = 6; i < 9; ++i) {
    all.push_back(
        std::make_unique<collector>(executor_facts{i, "executor " + std::to_string(i), device_kind::node, i, 1}));
    executors.push_back(all.back().get());
    assignment.add(all.back()->facts());
    moves.add_node(all.back()->facts(), {1'000, 1}, {1'000, 1}, true);
  }
  EXPECT_EQ(source(5), 4);
  EXPECT_EQ(source(6), 4);
  EXPECT_EQ(source(7), 5) << "the owner has passed it on to two";
  EXPECT_EQ(source(8), 5);
}

TEST_F(copies, that_fail_on_a_device_lose_the_tile) {
  array_core* const a = dirty_in(3);
  moves.fetch(*a, 0, entry(a));
  const auto why = trouble();
  EXPECT_EQ(end(taken(3), why), outcome::at_home);
  EXPECT_EQ(entry(a).lost, why);
  EXPECT_FALSE(entry(a).cached.contains(3));
}

TEST_F(copies, that_fail_on_a_node_are_for_others_to_replace) {
  array_core* const a = dirty_in(4);
  moves.fetch(*a, 0, entry(a));
  EXPECT_EQ(end(taken(4), trouble()), outcome::lost_with_node);
  EXPECT_EQ(entry(a).dirty_in, 4);
  EXPECT_EQ(entry(a).lost, nullptr);
}

TEST_F(copies, that_come_after_another_was_asked_for_mean_nothing) {
  array_core* const a = dirty_in(3);
  moves.fetch(*a, 0, entry(a));
  task_record* const late = taken(3);
  moves.fetch(*a, 0, entry(a));
  task_record* const next = taken(3);
  EXPECT_EQ(end(late), outcome::superseded);
  EXPECT_EQ(entry(a).dirty_in, 3);
  EXPECT_EQ(end(next), outcome::at_home);
}

TEST_F(copies, of_a_lost_tile_are_asked_for_one_after_the_other) {
  array_core* const a = dirty_in(1);
  entry(a).cached.insert(2);
  entry(a).cached.insert(3);
  entry(a).cached.erase(1);
  const auto why = trouble();
  moves.rescue(*a, 0, entry(a), why);
  EXPECT_EQ(entry(a).dirty_in, no_space);
  task_record* const first = taken(2);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(end(first, why), outcome::asked_elsewhere) << "it has it no more";
  task_record* const second = taken(3);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(end(second), outcome::at_home);
  EXPECT_EQ(entry(a).lost, nullptr);
}

TEST_F(copies, of_which_there_is_none_any_more_leave_the_reason_behind) {
  array_core* const a = dirty_in(1);
  entry(a).cached.erase(1);
  const auto why = trouble();
  moves.rescue(*a, 0, entry(a), why);
  EXPECT_EQ(entry(a).dirty_in, host_space);
  EXPECT_EQ(entry(a).lost, why);
}

TEST_F(copies, of_an_array_are_brought_home_or_given_up_as_a_whole) {
  array_core* const a = dirty_in(3);
  EXPECT_TRUE(moves.bring_home(*a));
  EXPECT_EQ(end(taken(3)), outcome::at_home);
  EXPECT_FALSE(moves.bring_home(*a)) << "it is here";
  a->coherence->spaces.insert(1);
  moves.forget_copies(*a);
  for (const std::size_t device : {1, 3}) {
    task_record* const forget = taken(device);
    ASSERT_NE(forget, nullptr) << device;
    EXPECT_EQ(forget->kind, task_kind::forget);
  }
  EXPECT_TRUE(a->coherence->spaces.empty());
}

TEST_F(copies, of_parts_come_home_by_themselves_and_the_tile_stays) {
  moves.bring_parts_home();
  array_core* const a = dirty_in(4, "a", 100'000);
  task_record *t = reads(a, 10, 20), *same = reads(a, 12, 18);
  EXPECT_TRUE(must_wait(t, host_space));
  EXPECT_TRUE(must_wait(same, host_space));
  task_record* const fetch = taken(4);
  ASSERT_NE(fetch, nullptr);
  EXPECT_EQ(fetch->kind, task_kind::fetch);
  EXPECT_EQ(taken(4), nullptr) << "it has what the second one reads, too";
  const home_box& box = *fetch->extra->home_boxes.at(0);
  EXPECT_EQ(box.where.lo[0], 10);
  EXPECT_EQ(box.where.hi[0], 20);
  EXPECT_EQ(end_part(fetch, true), outcome::part_at_home);
  EXPECT_EQ(entry(a).dirty_in, 4);
  EXPECT_FALSE(must_wait(t, host_space));
  EXPECT_FALSE(must_wait(same, host_space));
  EXPECT_EQ(t->extra->home_boxes.size(), 1u);
  EXPECT_EQ(same->extra->home_boxes.size(), 1u);
  EXPECT_EQ(taken(4), nullptr);
}

TEST_F(copies, of_parts_are_of_one_version) {
  moves.bring_parts_home();
  array_core* const a = dirty_in(4, "a", 100'000);
  task_record* const t = reads(a, 10, 20);
  EXPECT_TRUE(must_wait(t, host_space));
  end_part(taken(4), true);
  entry(a).version.fetch_add(1);
  EXPECT_TRUE(must_wait(reads(a, 10, 20), host_space));
  ASSERT_NE(taken(4), nullptr);
}

TEST_F(copies, of_parts_give_way_to_the_tile_where_that_is_cheaper_or_they_do_not_come) {
  moves.bring_parts_home();
  array_core *few = dirty_in(4, "few", 100'000), *lost = dirty_in(5, "lost", 100'000), *much = dirty_in(3, "much", 100);
  task_record* last = nullptr;
  for (troupe::index_t i = 0; i < 110; ++i) {
    task_record* const t = reads(few, 900 * i, 900 * i + 900);
    must_wait(t, host_space);
    last = taken(4);
    ASSERT_NE(last, nullptr) << i;
    if (last->kind == task_kind::transfer) break;
  }
  EXPECT_EQ(last->kind, task_kind::transfer) << "a hundred parts take longer than the tile";

  task_record* const t = reads(lost, 0, 8);
  EXPECT_TRUE(must_wait(t, host_space));
  EXPECT_EQ(end_part(taken(5), false), outcome::part_at_home);
  EXPECT_TRUE(must_wait(t, host_space));
  EXPECT_EQ(taken(5)->kind, task_kind::transfer) << "that tells what has become of it";
  EXPECT_TRUE(t->extra->home_boxes.empty());

  EXPECT_TRUE(must_wait(reads(much, 0, 60), host_space));
  EXPECT_EQ(taken(3)->kind, task_kind::transfer) << "half of it and more";
  array_core* const changed = dirty_in(3, "changed", 100);
  EXPECT_TRUE(must_wait(reads(changed, 0, 5, update), host_space));
  EXPECT_EQ(taken(3)->kind, task_kind::transfer) << "parts are changed in the host's tile";
}

TEST_F(copies, of_nodes_are_told_of_when_the_turn_is_over) {
  array_core *a = dirty_in(3), *b = dirty_in(4, "b");
  moves.fetch(*a, 0, entry(a));
  EXPECT_TRUE(told.empty()) << "a device looks at once";
  moves.fetch(*b, 0, entry(b));
  EXPECT_FALSE(told.empty());
}

}  // namespace
