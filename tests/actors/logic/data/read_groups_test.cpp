// What this file is for: tasks that read the same tiles wait for a gate, in the order that edges of each would give.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/read_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "graph_world.hpp"

namespace {

using test::graph_world;
using test::line;
using troupe::access_mode;
using troupe::index_t;
using troupe::detail::array_core;
using troupe::detail::task_record;

constexpr std::size_t width = 10;

// Arrays in two rows, and tasks in steps: each reads all of one row and writes a tile of the other.
class read_groups_of_steps : public testing::Test {
 protected:
  read_groups_of_steps() {
    for (auto* row : {&even_, &odd_})
      for (std::size_t i = 0; i < width; ++i) row->push_back(&world_.array({4}, {4}));
    world_.deps.allow_gates(true);
  }

  task_record& ordered(const std::vector<graph_world::use>& uses) {
    task_record& t = world_.task(uses);
    t.marks |= troupe::detail::mark_early;
    world_.submit(t);
    return t;
  }
  static graph_world::use whole(array_core* a, access_mode m) { return {a, m, line(0, 4)}; }
  static std::vector<graph_world::use> reads(const std::vector<array_core*>& row) {
    std::vector<graph_world::use> all;
    for (array_core* a : row) all.push_back(whole(a, access_mode::read));
    return all;
  }
  task_record& reader(const std::vector<array_core*>& row) { return ordered(reads(row)); }
  task_record& writer(array_core* a) { return ordered({whole(a, access_mode::write)}); }
  std::vector<task_record*> writers(const std::vector<array_core*>& row) {
    std::vector<task_record*> all;
    for (array_core* a : row) all.push_back(&writer(a));
    return all;
  }
  std::vector<task_record*> step(const std::vector<array_core*>& from, const std::vector<array_core*>& to) {
    std::vector<task_record*> all;
    for (array_core* a : to) {
      std::vector<graph_world::use> uses = reads(from);
      uses.push_back(whole(a, access_mode::write));
      all.push_back(&ordered(uses));
    }
    return all;
  }
  std::size_t successors(task_record& t) {
    std::size_t n = 0;
    world_.deps.graph().each_successor(t, [&](task_record&, bool) { ++n; });
    return n;
  }
  bool waits(task_record& later, task_record& earlier) { return world_.deps.graph().reaches(earlier, later); }

