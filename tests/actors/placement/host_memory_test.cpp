// What this file is for: which tasks get room in host memory, which tiles leave for it, and what is told of that.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/host_memory.hpp"
#include "actors/memory/internal_tasks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "loose_graph.hpp"
#include "paper_disk.hpp"

namespace {

using namespace test;
using enum troupe::access_mode;
using troupe::errc;

/// Room for three tiles of 8 bytes.
class rooms : public testing::Test, protected loose_graph, private host_memory::owner {
 protected:
  rooms() : memory(24, *rt, order.graph(), *this) {}
  ~rooms() override {
    while (!disk.orders.empty()) move();
  }

  /// The task gets room at once, or the test fails.
  task_record* given(const std::vector<use>& uses) {
    task_record* const t = ordered(uses);
    EXPECT_FALSE(memory.must_wait(*t));
    return t;
  }
  task_record* waiting(const std::vector<use>& uses, std::string name = {}) {
    task_record* const t = ordered(uses, std::move(name));
    EXPECT_TRUE(memory.must_wait(*t));
    return t;
  }
  /// Does what a body does, and what placement does then.
  std::vector<task_record*> end(task_record* t) {
    for (int i = 0; i < t->access_count; ++i)
      if (t->accesses[i].mode != read) host_tile(*rt, *t->accesses[i].array, 0, true);
    memory.give_back(*t);
    return retire(t);
  }
  array_core* filled(const std::string& name) {
    array_core* const a = array(name);
    end(given({{a, write}}));
    return a;
  }
  /// The disk does the first thing that it was told. Returns the tasks that waited for it.
  std::vector<task_record*> move(std::exception_ptr fails = nullptr) {
    task_record* const t = own(disk.orders.front().task);
    disk.orders.pop_front();
    array_core& a = *t->accesses[0].array;
    if (!fails && t->kind == task_kind::spill) free_host_tile(*rt, a, 0);
    if (!fails && t->kind == task_kind::load) host_tile(*rt, a, 0, true);
    claim(*t);
    t->error = fails;
    memory.account_for_move(*t);
    t->error = nullptr;  // the one that waited looks itself
    fulfil(*t, board);
    return retire(t);
  }
  static errc code_of(const std::exception_ptr& e) {
    try {
      std::rethrow_exception(e);
    } catch (const troupe::error& x) {
      return x.code();
    }
  }
  static std::string text_of(const std::exception_ptr& e) {
    try {
      std::rethrow_exception(e);
    } catch (const std::exception& x) {
      return x.what();
    }
  }
  std::exception_ptr broken() const { return std::make_exception_ptr(troupe::error(errc::disk_full, "it is full")); }

  void room_granted(task_record& t) override { granted.push_back(&t); }
  void room_refused(task_record& t, const std::exception_ptr& why) override { refused.emplace_back(&t, why); }
  void room_unwanted(task_record& t) override { unwanted.push_back(&t); }
  void fetch(array_core& a, std::uint32_t, coherence_entry& entry) override {
    task_record* const t = own(make_transfer(*rt, a, 0, false));
    t->sequence = order.graph().next_number();
    entry.moving = {t, t->sequence};
    fetched.push_back(t);
  }

