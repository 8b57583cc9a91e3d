// What this file is for: what is known of a node's tiles follows what is sent there, and what fails there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/remote_copies.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

namespace {

using namespace troupe::detail;
using troupe::access_mode;
using troupe::logic::box4;
using tiles = std::vector<remote_copies::tile_of>;

/// An array of two tiles of four elements, which the node knows; jobs up to `running` have not ended.
struct remote_copies_test : testing::Test {
  remote_copies_test() {
    a.id = 5;
    a.spec.rank = 1;
    a.spec.element = 8;
    a.spec.size = {8, 1, 1, 1};
    a.spec.tile = {4, 1, 1, 1};
    a.grid = {2, 1, 1, 1};
    a.tile_count = 2;
    a.coherence = std::make_unique<array_coherence>(2);
    known.know(a);
  }
  static box4 part(troupe::index_t lo, troupe::index_t hi) { return {{lo, 0, 0, 0}, {hi, 1, 1, 1}}; }
  /// Returns how many boxes have to be sent for a job that touches the box.
  std::size_t need(const box4& touched, std::uint64_t job) {
    std::size_t n = 0;
    was_in_use = false;
    sent_elements = 0;
    known.need(a, touched, job, runs, [&](std::uint32_t, const box4& b, bool in_use) {
      ++n;
      sent_elements += b.volume();
      was_in_use = was_in_use || in_use;
    });
    return n;
  }
  /// A job whose task uses a tile.
  struct sent {
    task_record task;
    job j;
  };
  void send(sent& s, std::uint64_t id, access_mode mode, std::uint32_t tile = 0) {
    s.j.id = id;
    s.j.task = &s.task;
    s.task.accesses = s.task.own_accesses.data();
    s.task.access_count = 1;
    s.task.accesses[0] = {};
    s.task.accesses[0].array = &a;
    s.task.accesses[0].mode = mode;
    s.task.accesses[0].tile = tile;
    if (mode != access_mode::write) need(a.tile_box(tile), id);
    s.j.last_write = known.note_written(s.task, id, s.j.wrote);
  }
  void written_elsewhere(std::uint32_t tile = 0) { a.coherence->tiles[tile].version.fetch_add(1); }
  tiles dirty() const {
    tiles all;
    known.each_dirty([&](array_core* of, std::uint32_t tile, bool) { all.emplace_back(of, tile); });
    return all;
  }