  graph_world world_;
  std::vector<array_core*> even_, odd_;
};

TEST_F(read_groups_of_steps, the_second_task_with_a_list_and_those_after_it_wait_for_one_gate) {
  const auto before = writers(even_);
  task_record& first = reader(even_);
  EXPECT_TRUE(world_.gates.empty()) << "a list that is read once needs none";
  task_record& second = reader(even_);
  task_record& third = reader(even_);
  ASSERT_EQ(world_.gates.size(), 1u);
  EXPECT_EQ(successors(*world_.gates[0]), 2u);
  for (task_record* w : before) EXPECT_EQ(successors(*w), 2u) << "the first reader and the gate";
  for (task_record* r : {&first, &second, &third})
    for (task_record* w : before) EXPECT_TRUE(waits(*r, *w));
  for (task_record* w : before) {
    EXPECT_FALSE(world_.is_ready(third));
    world_.complete(*w);
  }
  EXPECT_TRUE(world_.is_ready(*world_.gates[0]));
  world_.complete(*world_.gates[0]);
  for (task_record* r : {&first, &second, &third}) EXPECT_TRUE(world_.is_ready(*r));
}

TEST_F(read_groups_of_steps, a_task_that_overwrites_a_tile_comes_after_all_readers) {
  writers(even_);
  std::vector<task_record*> readers;
  for (int i = 0; i < 5; ++i) readers.push_back(&reader(even_));
  task_record& w = writer(even_[3]);
  for (task_record* r : readers) EXPECT_TRUE(waits(w, *r));
  task_record& last = reader(even_);
  EXPECT_TRUE(waits(last, w));
}

TEST_F(read_groups_of_steps, steps_have_two_edges_for_each_task_instead_of_one_for_each_input) {
  writers(even_);
  for (int i = 0; i < 3; ++i) {
    step(even_, odd_);
    step(odd_, even_);
  }
  const auto from = step(even_, odd_);
  const auto to = step(odd_, even_);
  for (task_record* f : from) {
    EXPECT_LE(successors(*f), 2u);
    for (task_record* t : to) EXPECT_TRUE(waits(*t, *f));
  }
  EXPECT_GE(world_.gates.size(), 7u) << "one for each step but the first";
  world_.complete_all();
  EXPECT_EQ(to.back()->sequence, 0u) << "all have run";
}

TEST_F(read_groups_of_steps, readers_fail_with_any_writer_that_fails) {
  const auto before = writers(even_);
  task_record& a = reader(even_);
  task_record& b = reader(even_);
  const auto error = std::make_exception_ptr(std::runtime_error("broken"));
  world_.complete(*before[4], error);
  task_record& c = reader(even_);
  world_.complete_all();
  for (task_record* r : {&a, &b, &c}) EXPECT_EQ(r->error, error);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(world_.has_failed(reader(even_))) << "after the writer has retired, too";
  writers(even_);
  task_record& d = reader(even_);
  task_record& e = reader(even_);
  world_.complete_all();
  for (task_record* r : {&d, &e}) EXPECT_FALSE(world_.has_failed(*r));
}

TEST_F(read_groups_of_steps, readers_fail_at_once_whatever_else_their_gate_waits_for) {
  const auto before = writers(even_);
  std::vector<task_record*> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(&reader(even_));
  const auto error = std::make_exception_ptr(std::runtime_error("broken"));
  world_.complete(*before[4], error);
  for (task_record* r : readers) {
    EXPECT_EQ(r->error, error);
    EXPECT_FALSE(world_.is_ready(*r)) << "it retires after all writers";
  }
  world_.complete_all();
  for (task_record* r : readers) EXPECT_EQ(r->sequence, 0u);
}

TEST_F(read_groups_of_steps, one_more_reader_in_each_step_and_another_order_cost_few_edges) {
  writers(even_);
  std::vector<array_core*> even(even_.rbegin(), even_.rend()), odd(odd_.rbegin(), odd_.rend());
  std::vector<task_record*> steps[4], monitors;
  for (auto& s : steps) {
    s = step(even_, odd);
    monitors.push_back(&reader(even_));
    std::swap(even, odd);
    std::swap(even_, odd_);
  }
  for (task_record* t : steps[2]) EXPECT_LE(successors(*t), 2u);
  for (task_record* t : steps[3]) {
    EXPECT_TRUE(waits(*t, *monitors[2]));
    for (task_record* before : steps[2]) EXPECT_TRUE(waits(*t, *before));
  }
}

TEST_F(read_groups_of_steps, a_reduction_that_is_opened_is_combined_before_the_next_reader) {
  writers(even_);
  reader(even_);
  reader(even_);
  reader(even_);
  task_record& adds = ordered({{even_[2], access_mode::reduce, line(0, 4), test::add_numbers}});
  task_record& next = reader(even_);
  ASSERT_EQ(world_.combines.size(), 2u) << "a gate, and what combines";
  EXPECT_TRUE(waits(next, adds));
}

TEST_F(read_groups_of_steps, what_combines_waits_for_all_readers_whatever_the_task_that_needs_it_has_read) {
  writers(even_);
  step(even_, odd_);
  step(odd_, even_);
  const auto last = step(even_, odd_);
  ordered({{even_[2], access_mode::reduce, line(0, 4), test::add_numbers}});
  auto uses = reads(odd_);  // written by all that have read what is combined
  uses.push_back(whole(even_[2], access_mode::read));
  ordered(uses);
  task_record& combine = *world_.combines.back();
  ASSERT_EQ(combine.kind, troupe::detail::task_kind::combine);
  for (task_record* t : last) EXPECT_TRUE(waits(combine, *t));
}

TEST_F(read_groups_of_steps, the_array_of_a_tile_may_be_freed_before_the_others) {
  writers(even_);
  for (int i = 0; i < 3; ++i) reader(even_);
  world_.complete_all();
  world_.deps.forget(*even_[0]);
  for (std::size_t i = 1; i < width; ++i) EXPECT_NE(even_[i]->states[0].group, nullptr);
  EXPECT_EQ(even_[0]->states[0].group, nullptr);
  const auto before = writers(even_);
  task_record& r = reader(even_);
  for (task_record* w : before) EXPECT_TRUE(waits(r, *w));
}

TEST_F(read_groups_of_steps, fall_apart_where_gates_are_not_allowed_any_more) {
  const auto before = writers(even_);
  std::vector<task_record*> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(&reader(even_));
  world_.deps.allow_gates(false);
  readers.push_back(&reader(even_));
  for (array_core* a : even_) EXPECT_EQ(a->states[0].group, nullptr);
  for (task_record* w : before) EXPECT_TRUE(waits(*readers.back(), *w));
  task_record& w = writer(even_[0]);
  for (task_record* r : readers) EXPECT_TRUE(waits(w, *r));
}

TEST_F(read_groups_of_steps, a_task_that_writes_a_tile_before_it_reads_the_others_of_its_list) {
  writers(even_);
  for (int i = 0; i < 3; ++i) reader(even_);
  std::vector<graph_world::use> uses{whole(even_[9], access_mode::update)};
  for (const auto& u : reads(even_))
    if (u.array != even_[9]) uses.push_back(u);
  task_record& both = ordered(uses);
  task_record& w = writer(even_[0]);
  EXPECT_TRUE(waits(w, both));
}

TEST_F(read_groups_of_steps, a_list_that_one_task_reads_after_each_change_gets_fewer_gates) {
  for (int i = 0; i < 200; ++i) {
    writer(even_[static_cast<std::size_t>(i) % width]);
    reader(even_);
  }
  EXPECT_GT(world_.gates.size(), 0u);
  EXPECT_LT(world_.gates.size(), 12u);
  world_.complete_all();
}

TEST_F(read_groups_of_steps, a_list_may_stand_between_reads_that_differ) {
  const auto before = writers(even_);
  std::vector<task_record*> readers;
  for (int i = 0; i < 5; ++i) {
    std::vector<graph_world::use> uses{whole(odd_[static_cast<std::size_t>(i)], access_mode::read)};
    for (const auto& u : reads(even_)) uses.push_back(u);
    uses.push_back(whole(odd_[static_cast<std::size_t>(9 - i)], access_mode::read));
    readers.push_back(&ordered(uses));
  }
  ASSERT_EQ(world_.gates.size(), 1u);
  EXPECT_EQ(successors(*world_.gates[0]), 3u) << "what two have in common need not be a list";
  for (task_record* r : readers)
    for (task_record* w : before) EXPECT_TRUE(waits(*r, *w));
  EXPECT_TRUE(waits(writer(odd_[2]), *readers[2]));
}

TEST_F(read_groups_of_steps, a_list_is_found_after_many_tasks_without_one) {
  writers(even_);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<array_core*> some = even_;
    std::ranges::shuffle(some, random);
    reader(some);
  }
  EXPECT_LT(world_.gates.size(), 5u);
  writers(odd_);
  for (int i = 0; i < 40; ++i) reader(odd_);
  EXPECT_GE(successors(*world_.gates.back()), 20u);
}