  using tasks = std::vector<task_record*>;
  paper_disk disk;
  host_memory memory;
  tasks granted, unwanted, fetched;
  std::vector<std::pair<task_record*, std::exception_ptr>> refused;
};

TEST_F(rooms, are_given_as_long_as_there_are_some) {
  memory.spill_to(disk);
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  task_record* const first = given({{a, write}, {b, write}});
  given({{c, write}});
  task_record* const next = waiting({{d, write}});
  EXPECT_FALSE(memory.has_room_now(*next));
  EXPECT_FALSE(memory.give_room()) << "all of it is in use";
  memory.give_back(*first);  // tiles that were not filled are dropped
  EXPECT_TRUE(memory.give_room());
  EXPECT_EQ(granted, tasks{next});
  EXPECT_TRUE(next->marks & mark_has_room);
}

TEST_F(rooms, go_to_the_oldest_task_first_whatever_the_order_in_which_they_ask) {
  memory.spill_to(disk);
  array_core *a = array("a"), *b = array("b"), *c = array("c");
  task_record* const all = given({{a, write}, {b, write}, {c, write}});
  task_record* const older = ordered({{array("d"), write}, {array("e"), write}});
  task_record* const younger = ordered({{array("f"), write}, {array("g"), write}});
  EXPECT_TRUE(memory.must_wait(*younger));
  EXPECT_TRUE(memory.must_wait(*older));
  memory.give_back(*all);
  EXPECT_TRUE(memory.give_room());
  EXPECT_EQ(granted, tasks{older}) << "there is not enough for both";
  EXPECT_EQ(memory.take_waiting(), tasks{younger});
  EXPECT_EQ(memory.take_waiting(), tasks());
}

TEST_F(rooms, are_made_by_the_tile_used_longest_ago_which_goes_to_the_disk) {
  memory.spill_to(disk);
  array_core* const a = filled("a");
  filled("b"), filled("c");
  task_record* const t = waiting({{array("d"), write}});
  EXPECT_FALSE(memory.give_room()) << "it is on its way";
  ASSERT_EQ(disk.orders.size(), 1u);
  EXPECT_EQ(disk.orders[0].task->kind, task_kind::spill);
  EXPECT_EQ(disk.orders[0].task->accesses[0].array, a);
  EXPECT_FALSE(memory.is_still());
  move();
  EXPECT_TRUE(memory.is_still());
  EXPECT_TRUE(memory.give_room());
  EXPECT_EQ(granted, tasks{t});
}

/// With a disk; tile `a` has gone there, `b`, `c` and `d` are in memory.
class rooms_with_a_disk : public rooms {
 protected:
  rooms_with_a_disk() {
    memory.spill_to(disk);
    a = filled("a"), b = filled("b"), c = filled("c"), d = array("d");
    task_record* const t = waiting({{d, write}});
    memory.give_room();
    move();
    EXPECT_TRUE(memory.give_room());
    EXPECT_EQ(std::exchange(granted, {}), tasks{t});
    end(t);
  }
  /// A task that waits for `a`, whose load has been ordered.
  task_record* reader() {
    task_record* const t = waiting({{a, read}});
    memory.give_room();
    move();  // `b` leaves
    EXPECT_FALSE(memory.give_room()) << "it has room, and waits for what is to be read";
    EXPECT_EQ(disk.orders.size(), 1u);
    EXPECT_EQ(disk.orders[0].task->kind, task_kind::load);
    EXPECT_EQ(disk.orders[0].task->accesses[0].array, a);
    return t;
  }
  array_core *a, *b, *c, *d;
};

TEST_F(rooms_with_a_disk, are_filled_before_the_task_goes_on) {
  task_record* const t = reader();
  EXPECT_EQ(move(), tasks{t});
  EXPECT_FALSE(memory.must_wait(*t)) << "it has its room, and what is in it";
  EXPECT_TRUE(granted.empty());
  end(t);
}

TEST_F(rooms_with_a_disk, that_could_not_be_filled_fail_the_task_with_the_error_of_the_disk) {
  task_record* const t = reader();
  EXPECT_EQ(move(broken()), tasks{t});
  EXPECT_TRUE(memory.must_wait(*t));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].first, t);
  EXPECT_EQ(code_of(refused[0].second), errc::disk_full);
  memory.give_back(*t);
}

TEST_F(rooms_with_a_disk, of_tiles_that_the_disk_has_are_free_at_once) {
  end([&] {
    task_record* const t = reader();
    move();
    EXPECT_FALSE(memory.must_wait(*t));
    return t;
  }());
  EXPECT_TRUE(memory.is_still());
  end([&] {  // c, which only memory has, is the oldest
    task_record* const t = waiting({{array("e"), write}});
    memory.give_room();
    EXPECT_EQ(disk.orders.front().task->accesses[0].array, c);
    move();
    EXPECT_TRUE(memory.give_room());
    return t;
  }());
  granted.clear();
  task_record* const t = waiting({{array("f"), write}, {array("g"), write}});
  memory.give_room();
  ASSERT_EQ(disk.orders.size(), 1u) << "d goes; a is on the disk already, and makes room without a move";
  EXPECT_EQ(disk.orders.front().task->accesses[0].array, d);
  move();
  EXPECT_TRUE(memory.give_room());
  EXPECT_EQ(granted, tasks{t});
}

TEST_F(rooms_with_a_disk, fail_the_task_for_which_a_tile_could_not_leave) {
  task_record* const t = waiting({{array("e"), write}});
  memory.give_room();
  move(broken());
  EXPECT_FALSE(memory.give_room());
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].first, t);
  EXPECT_EQ(code_of(refused[0].second), errc::disk_full);
  EXPECT_EQ(disk.discarded, 8u) << "its room there is given up";
}