  array_core a;
  remote_copies known;
  bool was_in_use = false;
  troupe::index_t sent_elements = 0;  // for the last one
  std::uint64_t running = 100;
  const std::function<bool(std::uint64_t)> runs = [this](std::uint64_t id) { return id != 0 && id <= running; };
};

TEST_F(remote_copies_test, an_array_is_told_once) {
  array_core other;
  other.id = 6;
  other.spec.name = "b";
  const troupe::detail::wire::array_descriptor* const card = known.know(other);
  ASSERT_NE(card, nullptr);
  EXPECT_EQ(card->name, "b");
  EXPECT_EQ(known.know(other), nullptr);
  EXPECT_EQ(known.find(6), &other);
  EXPECT_TRUE(known.forget(6));
  EXPECT_FALSE(known.forget(6));
  EXPECT_EQ(known.find(6), nullptr);
}

TEST_F(remote_copies_test, an_array_that_was_forgotten_is_told_and_needed_again) {
  need(part(0, 4), 1);
  EXPECT_TRUE(known.forget(a.id));
  EXPECT_NE(known.know(a), nullptr);
  EXPECT_EQ(need(part(0, 4), 2), 1u);
  known.clear();
  EXPECT_TRUE(known.empty());
  EXPECT_NE(known.know(a), nullptr);
  EXPECT_EQ(need(part(0, 4), 3), 1u);
}

TEST_F(remote_copies_test, arrays_are_kept_apart) {
  array_core other;
  other.id = 6;
  other.spec = a.spec;
  other.grid = a.grid;
  other.tile_count = 2;
  other.coherence = std::make_unique<array_coherence>(2);
  known.know(other);  // after `a`, which is meant here
  EXPECT_EQ(need(part(0, 4), 1), 1u);
  EXPECT_TRUE(known.has_version(a.id, 0, 1));
  EXPECT_FALSE(known.has_version(other.id, 0, 1));
}

TEST_F(remote_copies_test, only_what_is_not_there_is_needed) {
  EXPECT_EQ(need(part(1, 3), 1), 1u);
  EXPECT_EQ(need(part(1, 3), 2), 0u);
  EXPECT_EQ(need(part(2, 3), 2), 0u);  // inside
  EXPECT_EQ(need(part(2, 6), 3), 2u);  // more of the first tile, and of the second
  EXPECT_EQ(need(part(0, 4), 4), 1u);  // all of the first
  EXPECT_EQ(need(part(0, 2), 5), 0u);
}

// Other jobs may be changing other parts of the tile, of which this node has no more than what was there before.
TEST_F(remote_copies_test, a_job_is_sent_what_it_touches_and_is_not_there) {
  a.spec.size[0] = a.spec.tile[0] = 400;
  a.grid[0] = a.tile_count = 1;
  for (int i = 0; i < 90; ++i) {
    EXPECT_EQ(need(part(4 * i, 4 * i + 1), 10u + static_cast<unsigned>(i)), 1u) << i;
    EXPECT_EQ(sent_elements, 1);
    EXPECT_FALSE(known.has_current(a, 0)) << i;
  }
  EXPECT_EQ(need(part(4 * 89, 4 * 89 + 1), 150), 0u);
  EXPECT_EQ(need(part(4 * 40, 4 * 40 + 1), 151), 0u);
  EXPECT_EQ(need(part(4 * 20, 4 * 20 + 1), 152), 1u) << "the last 64 are remembered";
  need(part(200, 220), 153);
  EXPECT_EQ(sent_elements, 15) << "five of them were there";
  need(part(0, 400), 154);
  EXPECT_LT(sent_elements, 400 - 70);
  EXPECT_TRUE(known.has_current(a, 0));
}

TEST_F(remote_copies_test, windows_of_a_tile_become_one_box_and_then_the_tile) {
  a.spec.size[0] = a.spec.tile[0] = 400;
  a.grid[0] = a.tile_count = 1;
  for (int i = 0; i < 39; ++i) {
    EXPECT_EQ(need(part(10 * i, 10 * i + 20), 10u + static_cast<unsigned>(i)), 1u);
    EXPECT_EQ(sent_elements, i == 0 ? 20 : 10);
  }
  EXPECT_TRUE(known.has_current(a, 0));
  EXPECT_EQ(need(part(100, 300), 60), 0u);
}

TEST_F(remote_copies_test, what_was_written_elsewhere_is_needed_again) {
  need(part(0, 4), 1);
  written_elsewhere();
  EXPECT_EQ(need(part(0, 4), 2), 1u);
}

TEST_F(remote_copies_test, a_tile_is_in_use_while_the_last_job_that_touches_it_runs) {
  need(part(0, 1), 1);
  EXPECT_FALSE(was_in_use);
  need(part(1, 2), 2);
  EXPECT_TRUE(was_in_use);
  running = 0;
  need(part(2, 3), 3);
  EXPECT_FALSE(was_in_use);
}

TEST_F(remote_copies_test, the_last_job_that_runs_and_was_told_to_ask_is_the_asker) {
  EXPECT_EQ(known.asker(a.id, 0, runs), 0u);
  known.note_asker(a, 0, 1, runs);
  known.note_asker(a, 0, 2, runs);
  EXPECT_EQ(known.asker(a.id, 0, runs), 2u);
  running = 1;
  EXPECT_EQ(known.asker(a.id, 0, runs), 1u);
  running = 0;
  EXPECT_EQ(known.asker(a.id, 0, runs), 0u);
}

TEST_F(remote_copies_test, a_written_tile_is_only_there_until_it_comes_home) {
  sent w;
  send(w, 1, access_mode::write);
  EXPECT_EQ(dirty(), (tiles{{&a, 0}}));
  EXPECT_TRUE(known.is_dirty(a.id, 0));
  EXPECT_TRUE(known.has_current(a, 0));
  EXPECT_TRUE(known.has_version(a.id, 0, 2));
  ASSERT_TRUE(known.only_version(a, 0));
  EXPECT_EQ(known.only_version(a, 0)->version, 2u);
  known.came_home(a.id, 0);
  EXPECT_FALSE(known.only_version(a, 0));
  EXPECT_TRUE(known.has_current(a, 0));
  EXPECT_TRUE(dirty().empty());
}

TEST_F(remote_copies_test, a_failed_write_takes_the_tile_with_it) {
  sent w;
  send(w, 1, access_mode::write);
  known.note_not_written(w.j, w.task, true, nullptr);
  EXPECT_TRUE(dirty().empty());
  EXPECT_FALSE(known.has_current(a, 0));
  EXPECT_EQ(need(part(0, 4), 2), 1u);
}

TEST_F(remote_copies_test, a_task_that_comes_back_has_spoilt_what_only_the_node_had) {
  sent first, second;
  send(first, 1, access_mode::write);
  EXPECT_FALSE(known.would_spoil(first.j));
  send(second, 2, access_mode::update);
  EXPECT_TRUE(known.would_spoil(second.j));
  tiles spoiled;
  known.note_not_written(second.j, second.task, true, &spoiled);
  EXPECT_EQ(spoiled, (tiles{{&a, 0}}));
}

TEST_F(remote_copies_test, a_leaving_node_that_refuses_a_task_keeps_what_was_there_before) {
  sent first, second;
  send(first, 1, access_mode::write);
  send(second, 2, access_mode::update);
  known.note_not_written(second.j, second.task, false, nullptr);
  EXPECT_EQ(dirty(), (tiles{{&a, 0}}));
  EXPECT_TRUE(known.has_version(a.id, 0, 2));
}

TEST_F(remote_copies_test, a_write_sent_after_a_failed_one_counts_one_less) {
  sent first, second;
  send(first, 1, access_mode::write);
  send(second, 2, access_mode::write);
  EXPECT_TRUE(known.has_version(a.id, 0, 3));
  known.note_not_written(first.j, first.task, true, nullptr);
  EXPECT_TRUE(known.has_version(a.id, 0, 2));
  EXPECT_TRUE(known.is_dirty(a.id, 0));
}

TEST_F(remote_copies_test, a_failed_write_before_the_tile_was_forgotten_changes_nothing) {
  sent first, second;
  send(first, 1, access_mode::write);
  known.forget(a.id, 0);
  send(second, 2, access_mode::write);
  const bool was = known.has_version(a.id, 0, 2);
  known.note_not_written(first.j, first.task, true, nullptr);
  EXPECT_TRUE(was);
  EXPECT_TRUE(known.has_version(a.id, 0, 2));
}

TEST_F(remote_copies_test, what_a_task_was_to_read_is_forgotten_unless_only_the_node_has_it) {
  sent r, w;
  send(r, 1, access_mode::read, 0);
  send(w, 2, access_mode::write, 1);
  known.forget_read(r.task);
  EXPECT_FALSE(known.has_current(a, 0));
  known.forget_read(w.task);
  EXPECT_TRUE(known.has_current(a, 1));
}

TEST_F(remote_copies_test, the_input_of_a_reader_is_overwritten_by_a_write_sent_after_it) {
  sent w, r, after;
  send(w, 1, access_mode::write);
  send(r, 2, access_mode::read);
  std::vector<overwritten_input> inputs;
  EXPECT_FALSE(known.is_overwritten(r.j, r.task, inputs));
  send(after, 3, access_mode::write);
  EXPECT_TRUE(known.is_overwritten(r.j, r.task, inputs));
  ASSERT_EQ(inputs.size(), 1u);  // only the node had what it was to read
  EXPECT_EQ(inputs[0].task, &r.task);
  EXPECT_EQ(inputs[0].tile, 0u);
  EXPECT_TRUE(known.is_overwritten(w.j, w.task, inputs));
  EXPECT_EQ(inputs.size(), 1u);  // it overwrites all of it, and needs nothing
}

TEST_F(remote_copies_test, an_unfilled_tile_is_forgotten_unless_it_has_been_written_there) {
  sent r, w;
  send(r, 1, access_mode::read, 0);
  send(w, 2, access_mode::write, 1);
  known.note_unfilled(a.id, 0);
  known.note_unfilled(a.id, 1);
  known.note_unfilled(77, 0);  // forgotten meanwhile
  EXPECT_FALSE(known.has_current(a, 0));
  EXPECT_TRUE(known.has_current(a, 1));
  EXPECT_THROW(known.note_unfilled(a.id, 2), troupe::error);
}

TEST_F(remote_copies_test, a_tile_in_error_is_not_asked_for_until_it_is_written_again) {
  sent w, again;
  send(w, 1, access_mode::write);
  known.note_in_error(a.id, 0);
  EXPECT_FALSE(known.only_version(a, 0));
  send(again, 2, access_mode::write);
  EXPECT_TRUE(known.only_version(a, 0));
}

TEST_F(remote_copies_test, transfers_home_are_counted) {
  EXPECT_FALSE(known.is_coming_home(a.id));
  known.begins_home(a.id);
  known.begins_home(a.id);
  known.ends_home(a.id);
  EXPECT_TRUE(known.is_coming_home(a.id));
  known.ends_home(a.id);
  EXPECT_FALSE(known.is_coming_home(a.id));
  EXPECT_FALSE(known.is_coming_home(77));
}

TEST_F(remote_copies_test, what_a_task_writes_is_known_by_it_until_that_is_changed_or_fails) {
  sent w, again;
  w.task.sequence = 21;
  again.task.sequence = 22;
  EXPECT_EQ(known.written_by(a.id, 0, 21), 0u);
  send(w, 1, access_mode::write);
  EXPECT_EQ(known.written_by(a.id, 0, 21), 1u);
  EXPECT_EQ(known.written_by(a.id, 1, 21), 0u);
  send(again, 2, access_mode::update);
  EXPECT_EQ(known.written_by(a.id, 0, 21), 0u);
  EXPECT_EQ(known.written_by(a.id, 0, 22), 2u);
  known.note_not_written(again.j, again.task, true, nullptr);
  EXPECT_EQ(known.written_by(a.id, 0, 22), 0u);
}

TEST_F(remote_copies_test, what_is_pulled_ahead_is_of_one_task_and_no_version) {
  EXPECT_EQ(need(part(0, 4), 1), 1u);
  known.pulls_ahead(a, 0, part(0, 4), 21, 2);
  EXPECT_TRUE(known.is_pulled(a.id, 0, part(0, 4), 21));
  EXPECT_FALSE(known.is_pulled(a.id, 0, part(0, 2), 21));
  EXPECT_FALSE(known.is_pulled(a.id, 0, part(0, 4), 22));
  EXPECT_FALSE(known.has_current(a, 0)) << "what was there is overwritten";
  EXPECT_EQ(need(part(0, 4), 3), 1u);
  EXPECT_FALSE(known.is_pulled(a.id, 0, part(0, 4), 21)) << "other bytes have taken its place";
  known.pulls_ahead(a, 0, part(0, 2), 21, 4);
  known.pulls_ahead(a, 0, part(2, 4), 21, 5);
  EXPECT_TRUE(known.is_pulled(a.id, 0, part(0, 2), 21));
  EXPECT_TRUE(known.is_pulled(a.id, 0, part(2, 4), 21));
  known.pulls_ahead(a, 0, part(2, 4), 22, 6);
  EXPECT_FALSE(known.is_pulled(a.id, 0, part(2, 4), 21));
  sent w;
  send(w, 7, access_mode::write);
  EXPECT_FALSE(known.is_pulled(a.id, 0, part(2, 4), 22));
}

}  // namespace
