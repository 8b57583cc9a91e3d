// What this file is for: which tiles have room, which go first, what a task needs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/host_budget.hpp"
#include "actors/logic/data/array_coherence.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

using namespace troupe::detail;
using use = troupe::detail::access;  // the system has an access() of its own
using troupe::access_mode;
using troupe::index_t;
using troupe::logic::box4;
using troupe::logic::host_budget;
using stage = budgeted_tile::stage;

// An array of one dimension and a task that touches it.
class scene {
 public:
  explicit scene(std::uint64_t limit) : budget(limit) {}

  array_core& array(index_t size, index_t tile) {
    auto a = std::make_unique<array_core>();
    a->spec.rank = 1;
    a->spec.element = 1;
    a->spec.size = {size, 1, 1, 1};
    a->spec.tile = {tile, 1, 1, 1};
    a->grid = {(size + tile - 1) / tile, 1, 1, 1};
    a->tile_count = static_cast<std::uint32_t>(a->grid[0]);
    a->tile_bytes_max = static_cast<std::size_t>(tile);
    a->many_bytes = std::make_unique<tile_bytes[]>(a->tile_count);
    a->bytes = a->many_bytes.get();
    arrays_.push_back(std::move(a));
    return *arrays_.back();
  }
  use whole(array_core& a, std::uint32_t tile, access_mode mode) {
    use x;
    x.array = &a;
    x.tile = tile;
    x.mode = mode;
    return x;
  }
  use part(array_core& a, index_t lo, index_t hi, access_mode mode) {
    use x = whole(a, 0, mode);
    auto r = std::make_unique<region>();
    r->lo = {lo, 0, 0, 0};
    r->hi = {hi, 1, 1, 1};
    r->limit_hi = a.spec.size;
    x.where = r.get();
    regions_.push_back(std::move(r));
    return x;
  }
  task_record& task(std::vector<use> uses) {
    auto t = std::make_unique<task_record>();
    uses_.push_back(std::make_unique<std::vector<use>>(std::move(uses)));
    t->accesses = uses_.back()->data();
    t->access_count = static_cast<std::uint16_t>(uses_.back()->size());
    tasks_.push_back(std::move(t));
    return *tasks_.back();
  }
  // Runs it at once: its tiles have bytes afterwards.
  void run(task_record& t) {
    budget.reserve(budget.needs_of(t));
    for (const auto& n : budget.needs_of(t)) fill(*n.tile);
    budget.let_go(budget.needs_of(t));
  }
  void touch(array_core& a, std::uint32_t tile, access_mode mode = access_mode::write) {
    run(task({whole(a, tile, mode)}));
  }
  void fill(budgeted_tile& p) { p.array->bytes[p.tile].data = &byte_; }
  void empty(budgeted_tile& p) { p.array->bytes[p.tile].data = nullptr; }
  budgeted_tile& tile(array_core& a, std::uint32_t tile) { return a.budgeted->tiles[tile]; }
  std::vector<std::uint32_t> in_order() {
    std::vector<std::uint32_t> tiles;
    for (const budgeted_tile* p = budget.oldest(); p; p = p->newer) tiles.push_back(p->tile);
    return tiles;
  }
  void to_disk(budgeted_tile& p) {
    budget.leave(p);
    budget.offset_on_disk(p);
    empty(p);
    budget.has_left(p);
  }

  host_budget budget;

 private:
  std::byte byte_{};
  std::vector<std::unique_ptr<array_core>> arrays_;
  std::vector<std::unique_ptr<region>> regions_;
  std::vector<std::unique_ptr<task_record>> tasks_;
  std::vector<std::unique_ptr<std::vector<use>>> uses_;
};

using order = std::vector<std::uint32_t>;

TEST(host_budget, gives_what_was_used_longest_ago_first) {
  scene s(1000);
  auto& a = s.array(50, 10);
  for (std::uint32_t t : {0u, 1u, 2u, 3u, 4u}) s.touch(a, t);
  EXPECT_EQ(s.in_order(), (order{0, 1, 2, 3, 4}));
  s.touch(a, 1, access_mode::read);
  s.touch(a, 0, access_mode::update);
  EXPECT_EQ(s.in_order(), (order{2, 3, 4, 1, 0}));
  EXPECT_EQ(s.budget.used(), 50u);
}

