// What this file is for: which copies of tiles are current where, what must travel for a task, what clashes by parts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/directory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace {

using namespace troupe;
using namespace troupe::logic;

constexpr std::size_t tile_bytes = 100;
constexpr memory_space gpu = 1, other_gpu = 2;

// An array of four tiles of 100 bytes.
struct directory_test : testing::Test {
  directory_test() {
    a.spec.element = 1;
    a.spec.rank = 1;
    a.spec.size = {400, 1, 1, 1};
    a.spec.tile = {100, 1, 1, 1};
    a.grid = {4, 1, 1, 1};
    a.tile_count = 4;
    a.tile_bytes_max = tile_bytes;
    a.coherence = std::make_unique<detail::array_coherence>(4);
  }
  // A task that uses one whole tile, or elements [lo, hi).
  struct use {
    task_record task;
    detail::access x;
    detail::region where;
  };
  task_record& whole(access_mode mode, std::uint32_t tile) {
    use& u = *uses.emplace_back(std::make_unique<use>());
    u.x.array = &a;
    u.x.mode = mode;
    u.x.tile = tile;
    u.task.accesses = &u.x;
    u.task.access_count = 1;
    u.task.sequence = uses.size();
    return u.task;
  }
  task_record& part(access_mode mode, index_t lo, index_t hi) {
    task_record& t = whole(mode, 0);
    use& u = *uses.back();
    u.where.lo = {lo, 0, 0, 0};
    u.where.hi = {hi, 1, 1, 1};
    u.where.limit_hi = {400, 1, 1, 1};
    u.x.where = &u.where;
    return t;
  }
  // The newest version of the tile is in that space only.
  void dirty(std::uint32_t tile, memory_space in) {
    task_record& t = whole(access_mode::write, tile);
    note_sent(t, in);
    note_done(t, in);
  }
  std::vector<std::pair<std::uint32_t, wanted>> in_the_way(const task_record& t, memory_space where) {
    std::vector<std::pair<std::uint32_t, wanted>> all;
    each_in_the_way(t, where, [&](const array_core&, std::uint32_t tile, const coherence_entry&, wanted w) {
      all.emplace_back(tile, w);
    });
    return all;
  }
  std::size_t clashes(const task_record& t, memory_space where, bool on_node = false) {
    std::size_t n = 0;
    each_part_clash(
        t, where, on_node, [](auto) { return true; }, [&](auto) { ++n; });
    return n;
  }
  static constexpr auto alive = [](auto) { return true; };

  array_core a;
  std::vector<std::unique_ptr<use>> uses;
};

TEST_F(directory_test, has_nothing_in_the_way_of_what_the_host_has) {
  EXPECT_TRUE(in_the_way(whole(access_mode::read, 1), gpu).empty());
  EXPECT_TRUE(in_the_way(whole(access_mode::update, 1), host_space).empty());
}

TEST_F(directory_test, tells_what_a_task_needs_of_a_copy_that_is_elsewhere) {
  dirty(1, gpu);
  using found = std::vector<std::pair<std::uint32_t, wanted>>;
  EXPECT_EQ(in_the_way(whole(access_mode::read, 1), host_space), (found{{1, wanted::at_home}}));
  EXPECT_EQ(in_the_way(whole(access_mode::read, 1), other_gpu), (found{{1, wanted::only_read}}));
  EXPECT_EQ(in_the_way(whole(access_mode::update, 1), other_gpu), (found{{1, wanted::anywhere}}));
  EXPECT_EQ(in_the_way(whole(access_mode::write, 1), other_gpu), (found{{1, wanted::nothing}}));
  EXPECT_TRUE(in_the_way(whole(access_mode::update, 1), gpu).empty()) << "it is there";
}

TEST_F(directory_test, has_the_hosts_copy_made_current_for_a_part_that_is_changed) {
  dirty(1, gpu);
  using found = std::vector<std::pair<std::uint32_t, wanted>>;
  EXPECT_EQ(in_the_way(part(access_mode::update, 120, 130), gpu), (found{{1, wanted::at_home}}));
  EXPECT_TRUE(in_the_way(part(access_mode::read, 120, 130), gpu).empty()) << "it is read from the copy there";
  EXPECT_EQ(in_the_way(part(access_mode::read, 50, 150), host_space), (found{{1, wanted::at_home}}));
}

