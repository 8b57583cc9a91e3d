// What this file is for: placement under a host memory budget, with a disk that moves tiles when the test says so.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "actors/memory/host_tiles.hpp"
#include "actors/protocol/phase.hpp"
#include "paper_disk.hpp"
#include "stage.hpp"

namespace {

using namespace test;
using enum troupe::access_mode;
using troupe::errc;

/// An executor, arrays of one tile of 8 bytes, room for so many of them.
class room : public testing::Test {
 protected:
  static troupe::options bounded(std::uint64_t tiles) {
    troupe::options o;
    o.memory_bytes = tiles * 8;
    return o;
  }
  explicit room(std::uint64_t tiles = 3) : stage_(1, bounded(tiles)) { stage_.placement_actor->spill_to(disk_); }
  ~room() override {
    while (!disk_.orders.empty() || !stage_.out().empty()) {
      stage_.complete_all();
      if (!disk_.orders.empty()) move();
    }
  }
  array_core* array(const std::string& name) {
    array_core* a = stage_.array();
    a->spec.name = name;
    a->spec.rank = 1;
    a->spec.element = 8;
    a->spec.size = a->spec.tile = {1, 1, 1, 1};
    return a;
  }
  /// As a body would.
  void run(task_record* t) {
    for (int i = 0; i < t->access_count; ++i)
      if (t->accesses[i].mode != read)
        *reinterpret_cast<std::uint64_t*>(host_tile(*stage_.rt, *t->accesses[i].array, 0, true)) = ++stamp_;
    stage_.complete(t);
  }
  void fill(const std::vector<array_core*>& arrays) {
    for (array_core* a : arrays) run(stage_.submitted({{a, write}}));
  }
  bool moves(task_kind kind, const array_core* a) const {
    for (const auto& o : disk_.orders)
      if (o.task->kind == kind && o.task->accesses[0].array == a) return true;
    return false;
  }
  /// The disk does the first thing that it was told.
  void move(std::exception_ptr fails = nullptr) {
    task_record* t = disk_.orders.front().task;
    disk_.orders.pop_front();
    array_core& a = *t->accesses[0].array;
    claim(*t);
    t->error = fails;
    if (!fails && t->kind == task_kind::spill) free_host_tile(*stage_.rt, a, 0);
    if (!fails && t->kind == task_kind::load) host_tile(*stage_.rt, a, 0, true);
    fulfil(*t, stage_.board);
    stage_.placement_actor->report_done({&t, 1}, nullptr);
  }
  static std::exception_ptr full() {
    return std::make_exception_ptr(troupe::error(errc::disk_full, "the paper is full"));
  }
  static errc cause_of(const task_record* t) {
    try {
      std::rethrow_exception(t->error);
    } catch (const troupe::task_failed& e) {
      try {
        e.rethrow_cause();
      } catch (const troupe::error& inner) {
        return inner.code();
      }
      return e.code();
    }
  }
  std::size_t allocated() const { return stage_.rt->array_bytes.load(); }

  paper_disk disk_;
  stage stage_;
  std::uint64_t stamp_ = 0;
};

TEST_F(room, a_task_waits_until_the_tile_used_longest_ago_has_left) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  fill({a, b, c});
  run(stage_.submitted({{a, read}}));
  task_record* t = stage_.submitted({{d, write}});
  EXPECT_FALSE(stage_.is_out(t));
  ASSERT_EQ(disk_.orders.size(), 1u);
  EXPECT_TRUE(moves(task_kind::spill, b));
  EXPECT_EQ(allocated(), 24u);
  move();
  EXPECT_EQ(allocated(), 16u);
  EXPECT_TRUE(stage_.is_out(t));
}

TEST_F(room, what_a_task_reads_is_brought_back_first) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  fill({a, b, c});
  task_record* t = stage_.submitted({{d, write}});
  move();
  run(t);
  task_record* back = stage_.submitted({{a, read}});
  EXPECT_TRUE(moves(task_kind::spill, b));
  move();
  ASSERT_TRUE(moves(task_kind::load, a));
  EXPECT_FALSE(stage_.is_out(back));
  move();
  EXPECT_TRUE(stage_.is_out(back));
}

TEST_F(room, tiles_of_a_task_that_was_handed_over_stay) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  fill({a, b, c});
  task_record* runs = stage_.submitted({{a, read}, {b, update}, {c, read}});
  ASSERT_TRUE(stage_.is_out(runs));
  task_record* t = stage_.submitted({{d, write}});
  EXPECT_FALSE(stage_.is_out(t));
  EXPECT_TRUE(disk_.orders.empty());
  stage_.complete(runs);
  EXPECT_EQ(disk_.orders.size(), 1u);
  move();
  EXPECT_TRUE(stage_.is_out(t));
}

TEST_F(room, two_tasks_that_cannot_both_have_room_run_one_after_the_other) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d"), *e = array("e");
  fill({a, b, c});
  task_record* first = stage_.submitted({{a, update}, {d, write}});
  task_record* second = stage_.submitted({{b, update}, {e, write}});
  for (int i = 0; i < 20 && !stage_.is_out(first); ++i) {
    ASSERT_FALSE(disk_.orders.empty());
    move();
  }
  ASSERT_TRUE(stage_.is_out(first));
  run(first);
  for (int i = 0; i < 20 && !stage_.is_out(second); ++i) {
    ASSERT_FALSE(disk_.orders.empty());
    move();
  }
  EXPECT_TRUE(stage_.is_out(second));
  EXPECT_LE(stage_.rt->array_bytes_max.load(), 24u);
}