TEST(host_budget, never_gives_what_is_held_and_counts_holders) {
  scene s(1000);
  auto& a = s.array(30, 10);
  for (std::uint32_t t : {0u, 1u, 2u}) s.touch(a, t);
  auto& one = s.task({s.whole(a, 1, access_mode::read)});
  auto& two = s.task({s.whole(a, 1, access_mode::read), s.whole(a, 2, access_mode::read)});
  s.budget.reserve(s.budget.needs_of(one));
  s.budget.reserve(s.budget.needs_of(two));
  EXPECT_EQ(s.in_order(), (order{0}));
  s.budget.let_go(s.budget.needs_of(one));
  EXPECT_EQ(s.in_order(), (order{0}));
  s.budget.let_go(s.budget.needs_of(two));
  EXPECT_EQ(s.in_order(), (order{0, 1, 2}));
}

TEST(host_budget, a_tile_named_twice_is_needed_once_and_read_if_anybody_reads_it) {
  scene s(1000);
  auto& a = s.array(40, 10);
  auto& t = s.task(
      {s.part(a, 5, 20, access_mode::read), s.whole(a, 1, access_mode::write), s.part(a, 20, 35, access_mode::write)});
  const auto needs = s.budget.needs_of(t);
  ASSERT_EQ(needs.size(), 4u);
  const bool contents[] = {true, true, false, true}, changed[] = {false, true, true, true};
  for (const auto& n : needs) {
    EXPECT_EQ(n.contents, contents[n.tile->tile]) << n.tile->tile;
    EXPECT_EQ(n.changed, changed[n.tile->tile]) << n.tile->tile;
  }
  EXPECT_EQ(host_budget::missing(needs), 40u);
}

TEST(host_budget, memory_of_the_caller_and_partials_need_nothing) {
  scene s(1000);
  auto& mine = s.array(20, 10);
  std::byte memory[20];
  mine.spec.adopted = memory;
  auto& sum = s.array(20, 10);
  auto& t = s.task({s.whole(mine, 0, access_mode::update), s.part(sum, 0, 20, access_mode::reduce)});
  EXPECT_TRUE(s.budget.needs_of(t).empty());
}

TEST(host_budget, room_is_free_once_a_tile_has_left_and_taken_before_it_comes_back) {
  scene s(30);
  auto& a = s.array(30, 10);
  for (std::uint32_t t : {0u, 1u, 2u}) s.touch(a, t);
  EXPECT_EQ(s.budget.free(), 0u);
  budgeted_tile& p = s.tile(a, 0);
  s.budget.leave(p);
  EXPECT_EQ(s.budget.free(), 0u);
  EXPECT_EQ(s.budget.leaving(), 10u);
  s.budget.offset_on_disk(p);
  s.empty(p);
  s.budget.has_left(p);
  EXPECT_EQ(s.budget.free(), 10u);
  EXPECT_EQ(s.budget.leaving(), 0u);
  EXPECT_EQ(s.budget.on_disk(), 10u);
  auto& reads = s.task({s.whole(a, 0, access_mode::read)});
  EXPECT_EQ(host_budget::missing(s.budget.needs_of(reads)), 10u);
  s.budget.reserve(s.budget.needs_of(reads));
  EXPECT_EQ(p.at, stage::coming);
  EXPECT_EQ(s.budget.free(), 0u);
  s.fill(p);
  s.budget.has_come(p);
  EXPECT_EQ(p.at, stage::here);
  s.budget.let_go(s.budget.needs_of(reads));
  EXPECT_EQ(s.in_order(), (order{1, 2, 0}));
}

TEST(host_budget, what_is_unchanged_since_it_came_back_is_spare_and_what_was_changed_is_not) {
  scene s(30);
  auto& a = s.array(20, 10);
  s.touch(a, 0);
  s.touch(a, 1);
  EXPECT_FALSE(host_budget::is_spare(s.tile(a, 0)));
  for (std::uint32_t t : {0u, 1u}) s.to_disk(s.tile(a, t));
  auto& reads = s.task({s.whole(a, 0, access_mode::read), s.whole(a, 1, access_mode::update)});
  s.budget.reserve(s.budget.needs_of(reads));
  for (std::uint32_t t : {0u, 1u}) {
    s.fill(s.tile(a, t));
    s.budget.has_come(s.tile(a, t));
  }
  s.budget.let_go(s.budget.needs_of(reads));
  EXPECT_TRUE(host_budget::is_spare(s.tile(a, 0)));
  EXPECT_FALSE(host_budget::is_spare(s.tile(a, 1)));
  s.budget.drop(s.tile(a, 0));
  EXPECT_EQ(s.tile(a, 0).at, stage::on_disk);
}