TEST_F(directory_test, tells_parts_that_can_come_home_without_their_tile) {
  std::vector<box4> parts;
  EXPECT_EQ(parts_read(part(access_mode::read, 90, 130), a, 1, false, &parts), 30u);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].lo[0], 100);
  EXPECT_EQ(parts[0].hi[0], 130);
  EXPECT_EQ(parts_read(part(access_mode::read, 90, 150), a, 1, false, &parts), 0u) << "half of it";
  EXPECT_EQ(parts_read(part(access_mode::read, 0, 90), a, 1, false, &parts), 0u) << "nothing of that tile";
  EXPECT_TRUE(parts.empty());
  EXPECT_EQ(parts_read(part(access_mode::update, 110, 120), a, 1, false), 0u);
  EXPECT_EQ(parts_read(whole(access_mode::read, 1), a, 1, false), 0u);
  task_record& wrapped = part(access_mode::read, -10, 10);
  wrapped.accesses[0].where->edge = border::wrap;
  EXPECT_EQ(parts_read(wrapped, a, 0, false, &parts), 10u);
  EXPECT_EQ(parts_read(wrapped, a, 3, false, &parts), 10u);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].lo[0], 390);
  task_record& clamped = part(access_mode::read, -10, 10);
  clamped.accesses[0].where->edge = border::clamp;
  EXPECT_EQ(parts_read(clamped, a, 0, false), 10u);
  EXPECT_EQ(parts_read(clamped, a, 0, true), 0u) << "a device makes the border from the tile";
  dirty(1, gpu);
  EXPECT_EQ(bytes_missing(part(access_mode::read, 90, 130), host_space), 30u);
  EXPECT_EQ(bytes_missing(part(access_mode::read, 90, 160), host_space), tile_bytes);
}

TEST_F(directory_test, counts_the_bytes_that_a_task_would_have_to_wait_for) {
  EXPECT_EQ(bytes_missing(whole(access_mode::read, 2), host_space), 0u);
  EXPECT_EQ(bytes_missing(whole(access_mode::read, 2), gpu), tile_bytes);
  EXPECT_EQ(bytes_missing(whole(access_mode::write, 2), gpu), 0u) << "all of it is overwritten";
  note_sent(whole(access_mode::read, 2), gpu);
  EXPECT_EQ(bytes_missing(whole(access_mode::read, 2), gpu), 0u);
  EXPECT_EQ(bytes_missing(whole(access_mode::read, 2), other_gpu), tile_bytes);
  EXPECT_TRUE(spaces_with_data_of(whole(access_mode::read, 2)).contains(gpu));
}

TEST_F(directory_test, makes_older_copies_stale_with_each_write) {
  note_sent(whole(access_mode::read, 2), gpu);
  dirty(2, other_gpu);
  EXPECT_EQ(bytes_missing(whole(access_mode::read, 2), gpu), tile_bytes);
  EXPECT_EQ(bytes_missing(whole(access_mode::read, 2), other_gpu), 0u);
  task_record& here = whole(access_mode::write, 2);
  note_done(here, host_space);
  EXPECT_EQ(bytes_missing(whole(access_mode::read, 2), other_gpu), tile_bytes);
  EXPECT_TRUE(in_the_way(whole(access_mode::read, 2), host_space).empty());
}

