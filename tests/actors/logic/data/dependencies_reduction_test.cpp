// What this file is for: how reductions open, are combined, fail, and what a recording remembers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "graph_world.hpp"

#include "actors/logic/data/reduction.hpp"

namespace {

using namespace test;
using troupe::index_t;
constexpr auto reads = access_mode::read, writes = access_mode::write, reduces = access_mode::reduce;

std::exception_ptr some_error() { return std::make_exception_ptr(std::runtime_error("some error")); }

class reduction : public testing::Test {
 protected:
  task_record& contribute(array_core& a, troupe::detail::combine_fn op = add_numbers) {
    return world.submitted({{&a, reduces, a.whole_box(), op}});
  }
  task_record& on(array_core& a, access_mode mode, const box4& where) { return world.submitted({{&a, mode, where}}); }
  graph_world world;
};

TEST_F(reduction, lets_its_contributors_run_together) {
  array_core& a = world.array({4}, {4});
  for (int i = 0; i < 20; ++i) contribute(a);
  EXPECT_EQ(world.ready.size(), 20u);
  EXPECT_TRUE(world.combines.empty()) << "nobody has asked yet";
}

TEST_F(reduction, settles_once_after_all_contributors_and_before_the_reader) {
  array_core& a = world.array({4}, {4});
  std::vector<task_record*> all;
  for (int i = 0; i < 5; ++i) all.push_back(&contribute(a));
  task_record& reader = on(a, reads, line(0, 4));
  ASSERT_EQ(world.combines.size(), 1u);
  task_record& combine = *world.combines[0];
  for (task_record* t : all) {
    EXPECT_FALSE(world.is_ready(combine));
    world.complete(*t);
  }
  EXPECT_TRUE(world.is_ready(combine));
  EXPECT_FALSE(world.is_ready(reader));
  world.complete(combine);
  EXPECT_TRUE(world.is_ready(reader));
  EXPECT_FALSE(world.has_failed(reader));
}

TEST_F(reduction, settles_after_the_last_writer_and_the_readers_before_it) {
  array_core& a = world.array({4}, {4});
  task_record& writer = on(a, writes, line(0, 4));
  task_record& early = on(a, reads, line(0, 4));
  task_record& one = contribute(a);
  EXPECT_TRUE(world.is_ready(one)) << "a contributor has a place of its own and waits for nobody";
  on(a, reads, line(0, 4));
  world.complete(one);
  EXPECT_FALSE(world.is_ready(*world.combines[0]));
  world.complete(writer);
  EXPECT_FALSE(world.is_ready(*world.combines[0]));
  world.complete(early);
  EXPECT_TRUE(world.is_ready(*world.combines[0]));
}

TEST_F(reduction, settles_when_another_operator_comes) {
  array_core& a = world.array({4}, {4});
  contribute(a, add_numbers);
  contribute(a, max_numbers);
  EXPECT_EQ(world.combines.size(), 1u);
  contribute(a, max_numbers);
  EXPECT_EQ(world.combines.size(), 1u);
}

TEST_F(reduction, settles_when_another_box_comes) {
  array_core& a = world.array({8}, {8});
  world.submitted({{&a, reduces, line(0, 4), add_numbers}});
  world.submitted({{&a, reduces, line(0, 8), add_numbers}});
  EXPECT_EQ(world.combines.size(), 1u);
}

TEST_F(reduction, of_an_array_nobody_wrote_initialises_it) {
  array_core& a = world.array({8}, {4}, false);
  contribute(a);
  EXPECT_FALSE(world.has_failed(on(a, reads, line(0, 8))));
  const auto& fresh = world.combines[0]->accesses[0].where->partials->fresh;
  index_t volume = 0;
  for (const box4& b : fresh) volume += b.volume();
  EXPECT_EQ(volume, 8) << "all of it is new: there is nothing to combine with";
}

TEST_F(reduction, knows_which_part_of_the_array_was_written_before) {
  array_core& a = world.array({8}, {8}, false);
  on(a, writes, line(2, 5));
  contribute(a);
  EXPECT_FALSE(world.has_failed(on(a, reads, line(0, 8))));
  index_t volume = 0;
  for (const box4& b : world.combines[0]->accesses[0].where->partials->fresh) {
    volume += b.volume();
    EXPECT_FALSE(troupe::logic::overlap(b, line(2, 5)));
  }
  EXPECT_EQ(volume, 5);
}

TEST_F(reduction, fails_for_the_reader_when_a_contributor_fails_after_the_reader_asked) {
  array_core& a = world.array({4}, {4});
  task_record& bad = contribute(a);
  task_record& good = contribute(a);
  task_record& reader = on(a, reads, line(0, 4));
  const auto error = some_error();
  world.complete(bad, error), world.complete(good);
  world.complete(*world.combines[0]);
  EXPECT_EQ(reader.error, error);
}

TEST_F(reduction, fails_for_the_reader_when_a_contributor_failed_before_the_reader_asked) {
  array_core& a = world.array({4}, {4});
  const auto error = some_error();
  world.complete(contribute(a), error);
  contribute(a);
  task_record& reader = on(a, reads, line(0, 4));
  world.complete_all();
  EXPECT_EQ(world.combines[0]->error, error);
  EXPECT_EQ(reader.error, error);
}

TEST_F(reduction, that_failed_is_healed_by_a_write) {
  array_core& a = world.array({4}, {4});
  world.complete(contribute(a), some_error());
  on(a, reads, line(0, 4));
  world.complete_all();
  on(a, writes, line(0, 4));
  EXPECT_FALSE(world.has_failed(on(a, reads, line(0, 4))));
  world.complete_all();
  contribute(a);
  EXPECT_FALSE(world.has_failed(on(a, reads, line(0, 4))));
}

TEST_F(reduction, keeps_its_contributors_bounded_while_they_finish_one_by_one) {
  array_core& a = world.array({4}, {4});
  for (int i = 0; i < 5000; ++i) world.complete(contribute(a));
  EXPECT_LE(a.open->contributors.size(), 16u);
}

TEST_F(reduction, completes_in_every_order_with_the_reader_last) {
  every_choice([&](auto&& choose) {
    graph_world w;
    array_core& a = w.array({4}, {4});
    for (int i = 0; i < 4; ++i) w.submitted({{&a, reduces, a.whole_box(), add_numbers}});
    task_record& reader = w.submitted({{&a, reads, line(0, 4)}});
    std::vector<task_record*> order;
    while (!w.ready.empty()) {
      task_record* t = w.ready[choose(w.ready.size())];
      order.push_back(t);
      w.complete(*t);
    }
    ASSERT_EQ(order.size(), 6u);
    ASSERT_EQ(order[4], w.combines[0]);
    ASSERT_EQ(order[5], &reader);
  });
}

// ---- recordings -----------------------------------------------------------------------------------------------------

TEST(recording, leaves_the_live_states_of_its_arrays_alone) {
  graph_world world(true);
  array_core& a = world.array({4}, {4}, false);
  world.submitted({{&a, writes, line(0, 4)}});
  EXPECT_FALSE(a.states[0].valid);
  EXPECT_EQ(a.users, 0);
}

TEST(recording, notes_a_read_before_any_recorded_write_instead_of_failing_it) {
  graph_world world(true);
  array_core& a = world.array({8}, {4}, false);
  task_record& r = world.submitted({{&a, reads, line(0, 4)}});
  world.submitted({{&a, writes, line(4, 8)}});
  EXPECT_FALSE(world.has_failed(r));
  EXPECT_TRUE((world.recorded.effect_of(world.recorded.states[{&a, 0}]).reads_outside()));
  EXPECT_FALSE((world.recorded.effect_of(world.recorded.states[{&a, 1}]).reads_outside()));
}

TEST(recording, notes_which_elements_are_read_before_they_are_written) {
  graph_world world(true);
  array_core& a = world.array({8}, {8}, false);
  world.submitted({{&a, writes, line(0, 3)}});
  world.submitted({{&a, reads, line(2, 6)}});
  world.submitted({{&a, access_mode::update, line(1, 4)}});
  const auto effect = world.recorded.effect_of(world.recorded.states[{&a, 0}]).of({line(0, 4)}, a.tile_box(0));
  EXPECT_EQ(effect.written, troupe::logic::box_list{line(0, 4)});
  EXPECT_EQ(effect.read, troupe::logic::box_list{line(3, 6)});
}

TEST(recording, orders_its_tasks_as_a_live_graph_does) {
  graph_world world(true);
  array_core& a = world.array({4}, {4}, false);
  task_record& w = world.submitted({{&a, writes, line(0, 4)}});
  task_record& r = world.submitted({{&a, reads, line(0, 4)}});
  EXPECT_EQ(r.pending, 1);
  EXPECT_TRUE(world.deps.graph().reaches(w, r));
}

TEST(recording, settles_what_is_still_open_at_its_end) {
  graph_world world(true);
  array_core& a = world.array({4}, {4}, false);
  task_record& t = world.submitted({{&a, reduces, a.whole_box(), add_numbers}});
  std::vector<task_record*> made;
  world.deps.combine_recorded(made);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_TRUE(world.deps.graph().reaches(t, *made[0]));
  world.deps.combine_recorded(made);
  EXPECT_EQ(made.size(), 1u);
}

}  // namespace
