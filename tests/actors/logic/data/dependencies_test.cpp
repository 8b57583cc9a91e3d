// What this file is for: which task waits for which: whole tiles, parts, reader lists, failure, waiting for tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "graph_world.hpp"

namespace {

using namespace test;
using troupe::errc;
using troupe::index_t;
constexpr auto reads = access_mode::read, writes = access_mode::write, updates = access_mode::update;

std::exception_ptr some_error() { return std::make_exception_ptr(std::runtime_error("some error")); }

class dependencies : public testing::Test {
 protected:
  task_record& on(array_core& a, access_mode mode, const box4& where) { return world.submitted({{&a, mode, where}}); }
  std::size_t successors_of(task_record& t) {
    std::size_t n = 0;
    world.deps.graph().each_successor(t, [&](task_record&, bool) { ++n; });
    return n;
  }
  graph_world world;
};

TEST_F(dependencies, lets_a_read_wait_for_the_write_before_it) {
  array_core& a = world.array({8}, {8});
  task_record& w = on(a, writes, line(0, 8));
  task_record& r = on(a, reads, line(0, 8));
  EXPECT_FALSE(world.is_ready(r));
  world.complete(w);
  EXPECT_TRUE(world.is_ready(r));
}

TEST_F(dependencies, lets_a_write_wait_for_all_reads_before_it) {
  array_core& a = world.array({8}, {8});
  task_record& r1 = on(a, reads, line(0, 8));
  task_record& r2 = on(a, reads, line(0, 8));
  task_record& w = on(a, writes, line(0, 8));
  EXPECT_TRUE(world.is_ready(r1) && world.is_ready(r2));
  world.complete(r2);
  EXPECT_FALSE(world.is_ready(w));
  world.complete(r1);
  EXPECT_TRUE(world.is_ready(w));
}

TEST_F(dependencies, lets_a_write_wait_for_the_write_before_it) {
  array_core& a = world.array({8}, {8});
  task_record& first = on(a, writes, line(0, 8));
  task_record& second = on(a, writes, line(0, 8));
  EXPECT_FALSE(world.is_ready(second));
  world.complete(first);
  EXPECT_TRUE(world.is_ready(second));
}

TEST_F(dependencies, lets_reads_of_one_tile_run_together) {
  array_core& a = world.array({8}, {8});
  for (int i = 0; i < 10; ++i) on(a, reads, line(0, 8));
  EXPECT_EQ(world.ready.size(), 10u);
}

TEST_F(dependencies, lets_writes_of_different_tiles_run_together) {
  array_core& a = world.array({8}, {2});
  for (int i = 0; i < 4; ++i) on(a, writes, line(2 * i, 2 * i + 2));
  EXPECT_EQ(world.ready.size(), 4u);
}

TEST_F(dependencies, lets_writes_of_disjoint_parts_of_one_tile_run_together) {
  array_core& a = world.array({6, 6}, {6, 6});
  on(a, updates, plane(0, 3, 0, 3));
  on(a, updates, plane(0, 3, 3, 6));
  on(a, updates, plane(3, 6, 0, 6));
  EXPECT_EQ(world.ready.size(), 3u);
}

TEST_F(dependencies, orders_overlapping_parts_of_one_tile) {
  array_core& a = world.array({6, 6}, {6, 6});
  task_record& first = on(a, updates, plane(0, 4, 0, 4));
  task_record& second = on(a, updates, plane(3, 6, 3, 6));
  EXPECT_FALSE(world.is_ready(second));
  world.complete(first);
  EXPECT_TRUE(world.is_ready(second));
}

TEST_F(dependencies, lets_a_read_of_the_whole_wait_for_every_part) {
  array_core& a = world.array({6}, {6});
  task_record& left = on(a, writes, line(0, 3));
  task_record& right = on(a, writes, line(3, 6));
  task_record& all = on(a, reads, line(0, 6));
  world.complete(right);
  EXPECT_FALSE(world.is_ready(all));
  world.complete(left);
  EXPECT_TRUE(world.is_ready(all));
  EXPECT_FALSE(world.has_failed(all));
}

TEST_F(dependencies, orders_a_window_over_several_tiles_after_the_writers_of_each) {
  array_core& a = world.array({9}, {3});
  task_record& w0 = on(a, writes, line(0, 3));
  task_record& w1 = on(a, writes, line(3, 6));
  task_record& w2 = on(a, writes, line(6, 9));
  task_record& window = on(a, reads, line(2, 7));
  world.complete(w0), world.complete(w2);
  EXPECT_FALSE(world.is_ready(window));
  world.complete(w1);
  EXPECT_TRUE(world.is_ready(window));
}

TEST_F(dependencies, counts_a_task_that_touches_one_tile_twice_as_one_and_never_waits_for_itself) {
  array_core& a = world.array({4}, {4});
  task_record& t = world.submitted({{&a, reads, line(0, 4)}, {&a, writes, line(0, 4)}});
  EXPECT_TRUE(world.is_ready(t));
  world.complete(t);
  EXPECT_TRUE(world.is_ready(on(a, reads, line(0, 4))));
}

// ---- cost -----------------------------------------------------------------------------------------------------------

TEST_F(dependencies, makes_one_edge_per_read_for_the_write_after_them_and_clears_the_list) {
  constexpr std::uint32_t n = 1000;
  array_core& a = world.array({4}, {4});
  for (std::uint32_t i = 0; i < n; ++i) on(a, reads, line(0, 4));
  EXPECT_EQ(a.states[0].readers.size(), n);
  task_record& w = on(a, writes, line(0, 4));
  EXPECT_EQ(w.pending, static_cast<std::int32_t>(n));
  EXPECT_TRUE(a.states[0].readers.empty());
  task_record& next = on(a, writes, line(0, 4));
  EXPECT_EQ(next.pending, 1) << "only the last writer is left to wait for";
}

TEST_F(dependencies, makes_one_edge_per_read_after_a_write) {
  constexpr std::size_t n = 1000;
  array_core& a = world.array({4}, {4});
  task_record& w = on(a, writes, line(0, 4));
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(on(a, reads, line(0, 4)).pending, 1);
  EXPECT_EQ(successors_of(w), n);
  world.complete(w);
  EXPECT_EQ(world.ready.size(), n);
}

TEST_F(dependencies, makes_one_edge_between_two_tasks_of_a_stencil_that_steps_back_and_forth) {
  array_core& a = world.array({8}, {4});
  array_core& b = world.array({8}, {4});
  task_record* last[2] = {};
  for (int step = 0; step < 4; ++step) {
    array_core& from = step % 2 == 0 ? a : b;
    array_core& to = step % 2 == 0 ? b : a;
    task_record* now[2];
    for (int i = 0; i < 2; ++i)
      now[i] = &world.submitted(
          {{&from, reads, line(0, 4)}, {&from, reads, line(4, 8)}, {&to, writes, line(4 * i, 4 * i + 4)}});
    for (int i = 0; i < 2 && step > 0; ++i) {
      EXPECT_EQ(now[i]->pending, 2) << "it reads what both have written, and overwrites what both have read";
      EXPECT_EQ(successors_of(*last[i]), 2u);
    }
    std::copy(now, now + 2, last);
  }
}

TEST_F(dependencies, makes_a_second_edge_where_the_first_carries_no_failure) {
  array_core& a = world.array({4}, {4});
  array_core& b = world.array({4}, {4});
  task_record& first = world.submitted({{&a, reads, line(0, 4)}, {&b, writes, line(0, 4)}});
  task_record& second = world.submitted({{&a, writes, line(0, 4)}, {&b, reads, line(0, 4)}});
  EXPECT_EQ(second.pending, 2);
  const auto error = some_error();
  world.complete(first, error);
  EXPECT_EQ(second.error, error);
  EXPECT_TRUE(world.is_ready(second) || second.pending == 0);
}

TEST_F(dependencies, prunes_finished_readers_so_that_reads_without_writes_stay_bounded) {
  array_core& a = world.array({4}, {4});
  for (int i = 0; i < 5000; ++i) world.complete(on(a, reads, line(0, 4)));
  EXPECT_LE(a.states[0].readers.size(), 16u);
}

TEST_F(dependencies, prunes_finished_readers_of_parts) {
  array_core& a = world.array({4}, {4});
  world.complete(on(a, updates, line(0, 2)));  // from now on in parts
  for (int i = 0; i < 5000; ++i) world.complete(on(a, reads, line(1, 3)));
  const std::size_t kept = a.states[0].parts ? a.states[0].parts->size() : a.states[0].readers.size();
  EXPECT_LE(kept, 64u);
}

TEST_F(dependencies, keeps_one_reader_of_a_box_that_nobody_writes_where_each_waits_for_the_one_before) {
  array_core& a = world.array({64}, {64});
  array_core& chain = world.array({4}, {4});
  on(a, writes, line(8, 56));  // from now on in parts
  const std::size_t before = a.states[0].parts->size();
  for (int i = 0; i < 5000; ++i) world.submitted({{&chain, updates, line(0, 4)}, {&a, reads, line(0, 4)}});
  EXPECT_LE(a.states[0].parts->size(), before + 2);
  task_record& last = on(a, writes, line(0, 4));
  for (int i = 0; i < 5001; ++i) {
    EXPECT_FALSE(world.is_ready(last));
    world.complete(*world.ready.front());
  }
  EXPECT_TRUE(world.is_ready(last));
}

// A run of a recorded graph says that it comes after the last run, whatever else it comes after.
TEST_F(dependencies, keeps_one_reader_of_a_box_where_each_names_the_one_before_among_many) {
  array_core& a = world.array({64}, {64});
  array_core& b = world.array({64}, {64});
  on(a, writes, line(8, 56));
  const std::size_t before = a.states[0].parts->size();
  task_record* last = nullptr;
  for (int run = 0; run < 100; ++run) {
    for (int i = 0; i < 64; ++i) on(b, reads, line(0, 64));
    task_record& t = world.task({{&b, writes, line(0, 64)}, {&a, reads, line(0, 4)}});
    if (last) {
      world.wait_for(t, *last, false);
      std::rotate(t.accesses, t.accesses + 2, t.accesses + 3);  // first of all
    }
    world.submit(t);
    last = &t;
  }
  EXPECT_LE(a.states[0].parts->size(), before + 2);
}

TEST_F(dependencies, goes_back_to_one_writer_after_a_write_of_the_whole_tile) {
  array_core& a = world.array({4}, {4});
  on(a, writes, line(0, 2));
  on(a, writes, line(2, 4));
  ASSERT_TRUE(a.states[0].parts);
  on(a, writes, line(0, 4));
  EXPECT_FALSE(a.states[0].parts);
}

TEST_F(dependencies, keeps_the_parts_of_a_tile_bounded_when_small_writes_go_round_and_round) {
  array_core& a = world.array({64}, {64});
  for (int round = 0; round < 50; ++round)
    for (int i = 0; i < 64; ++i) world.complete(on(a, updates, line(i, i + 1)));
  EXPECT_LE(a.states[0].parts ? a.states[0].parts->size() : 0u, 128u);
}

// Two arrays of one tile in turn, in parts: who overwrites a part comes after its readers of the step before, and not
// also after those of all steps before, nor after its writer, which these have waited for.
TEST_F(dependencies, makes_as_many_edges_in_the_last_step_as_in_the_second_where_steps_share_a_tile) {
  constexpr int steps = 12;
  for (const int width : {8, 40, 100})
    for (const int reach : {1, width}) {
      array_core* const two[] = {&world.array({width}, {width}), &world.array({width}, {width})};
      for (int step = 0; step < steps; ++step)
        for (int i = 0; i < width; ++i) {
          const box4 read = line(std::max(0, i - reach), std::min(width, i + reach + 1));
          const task_record& t =
              world.submitted({{two[step % 2], reads, read}, {two[1 - step % 2], writes, line(i, i + 1)}});
          const auto neighbours = static_cast<std::int32_t>(read.hi[0] - read.lo[0]);
          // As long as the whole tile had one writer, a read of a part counted as one of the whole.
          ASSERT_EQ(t.pending, step == 0   ? 0
                               : step == 1 ? width
                                           : neighbours)
              << width << ", reach " << reach << ", step " << step << ", " << i;
        }
      world.complete_all();
    }
}

// The same where the elements at the border are read and never written: their readers are never overwritten whole.
TEST_F(dependencies, makes_as_many_edges_in_the_last_step_as_in_the_third_where_a_border_is_never_written) {
  constexpr int steps = 60, chunk = 4;
  for (const int chunks : {4, 16, 40})
    for (const bool all : {false, true}) {
      const int size = chunks * chunk;
      array_core* const two[] = {&world.array({size}, {size}), &world.array({size}, {size})};
      std::vector<std::int32_t> third;
      for (int step = 0; step < steps; ++step)
        for (int i = 0; i < chunks; ++i) {
          const int lo = i * chunk, hi = lo + chunk;
          const task_record& t = world.submitted(
              {{two[step % 2], reads, all ? line(0, size) : line(std::max(0, lo - 1), std::min(size, hi + 1))},
               {two[1 - step % 2], writes, line(std::max(1, lo), std::min(size - 1, hi))}});
          if (step == 2) third.push_back(t.pending);
          if (step >= 2) {
            ASSERT_EQ(t.pending, third[static_cast<std::size_t>(i)]) << chunks << ", step " << step;
          }
          ASSERT_LE(t.pending, step == 1 || all ? chunks : 3) << "step " << step;
        }
      world.complete_all();
    }
}

// In two dimensions a step leaves strips of its readers, whichever way the chunks lie: the next reader of a strip takes
// the place of the last one. Tiles that are cut by chunks, too.
TEST_F(dependencies, keeps_as_many_parts_in_the_last_step_as_in_the_fifth_where_a_border_is_never_written) {
  constexpr int steps = 40, size = 34;
  for (const int chunks : {1, 4, 16})
    for (const bool rows : {false, true})
      for (const auto& [tile, updates_more] :
           {std::pair(size, 0), std::pair(9, 0), std::pair(size, 1), std::pair(9, 3)}) {
        array_core* const two[] = {&world.array({size, size}, {tile, tile}), &world.array({size, size}, {tile, tile})};
        const auto parts = [&] {
          std::size_t n = 0;
          for (const array_core* a : two)
            for (std::uint32_t t = 0; t < a->tile_count; ++t)
              n += a->states[t].parts ? a->states[t].parts->size() : a->states[t].readers.size();
          return n;
        };
        std::size_t fifth = 0;
        std::vector<std::int32_t> edges;
        for (int step = 0; step < steps; ++step) {
          for (int i = 0; i < chunks; ++i) {
            const int lo = 1 + (size - 2) * i / chunks, hi = 1 + (size - 2) * (i + 1) / chunks;
            const task_record& t = world.submitted(
                {{two[step % 2], reads, rows ? plane(lo - 1, hi + 1, 0, size) : plane(0, size, lo - 1, hi + 1)},
                 {two[1 - step % 2], writes, rows ? plane(lo, hi, 1, size - 1) : plane(1, size - 1, lo, hi)}});
            const box4 written = rows ? plane(lo, hi, 1, size - 1) : plane(1, size - 1, lo, hi);
            for (int more = 0; more < updates_more; ++more) world.submitted({{two[1 - step % 2], updates, written}});
            if (step == 4) edges.push_back(t.pending);
            if (step > 4) {
              ASSERT_EQ(t.pending, edges[static_cast<std::size_t>(i)])
                  << chunks << " chunks, rows " << rows << ", tiles of " << tile << ", step " << step;
            }
          }
          if (step == 4) fifth = parts();
        }
        EXPECT_LE(parts(), fifth) << chunks << " chunks, rows " << rows << ", tiles of " << tile;
        world.complete_all();
      }
}

// A younger reader stands for an older one only where it comes after it: not because it has waited for some other
// writer.
TEST_F(dependencies, makes_a_write_wait_for_the_older_of_two_readers_that_have_nothing_to_do_with_each_other) {
  array_core& a = world.array({4, 8}, {4, 8});
  task_record& older = on(a, reads, plane(0, 2, 0, 8));
  task_record& half = on(a, writes, plane(0, 2, 4, 8));
  task_record& below = on(a, writes, plane(2, 4, 0, 4));
  task_record& younger = on(a, reads, plane(0, 4, 0, 4));
  task_record& rest = on(a, writes, plane(0, 2, 0, 4));
  EXPECT_EQ(half.pending, 1);
  EXPECT_EQ(younger.pending, 1) << "after the writer below";
  EXPECT_EQ(rest.pending, 2) << "after both readers";
  world.complete(below);
  world.complete(younger);
  EXPECT_FALSE(world.is_ready(rest));
  world.complete(older);
  EXPECT_TRUE(world.is_ready(rest));
}

TEST_F(dependencies, makes_a_write_wait_for_what_is_left_of_a_read_that_was_overwritten_in_part) {
  array_core& a = world.array({8}, {8});
  task_record& all = on(a, reads, line(0, 8));
  task_record& left = on(a, writes, line(0, 4));
  task_record& right = on(a, writes, line(3, 8));
  EXPECT_EQ(left.pending, 1);
  EXPECT_EQ(right.pending, 2) << "after the reader, and after who has overwritten the other part";
  task_record& again = on(a, writes, line(0, 3));
  EXPECT_EQ(again.pending, 1) << "after the writer only, which has waited for the reader";
  world.complete(all);
  EXPECT_TRUE(world.is_ready(left));
  EXPECT_FALSE(world.is_ready(again));
}

// In steps in which each task reads what all of the step before have written, a task comes after each of these as a
// reader of its inputs, and after the same ones as it overwrites what they have read.
TEST_F(dependencies, makes_one_edge_to_a_task_that_is_found_as_a_writer_and_as_a_reader) {
  for (const std::size_t width : {2u, 16u, 31u, 33u, 48u, 64u, 100u}) {
    std::vector<array_core*> buffers[2];
    for (auto& all : buffers)
      for (std::size_t i = 0; i < width; ++i) all.push_back(&world.array({4}, {4}));
    std::vector<task_record*> before, now;
    for (int step = 0; step < 4; ++step, before.swap(now)) {
      now.clear();
      for (std::size_t at = 0; at < width; ++at) {
        std::vector<graph_world::use> uses;
        for (array_core* in : buffers[step % 2]) uses.push_back({in, reads, line(0, 4)});
        uses.push_back({buffers[1 - step % 2][at], writes, line(0, 4)});
        now.push_back(&world.submitted(uses));
        EXPECT_EQ(now.back()->pending, static_cast<std::int32_t>(step == 0 ? 0 : width))
            << width << " in step " << step;
      }
      for (task_record* t : before) EXPECT_EQ(successors_of(*t), width);
    }
    world.complete_all();
  }
}

// Two arrays in turn, row by row: neighbours in a column lie as far apart in program order as a row is long.
TEST_F(dependencies, makes_one_edge_to_each_neighbour_in_a_stencil_of_any_width) {
  for (const std::size_t columns : {5u, 16u, 32u, 64u}) {
    constexpr std::size_t rows = 5;
    std::vector<array_core*> buffers[2];
    for (auto& all : buffers)
      for (std::size_t i = 0; i < rows * columns; ++i) all.push_back(&world.array({4}, {4}));
    for (std::size_t step = 0; step < 3; ++step)
      for (std::size_t at = 0; at < rows * columns; ++at) {
        std::vector<graph_world::use> uses{{buffers[step % 2][at], reads, line(0, 4)}};
        const auto add = [&](bool is_inside, std::size_t neighbour) {
          if (is_inside) uses.push_back({buffers[step % 2][neighbour], reads, line(0, 4)});
        };
        add(at >= columns, at - columns);
        add(at + columns < rows * columns, at + columns);
        add(at % columns != 0, at - 1);
        add(at % columns != columns - 1, at + 1);
        const std::size_t inputs = uses.size();
        uses.push_back({buffers[1 - step % 2][at], writes, line(0, 4)});
        EXPECT_EQ(world.submitted(uses).pending, static_cast<std::int32_t>(step == 0 ? 0 : inputs)) << columns;
      }
    world.complete_all();
  }
}

TEST_F(dependencies, makes_an_edge_that_carries_data_beside_one_that_only_orders) {
  array_core &a = world.array({4}, {4}), &b = world.array({4}, {4});
  task_record& first = world.submitted({{&a, reads, line(0, 4)}, {&b, writes, line(0, 4)}});
  task_record& next = world.submitted({{&a, writes, line(0, 4)}, {&b, reads, line(0, 4)}});
  world.complete(first, std::make_exception_ptr(1));
  EXPECT_TRUE(world.has_failed(next));
}

TEST_F(dependencies, gives_every_successor_once_however_many_there_are) {
  array_core& a = world.array({4}, {4});
  for (const std::size_t n : {0u, 1u, 3u, 4u, 10u, 11u, 17u, 18u, 100u}) {
    task_record& w = on(a, writes, line(0, 4));
    world.complete_all();
    task_record& again = on(a, writes, line(0, 4));
    for (std::size_t i = 0; i < n; ++i) on(a, reads, line(0, 4));
    EXPECT_EQ(successors_of(again), n);
    EXPECT_EQ(w.sequence, 0u);
    world.complete_all();
  }
}

// ---- records that are gone ------------------------------------------------------------------------------------------

TEST_F(dependencies, does_not_wait_for_a_record_that_was_reused_by_another_task) {
  array_core& a = world.array({4}, {4});
  array_core& b = world.array({4}, {4});
  task_record& w = on(a, writes, line(0, 4));
  world.complete(w);
  w.accesses[0].array = &b;  // the same record, another task
  world.submit(w);
  EXPECT_TRUE(world.is_ready(on(a, reads, line(0, 4))));
}

TEST_F(dependencies, looks_at_no_record_from_before_forget_all) {
  array_core& a = world.array({4}, {4});
  task_record& w = on(a, writes, line(0, 4));
  const troupe::detail::task_ref old{&w, w.sequence};
  world.complete(w);
  on(a, reads, line(0, 4));
  world.complete_all();
  world.deps.graph().forget_all();
  w.sequence = old.sequence;  // what the memory happens to hold now
  EXPECT_FALSE(world.deps.graph().alive(old));
  EXPECT_TRUE(world.is_ready(on(a, writes, line(0, 4))));
}

TEST_F(dependencies, orders_tasks_after_forget_all_as_before) {
  array_core& a = world.array({4}, {4});
  world.complete(on(a, writes, line(0, 4)));
  world.deps.graph().forget_all();
  task_record& w = on(a, writes, line(0, 4));
  task_record& r = on(a, reads, line(0, 4));
  EXPECT_FALSE(world.is_ready(r));
  world.complete(w);
  EXPECT_TRUE(world.is_ready(r));
}

// ---- failure --------------------------------------------------------------------------------------------------------

TEST_F(dependencies, carries_a_failure_to_readers_and_on_to_theirs) {
  array_core& a = world.array({4}, {4});
  array_core& b = world.array({4}, {4});
  task_record& w = on(a, writes, line(0, 4));
  task_record& copy = world.submitted({{&a, reads, line(0, 4)}, {&b, writes, line(0, 4)}});
  task_record& last = on(b, reads, line(0, 4));
  const auto error = some_error();
  world.complete(w, error);
  EXPECT_EQ(copy.error, error);
  EXPECT_FALSE(world.failed_itself.at(&copy));
  world.complete(copy);
  EXPECT_EQ(last.error, error);
}

TEST_F(dependencies, carries_no_failure_along_edges_that_only_order) {
  array_core& a = world.array({4}, {4});
  task_record& r = on(a, reads, line(0, 4));
  task_record& after_read = on(a, writes, line(0, 4));
  world.complete(r, some_error());
  EXPECT_FALSE(world.has_failed(after_read));
  task_record& after_write = on(a, writes, line(0, 4));
  world.complete(after_read, some_error());
  EXPECT_FALSE(world.has_failed(after_write));
}

TEST_F(dependencies, fails_a_read_that_comes_after_the_writer_has_failed) {
  array_core& a = world.array({4}, {4});
  const auto error = some_error();
  world.complete(on(a, writes, line(0, 4)), error);
  EXPECT_EQ(on(a, reads, line(0, 4)).error, error);
  EXPECT_EQ(on(a, reads, line(1, 2)).error, error);
}

TEST_F(dependencies, heals_a_tile_by_writing_it_again) {
  array_core& a = world.array({4}, {4});
  world.complete(on(a, writes, line(0, 4)), some_error());
  world.complete(on(a, writes, line(0, 4)));
  EXPECT_FALSE(world.has_failed(on(a, reads, line(0, 4))));
}

TEST_F(dependencies, keeps_the_failure_of_one_part_from_the_others) {
  array_core& a = world.array({6}, {6});
  task_record& left = on(a, writes, line(0, 3));
  task_record& right = on(a, writes, line(3, 6));
  world.complete(left, some_error());
  world.complete(right);
  EXPECT_FALSE(world.has_failed(on(a, reads, line(3, 6))));
  EXPECT_TRUE(world.has_failed(on(a, reads, line(0, 1))));
  EXPECT_TRUE(world.has_failed(on(a, reads, line(2, 4))));
}

// ---- reading what nobody wrote --------------------------------------------------------------------------------------

TEST_F(dependencies, fails_a_read_of_what_nobody_wrote_and_names_array_and_box) {
  array_core& a = world.array({8}, {4}, false);
  task_record& r = world.submitted({{&a, reads, line(4, 8)}}, "early reader");
  ASSERT_TRUE(world.has_failed(r));
  EXPECT_TRUE(world.failed_itself.at(&r));
  try {
    std::rethrow_exception(r.error);
  } catch (const troupe::task_failed& e) {
    EXPECT_EQ(e.code(), errc::uninitialized_read);
    const std::string text = e.what();
    EXPECT_NE(text.find("early reader"), std::string::npos) << text;
    EXPECT_NE(text.find("'A'"), std::string::npos) << text;
    EXPECT_NE(text.find("[4,8)"), std::string::npos) << text;
  }
}

TEST_F(dependencies, fails_a_read_of_a_tile_that_is_written_in_part_only) {
  array_core& a = world.array({8}, {8}, false);
  on(a, writes, line(0, 5));
  EXPECT_FALSE(world.has_failed(on(a, reads, line(1, 5))));
  EXPECT_TRUE(world.has_failed(on(a, reads, line(1, 6))));
  on(a, writes, line(5, 8));
  EXPECT_FALSE(world.has_failed(on(a, reads, line(0, 8))));
}

TEST_F(dependencies, lets_a_write_of_what_nobody_wrote_pass) {
  array_core& a = world.array({8}, {8}, false);
  EXPECT_FALSE(world.has_failed(on(a, writes, line(0, 8))));
  EXPECT_FALSE(world.has_failed(on(a, updates, line(0, 8))));
}

// ---- waiting for tasks ----------------------------------------------------------------------------------------------

TEST_F(dependencies, orders_a_task_after_the_one_it_waits_for) {
  task_record& first = world.submitted({});
  task_record& second = world.task({});
  world.wait_for(second, first, true);
  world.submit(second);
  EXPECT_FALSE(world.is_ready(second));
  world.complete(first);
  EXPECT_TRUE(world.is_ready(second));
}

TEST_F(dependencies, fails_with_a_task_that_gave_it_data_and_not_with_one_it_only_comes_after) {
  for (const bool before_it_ended : {true, false}) {
    task_record& first = world.submitted({});
    task_record& taker = world.task({});
    task_record& follower = world.task({});
    world.wait_for(taker, first, true);
    world.wait_for(follower, first, false);
    if (!before_it_ended) world.complete(first, some_error());
    world.submit(taker), world.submit(follower);
    if (before_it_ended) world.complete(first, some_error());
    EXPECT_TRUE(world.has_failed(taker)) << before_it_ended;
    EXPECT_FALSE(world.has_failed(follower)) << before_it_ended;
    EXPECT_TRUE(world.is_ready(taker) && world.is_ready(follower)) << before_it_ended;
  }
}

TEST_F(dependencies, finds_a_path_of_unfinished_tasks_and_none_where_there_is_none) {
  array_core& a = world.array({4}, {4});
  array_core& b = world.array({4}, {4});
  task_record& first = on(a, writes, line(0, 4));
  task_record& middle = world.submitted({{&a, reads, line(0, 4)}, {&b, writes, line(0, 4)}});
  task_record& last = on(b, reads, line(0, 4));
  task_record& beside = on(a, reads, line(0, 4));
  EXPECT_TRUE(world.deps.graph().reaches(first, last));
  EXPECT_TRUE(world.deps.graph().reaches(middle, last));
  EXPECT_FALSE(world.deps.graph().reaches(last, first));
  EXPECT_FALSE(world.deps.graph().reaches(beside, last));
}

}  // namespace