TEST_F(read_groups_of_steps, lists_may_take_turns) {
  writers(even_);
  writers(odd_);
  for (int i = 0; i < 4; ++i) {
    reader(even_);
    reader(odd_);
  }
  EXPECT_EQ(world_.gates.size(), 2u);
  for (task_record* g : world_.gates) EXPECT_EQ(successors(*g), 3u);
}

TEST_F(read_groups_of_steps, all_tiles_of_an_array_are_a_list) {
  array_core& from = world_.array({40}, {4});
  array_core& to = world_.array({40}, {4});
  const auto chunk = [](index_t i) { return line(4 * i, 4 * i + 4); };
  std::vector<task_record*> before, next;
  for (index_t i = 0; i < 10; ++i) before.push_back(&ordered({{&from, access_mode::write, chunk(i)}}));
  for (index_t i = 0; i < 10; ++i)
    next.push_back(&ordered({{&from, access_mode::read, line(0, 40)}, {&to, access_mode::write, chunk(i)}}));
  ASSERT_EQ(world_.gates.size(), 1u);
  EXPECT_EQ(successors(*world_.gates[0]), 9u);
  for (task_record* n : next)
    for (task_record* b : before) EXPECT_TRUE(waits(*n, *b));
  task_record& half = ordered({{&from, access_mode::write, line(0, 2)}});
  for (task_record* n : next) EXPECT_TRUE(waits(half, *n)) << "who writes a part, too";
  EXPECT_TRUE(waits(ordered({{&from, access_mode::read, line(0, 40)}}), half));
}