TEST(host_budget, what_is_overwritten_as_a_whole_is_not_read_from_disk) {
  scene s(30);
  auto& a = s.array(20, 10);
  s.touch(a, 0);
  s.to_disk(s.tile(a, 0));
  auto& writes = s.task({s.whole(a, 0, access_mode::write)});
  s.budget.reserve(s.budget.needs_of(writes));
  EXPECT_EQ(s.tile(a, 0).at, stage::here);
  s.fill(s.tile(a, 0));
  s.budget.let_go(s.budget.needs_of(writes));
  EXPECT_FALSE(host_budget::is_spare(s.tile(a, 0)));
}

TEST(host_budget, a_tile_that_nobody_has_filled_is_spare_and_one_that_is_dirty_elsewhere_is_not) {
  scene s(30);
  auto& a = s.array(20, 10);
  auto& t = s.task({s.whole(a, 0, access_mode::write), s.whole(a, 1, access_mode::write)});
  s.budget.reserve(s.budget.needs_of(t));
  s.budget.let_go(s.budget.needs_of(t));
  a.coherence = std::make_unique<array_coherence>(2);
  a.coherence->tiles[1].dirty_in = 3;
  EXPECT_TRUE(host_budget::is_spare(s.tile(a, 0)));
  EXPECT_FALSE(host_budget::is_spare(s.tile(a, 1)));
  s.budget.drop(s.tile(a, 0));
  EXPECT_EQ(s.tile(a, 0).at, stage::nowhere);
  EXPECT_EQ(s.budget.used(), 10u);
}

TEST(host_budget, what_could_not_leave_stays_and_goes_first_what_could_not_come_takes_no_room) {
  scene s(30);
  auto& a = s.array(30, 10);
  for (std::uint32_t t : {0u, 1u, 2u}) s.touch(a, t);
  s.budget.leave(s.tile(a, 1));
  s.budget.stay(s.tile(a, 1));
  EXPECT_EQ(s.in_order(), (order{1, 0, 2}));
  EXPECT_EQ(s.budget.leaving(), 0u);
  s.to_disk(s.tile(a, 1));
  auto& reads = s.task({s.whole(a, 1, access_mode::read)});
  s.budget.reserve(s.budget.needs_of(reads));
  s.budget.could_not_come(s.tile(a, 1), std::make_exception_ptr(std::runtime_error("broken")));
  EXPECT_EQ(s.budget.free(), 10u);
  EXPECT_EQ(s.tile(a, 1).at, stage::on_disk);
  EXPECT_TRUE(s.tile(a, 1).trouble);
  s.budget.let_go(s.budget.needs_of(reads));
  EXPECT_EQ(s.in_order(), (order{0, 2}));
  EXPECT_EQ(s.budget.on_disk(), 10u);
}

TEST(host_budget, forgets_an_array_with_its_room_here_and_on_disk) {
  scene s(100);
  auto &a = s.array(30, 10), &b = s.array(10, 10);
  for (std::uint32_t t : {0u, 1u, 2u}) s.touch(a, t);
  s.touch(b, 0);
  s.to_disk(s.tile(a, 2));
  a.dropped = true;
  s.budget.dropped(a);
  EXPECT_EQ(s.budget.going(), 20u);
  std::uint64_t discarded = 0;
  s.budget.forget(a, [&](std::uint64_t, std::uint64_t bytes) { discarded += bytes; });
  EXPECT_EQ(discarded, 10u);
  EXPECT_EQ(s.budget.used(), 10u);
  EXPECT_EQ(s.budget.going(), 0u);
  EXPECT_EQ(s.budget.on_disk(), 0u);
  EXPECT_EQ(s.in_order(), (order{0}));
}

TEST(host_budget, the_size_of_a_task_counts_tiles_once_and_names_the_largest_array) {
  scene s(100);
  auto &a = s.array(100, 10), &b = s.array(45, 10);
  const array_core* largest = nullptr;
  auto& t = s.task({s.part(a, 5, 25, access_mode::read), s.part(a, 15, 35, access_mode::update),
                    s.part(b, 41, 45, access_mode::write)});
  EXPECT_EQ(troupe::logic::host_bytes_of(t, 40, largest), 45u);  // 4 tiles of 10, one of 5
  EXPECT_EQ(largest, &a);
  EXPECT_GE(troupe::logic::host_bytes_of(t, 10, largest), 11u);
  auto& sum = s.task({s.part(a, 0, 60, access_mode::reduce), s.whole(b, 0, access_mode::read)});
  EXPECT_EQ(troupe::logic::host_bytes_of(sum, 20, largest), 60u);
  EXPECT_EQ(s.budget.bytes_together(t, sum), 55u);
}

}  // namespace