// The contents of lost tiles are not seen by whom overwrites them, whether several tiles are written by one access or by one each.
TEST_F(directory_test, lets_lost_tiles_be_written_anew_by_whom_covers_them) {
  const auto lose = [&](std::uint32_t tile) {
    a.coherence->tiles[tile].lost = std::make_exception_ptr(error(errc::data_lost, std::to_string(tile)));
  };
  for (std::uint32_t tile : {1U, 2U, 3U}) lose(tile);
  EXPECT_TRUE(lost_input(part(access_mode::update, 0, 400)));
  EXPECT_TRUE(lost_input(part(access_mode::read, 0, 101)));
  EXPECT_FALSE(lost_input(part(access_mode::read, 0, 100)));
  EXPECT_TRUE(lost_input(part(access_mode::write, 0, 399))) << "an element of tile 3 is lost";
  task_record& some = part(access_mode::write, 50, 300);
  EXPECT_FALSE(lost_input(some));
  EXPECT_TRUE(touches_lost(some));
  EXPECT_FALSE(touches_lost(part(access_mode::write, 0, 100)));
  some.error = std::make_exception_ptr(1);
  note_done(some, host_space);
  EXPECT_TRUE(a.coherence->tiles[1].lost) << "it has failed";
  some.error = nullptr;
  note_done(some, host_space);
  EXPECT_FALSE(a.coherence->tiles[1].lost);
  EXPECT_FALSE(a.coherence->tiles[2].lost);
  EXPECT_TRUE(a.coherence->tiles[3].lost);
  EXPECT_FALSE(lost_input(whole(access_mode::write, 3)));
  EXPECT_TRUE(lost_input(whole(access_mode::update, 3)));
}

TEST_F(directory_test, counts_bytes_of_the_tile_that_is_changed_apart) {
  dirty(1, gpu);
  space_set reach;
  reach.insert(gpu);
  sources from(&reach);
  EXPECT_EQ(bytes_missing(whole(access_mode::update, 1), other_gpu, from), tile_bytes);
  EXPECT_EQ(from.changed(), tile_bytes);
  EXPECT_EQ(from.direct(), tile_bytes);
  EXPECT_EQ(from.from_host(), 0u);
  from.restart(nullptr);
  EXPECT_EQ(bytes_missing(whole(access_mode::update, 1), other_gpu, from), tile_bytes);
  EXPECT_EQ(from.direct(), 0u) << "nothing reaches it: by way of the host";
  EXPECT_EQ(from.from_host(), tile_bytes);
}

TEST_F(directory_test, lets_parts_clash_that_a_device_copies_with_those_that_are_written) {
  task_record& reads = part(access_mode::read, 110, 120);
  note_parts(reads, gpu, false, alive);
  EXPECT_EQ(clashes(part(access_mode::update, 150, 160), host_space), 1u);
  EXPECT_EQ(clashes(part(access_mode::update, 210, 220), host_space), 0u) << "another tile";
  EXPECT_EQ(clashes(part(access_mode::read, 150, 160), gpu), 0u) << "two readers";
  forget_parts(reads);
  EXPECT_EQ(clashes(part(access_mode::update, 150, 160), host_space), 0u);
  note_parts(part(access_mode::update, 150, 160), host_space, false, alive);
  EXPECT_EQ(clashes(part(access_mode::read, 110, 120), gpu), 1u);
  EXPECT_EQ(clashes(part(access_mode::read, 110, 120), host_space), 0u) << "the host reads its part only";
}

TEST_F(directory_test, sends_nodes_parts_of_tiles_while_others_are_written) {
  constexpr memory_space node = other_gpu;
  task_record& reads = part(access_mode::read, 110, 120);
  note_parts(reads, node, true, alive);
  EXPECT_EQ(clashes(part(access_mode::update, 150, 160), host_space), 0u);
  note_parts(part(access_mode::update, 150, 160), node, true, alive);
  EXPECT_EQ(clashes(reads, node, true), 0u);
  EXPECT_EQ(clashes(reads, gpu), 1u) << "what the node writes comes home under what the device copies";
}

TEST(sources, adds_further_spaces_to_the_last_one_that_it_has_room_for) {
  sources all;
  for (memory_space s = 1; s <= 12; ++s) all.add(s, 10);
  all.add(host_space, 5);
  EXPECT_EQ(all.direct(), 120u);
  std::uint64_t sum = 0;
  int spaces = 0;
  all.each([&](memory_space, std::uint64_t n) {
    sum += n;
    ++spaces;
  });
  EXPECT_EQ(sum, 125u);
  EXPECT_EQ(spaces, 9);
}

}  // namespace