TEST_F(read_groups_of_steps, tasks_that_placement_decides_about_are_counted_as_users_until_they_retire) {
  const auto before = writers(even_);
  for (int i = 0; i < 4; ++i) world_.submitted(reads(even_));
  ASSERT_EQ(world_.gates.size(), 1u);
  EXPECT_EQ(successors(*world_.gates[0]), 3u);
  for (array_core* a : even_) EXPECT_EQ(a->users, 4);
  for (task_record* w : before) world_.complete(*w);
  EXPECT_EQ(world_.ready.size(), 2u) << "the first reader, and the gate";
  world_.complete_all();
  EXPECT_TRUE(world_.ready.empty());
}

// All pairs of tasks of random programs of which the later one must wait for the earlier one.
class read_groups_of_programs : public testing::TestWithParam<unsigned> {};

TEST_P(read_groups_of_programs, order_what_must_be_in_order) {
  std::mt19937 random(GetParam());
  graph_world world;
  world.deps.allow_gates(true);
  std::vector<array_core*> arrays;
  for (int i = 0; i < 24; ++i) arrays.push_back(&world.array({4}, {4}));
  std::vector<std::vector<array_core*>> lists(3);
  for (auto& list : lists)
    for (std::size_t n = 8 + random() % 3; n != 0; --n) list.push_back(arrays[random() % arrays.size()]);
  array_core& wide = world.array({40}, {4});
  using element = std::pair<array_core*, index_t>;
  struct job {
    task_record* task;
    std::set<element> reads, writes;
  };
  std::vector<job> jobs;
  std::size_t list = 0, grouped = 0;
  for (int i = 0; i < 150; ++i) {
    job j;
    std::vector<graph_world::use> uses;
    const auto use_part = [&](array_core* a, access_mode m, index_t lo, index_t hi) {
      uses.push_back({a, m, line(lo, hi)});
      for (index_t e = lo; e < hi; ++e) (m == access_mode::read ? j.reads : j.writes).insert({a, e});
    };
    const auto use = [&](array_core* a, access_mode m) { use_part(a, m, 0, 4); };
    if (random() % 16 == 0) list = random() % lists.size();
    const bool reads_list = random() % 6 != 0;
    grouped += reads_list && lists[list][0]->states[0].group ? 1 : 0;
    const auto pick = [&] { return arrays[random() % arrays.size()]; };
    if (random() % 4 == 0) {
      use_part(&wide, access_mode::read, 0, 40);
    } else if (random() % 4 == 0) {
      const auto at = static_cast<index_t>(random() % 40);
      random() % 4 == 0 ? use_part(&wide, access_mode::write, at, std::min<index_t>(40, at + 3))
                        : use_part(&wide, access_mode::write, at / 4 * 4, at / 4 * 4 + 4);
    }
    if (reads_list && random() % 8 == 0) use(pick(), access_mode::write);
    if (reads_list)
      for (array_core* a : lists[list]) use(a, access_mode::read);
    if (!reads_list || random() % 3 == 0) use(pick(), random() % 4 == 0 ? access_mode::read : access_mode::write);
    task_record& t = world.task(uses);
    t.marks |= random() % 8 != 0 ? troupe::detail::mark_early : 0;
    if (random() % 64 == 0) world.deps.allow_gates(random() % 2 == 0);
    world.submit(t);
    j.task = &t;
    jobs.push_back(std::move(j));
    if (random() % 4 == 0 && !world.ready.empty()) {  // what has retired is in order already
      task_record& done = *world.ready[random() % world.ready.size()];
      world.complete(done);
      std::erase_if(jobs, [&](const job& x) { return x.task == &done; });
    }
  }
  const auto meet = [](const std::set<element>& a, const std::set<element>& b) {
    return std::ranges::any_of(a, [&](const element& x) { return b.contains(x); });
  };
  std::size_t pairs = 0;
  for (std::size_t k = 0; k < jobs.size(); ++k)
    for (std::size_t i = 0; i < k; ++i) {
      const job &first = jobs[i], &next = jobs[k];
      if (!meet(first.writes, next.reads) && !meet(first.writes, next.writes) && !meet(first.reads, next.writes))
        continue;
      ++pairs;
      EXPECT_TRUE(world.deps.graph().reaches(*first.task, *next.task)) << i << " and " << k;
    }
  EXPECT_GT(pairs, 100u);
  EXPECT_GT(grouped, 0u);
  world.complete_all();
  for (const job& j : jobs) EXPECT_EQ(j.task->sequence, 0u);
}

INSTANTIATE_TEST_SUITE_P(seeds, read_groups_of_programs, testing::Range(1u, 101u));

}  // namespace