TEST_F(room, what_the_oldest_waits_for_is_not_evicted_for_those_behind_it) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d"), *e = array("e");
  fill({a, b, c});
  task_record* holds = stage_.submitted({{b, read}, {c, read}});
  task_record* oldest = stage_.submitted({{a, read}, {d, write}});  // waits for b or c
  task_record* behind = stage_.submitted({{e, write}});             // a would do
  EXPECT_TRUE(disk_.orders.empty());
  stage_.complete(holds);
  EXPECT_FALSE(moves(task_kind::spill, a));
  while (!disk_.orders.empty()) move();
  EXPECT_TRUE(stage_.is_out(oldest));
  EXPECT_TRUE(stage_.is_out(behind));
}

TEST_F(room, a_younger_task_goes_first_where_the_oldest_waits_for_tasks_and_not_for_the_disk) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  fill({a, b});
  task_record* holds = stage_.submitted({{a, read}, {b, read}});
  task_record* large = stage_.submitted({{c, write}, {d, write}});
  task_record* small = stage_.submitted({{c, read}});
  EXPECT_FALSE(stage_.is_out(small));  // after what writes it
  array_core* e = array("e");
  task_record* other = stage_.submitted({{e, write}});
  EXPECT_FALSE(stage_.is_out(large));
  EXPECT_TRUE(stage_.is_out(other));
  stage_.complete(holds);
  while (!stage_.out().empty() || !disk_.orders.empty()) {
    for (task_record* t : stage_.out()) run(t);
    if (!disk_.orders.empty()) move();
  }
  EXPECT_TRUE(stage_.is_done(large));
  EXPECT_TRUE(stage_.is_done(small));
}

TEST_F(room, a_full_disk_fails_the_task_that_needed_the_room_and_nobody_else) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d"), *e = array("e");
  fill({a, b, c});
  task_record* needs = stage_.submitted({{d, write}});
  move(full());
  ASSERT_TRUE(stage_.is_done(needs));
  EXPECT_EQ(cause_of(needs), errc::disk_full);
  EXPECT_EQ(disk_.discarded, 8u);
  task_record* reads = stage_.submitted({{a, read}, {b, read}, {c, read}});
  EXPECT_TRUE(stage_.is_out(reads));  // nothing was lost
  stage_.complete(reads);
  task_record* again = stage_.submitted({{e, write}});
  ASSERT_FALSE(stage_.is_done(again));
  move();  // there is room again
  EXPECT_TRUE(stage_.is_out(again));
}

TEST_F(room, where_the_disk_is_full_tiles_it_already_has_still_make_room) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d"), *e = array("e");
  fill({a, b, c});
  task_record* t = stage_.submitted({{d, write}});  // a leaves
  move();
  run(t);
  task_record* back = stage_.submitted({{a, read}});  // b leaves, a is here and on disk
  move();
  move();
  stage_.complete(back);
  task_record* more = stage_.submitted({{e, write}, {b, read}});  // c first, which cannot
  ASSERT_TRUE(moves(task_kind::spill, c));
  while (!disk_.orders.empty() && disk_.orders.front().task->kind == task_kind::spill) move(full());
  while (!disk_.orders.empty()) move();
  EXPECT_TRUE(stage_.is_done(more) || stage_.is_out(more));
  if (stage_.is_done(more)) {
    EXPECT_EQ(cause_of(more), errc::disk_full);
  }
  task_record* one = stage_.submitted({{a, read}});
  while (!disk_.orders.empty()) move();
  EXPECT_TRUE(stage_.is_out(one));
}

TEST_F(room, a_tile_that_cannot_be_read_fails_those_who_read_it_and_is_tried_again) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  fill({a, b, c});
  task_record* t = stage_.submitted({{d, write}});
  move();
  run(t);
  task_record *one = stage_.submitted({{a, read}}), *two = stage_.submitted({{a, read}});
  move();  // b leaves
  ASSERT_TRUE(moves(task_kind::load, a));
  move(std::make_exception_ptr(troupe::error(errc::io_failed, "the paper is torn")));
  for (task_record* x : {one, two}) {
    ASSERT_TRUE(stage_.is_done(x));
    EXPECT_EQ(cause_of(x), errc::io_failed);
  }
  task_record* later = stage_.submitted({{a, read}});
  ASSERT_TRUE(moves(task_kind::load, a));
  move();
  EXPECT_TRUE(stage_.is_out(later));
}

TEST_F(room, an_array_goes_with_its_room_and_its_place_on_disk) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  fill({a, b, c});
  task_record* t = stage_.submitted({{d, write}});
  move();
  run(t);
  for (array_core* x : {a, b}) {
    stage_.forget(x);
    stage_.placement_actor->drop(x);
  }
  EXPECT_EQ(disk_.discarded, 8u);
  EXPECT_EQ(stage_.placement_actor->report().bytes_on_disk, 0u);
  EXPECT_EQ(allocated(), 16u);
  EXPECT_TRUE(stage_.is_out(stage_.submitted({{array("e"), write}})));  // in the room of b
}

TEST_F(room, what_waits_for_room_is_abandoned_with_the_rest) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  fill({a, b, c});
  task_record* t = stage_.submitted({{d, write}});
  stage_.placement_actor->close();
  EXPECT_EQ(stage_.placement_actor->abandon_queued(), 1u);
  EXPECT_TRUE(stage_.is_done(t));
  move();  // what was under way ends
  EXPECT_TRUE(disk_.orders.empty());
}

}  // namespace
