// What this file is for: what a node keeps of members that have died: little, for some minutes, and then nothing.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>

#include "actors/placement/placement.hpp"
#include "imagined_program.hpp"

namespace {

using namespace std::chrono_literals;
using test::imagined_node;
using test::imagined_world;
using test::program;

/// Has nodes come one after the other, be given work and be killed in the middle of it.
void join_and_die(imagined_world& w, std::uint16_t first, std::uint16_t count) {
  for (std::uint16_t i = 0; i < count; ++i) {
    test::begun().clear();
    program p(w, *w.nodes[0]);
    imagined_node& n = w.start(first + i, 1);
    w.run_for(1s);
    ASSERT_EQ(w.nodes[0]->the_engine().others()->report().size(), 2u);
    for (int k = 0; k < 30; ++k) p.call();
    w.run_for(15ms);
    n.kill();
    n.end();
    for (int k = 0; k < 100 && p.unfinished() != 0; ++k) w.run_for(100ms);
    ASSERT_EQ(p.unfinished(), 0u);
    p.check(1);
    p.drop();
    w.nodes.pop_back();
    w.run_for(1s);
  }
  w.nodes[0]->the_engine().placement_actor().report();  // what has been dropped is accounted for
}

std::int64_t allocated() { return static_cast<std::int64_t>(mallinfo2().uordblks); }

// Some of it is the imagined network's own, which remembers every process: about 2 KiB for each.
TEST(many_deaths, leave_little_behind_and_after_some_minutes_nothing) {
  imagined_world w(1);
  w.body = 2ms;
  for (std::uint16_t i = 0; i < 2; ++i) w.start(i, 1);
  w.run_for(2s);
  join_and_die(w, 2, 100);  // whatever grows to its size once
  const std::int64_t before = allocated();
  if (before == 0) GTEST_SKIP() << "this build counts no memory (sanitizers have an allocator of their own)";
  join_and_die(w, 102, 200);
  const std::int64_t at_once = (allocated() - before) / 200;
  w.run_for(15min);
  w.nodes[0]->the_engine().placement_actor().report();
  const std::int64_t later = (allocated() - before) / 200;
  RecordProperty("bytes_a_death", static_cast<int>(at_once));
  RecordProperty("bytes_a_death_later", static_cast<int>(later));
  EXPECT_LT(at_once, 6 * 1024);
  EXPECT_LT(later, 3 * 1024);
}

}  // namespace