TEST_F(rooms_with_a_disk, are_read_from_there_by_who_wants_a_copy_of_what_memory_has_not) {
  std::byte to[8];
  EXPECT_TRUE(memory.read_from_disk(*a, 0, to));
  EXPECT_FALSE(memory.read_from_disk(*b, 0, to));
  EXPECT_FALSE(memory.keeps_room(*a, 0));
  EXPECT_TRUE(memory.keeps_room(*b, 0));
}

TEST_F(rooms_with_a_disk, are_given_up_there_with_the_array) {
  memory.forget(*a);
  EXPECT_EQ(disk.discarded, 8u);
  memory.forget(*b);
  EXPECT_EQ(disk.discarded, 8u) << "it was never there";
  given({{array("e"), write}});  // in the room of b
}

TEST_F(rooms_with_a_disk, are_made_through_memory_by_a_tile_that_only_a_device_has) {
  b->coherence = std::make_unique<array_coherence>(1);
  b->coherence->tiles[0].dirty_in = 1;
  task_record* const t = waiting({{array("e"), write}});
  memory.give_room();
  ASSERT_EQ(fetched.size(), 1u);
  EXPECT_TRUE(disk.orders.empty());
  retire(fetched[0]);
  b->coherence->tiles[0].dirty_in = host_space;
  memory.went_home(fetched[0]->accesses[0]);
  ASSERT_EQ(disk.orders.size(), 1u);
  EXPECT_EQ(disk.orders[0].task->kind, task_kind::spill);
  move();
  EXPECT_TRUE(memory.give_room());
  EXPECT_EQ(granted, tasks{t});
}

TEST_F(rooms, that_no_disk_can_make_are_refused_by_name) {
  filled("a"), filled("b"), filled("c");
  task_record* const t = waiting({{array("d"), write}});
  EXPECT_FALSE(memory.give_room());
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].first, t);
  EXPECT_EQ(code_of(refused[0].second), errc::out_of_memory);
  EXPECT_NE(text_of(refused[0].second).find("options::spill_directory"), std::string::npos);
}

TEST_F(rooms, of_arrays_without_handles_are_waited_for) {
  array_core* const a = filled("a");
  filled("b"), filled("c");
  a->dropped = true;
  memory.dropped(*a);
  task_record* const t = waiting({{array("d"), write}});
  EXPECT_FALSE(memory.give_room());
  EXPECT_TRUE(refused.empty()) << "its room will be free when its last task has ended";
  memory.forget(*a);
  EXPECT_TRUE(memory.give_room());
  EXPECT_EQ(granted, tasks{t});
}

TEST_F(rooms, are_not_given_to_what_was_cancelled_meanwhile) {
  memory.spill_to(disk);
  task_record* const all = given({{array("a"), write}, {array("b"), write}, {array("c"), write}});
  task_record* const t = waiting({{array("d"), write}});
  ASSERT_TRUE(claim(*t));
  memory.give_back(*all);
  EXPECT_FALSE(memory.give_room());
  EXPECT_EQ(unwanted, tasks{t});
  EXPECT_TRUE(granted.empty());
  EXPECT_EQ(memory.take_waiting(), tasks());
}

TEST_F(rooms, of_more_than_all_there_are_are_refused_before_and_after_a_task_is_accepted) {
  array_core* const large = array("large", 4);
  task_record* const t = ordered({{large, write}}, "giant");
  try {
    memory.check_size(*t);
    FAIL();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory);
    EXPECT_NE(std::string(e.what()).find("'giant' needs 32 bytes"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("'large'"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(memory.must_wait(*t));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(code_of(refused[0].second), errc::out_of_memory);
  memory.check_size(*ordered({{array("small", 3), write}}));
}

TEST_F(rooms, of_a_task_and_of_one_that_it_waits_for_must_fit_together) {
  array_core *a = array("a"), *b = array("b"), *c = array("c"), *d = array("d");
  task_record* const inside = given({{a, write}, {b, write}});
  EXPECT_EQ(memory.too_much_beside(*inside, *ordered({{c, write}})), nullptr);
  EXPECT_EQ(memory.too_much_beside(*inside, *ordered({{c, write}, {b, read}})), nullptr) << "they share one";
  task_record* const two = ordered({{c, write}, {d, write}}, "two");
  const std::exception_ptr why = memory.too_much_beside(*inside, *two);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(code_of(why), errc::out_of_memory);
  memory.give_back(*inside);
  EXPECT_EQ(memory.too_much_beside(*inside, *two), nullptr) << "its room is free again";
}

}  // namespace
