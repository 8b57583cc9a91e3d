// What this file is for: what the log wants brought home, and when.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "told_lineage.hpp"

namespace {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using reason = reexecution_plan::reason;

TEST(lineage, wants_nothing_of_a_call_whose_values_may_be_lost_unless_the_write_says_so) {
  told l;
  lineage::call c;
  c.writes = {{{A, 0, 1}, 8}, {{B, 0, 1}, 8, 0, true}};
  c.repeatable = false;
  c.may_be_lost = true;
  l.ran(std::move(c));
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(B, 0)));
  const reexecution_plan p = l.plan({{A, 0, 1}});
  ASSERT_EQ(p.holes.size(), 1u);
  EXPECT_EQ(p.holes[0].why, reason::runs_once);
}

TEST(lineage, wants_at_once_what_a_call_wrote_that_runs_once) {
  told l;
  l.call("once", {{A, 0, 1}}, {{B, 0, 2}}, false);
  l.call("after", {{B, 0, 2}}, {{C, 0, 2}});
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(B, 0)));
  EXPECT_THAT(l.to_save(0), IsEmpty()) << "it has been asked for";
  EXPECT_FALSE(l.must_keep(A, 0)) << "it will not be run again";
  const reexecution_plan p = l.plan({{C, 0, 2}});
  ASSERT_EQ(p.holes.size(), 1u);
  EXPECT_EQ(p.holes[0].lacks, (value{B, 0, 2}));
  EXPECT_EQ(p.holes[0].why, reason::runs_once);
  l.not_saved(B, 0);
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(B, 0)));
  l.came_home(B, 0, 2);
  EXPECT_THAT(names(l.plan({{C, 0, 2}})), ElementsAre("after"));
  EXPECT_EQ(l.calls(), 1u);
}

TEST(lineage, wants_at_once_what_can_no_longer_be_remade) {
  told l;
  l.call("once", {}, {{B, 0, 2}}, false);
  l.call("after", {{B, 0, 2}}, {{C, 0, 2}});
  l.call("later", {{C, 0, 2}}, {{D, 0, 2}});
  l.call("over", {}, {{B, 0, 3}});  // B was never saved
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(C, 0)));
  EXPECT_EQ(l.plan({{D, 0, 2}}).holes.at(0).lacks, (value{B, 0, 2}));
  l.came_home(C, 0, 2);
  EXPECT_THAT(names(l.plan({{D, 0, 2}})), ElementsAre("later"));
}

TEST(lineage, names_the_oldest_tiles_when_there_are_too_many_calls) {
  told l(lineage::bounds{.calls = 3});
  for (std::uint32_t t = 0; t < 3; ++t) l.call("w", {}, {{A, t, 2}});
  EXPECT_THAT(l.to_save(1000), IsEmpty());
  l.call("w", {}, {{A, 3, 2}});
  EXPECT_THAT(l.to_save(200), ElementsAre(Pair(A, 0), Pair(A, 1)));
  EXPECT_THAT(l.to_save(200), IsEmpty()) << "these are on their way";
  l.came_home(A, 1, 2);
  EXPECT_THAT(l.to_save(200), IsEmpty()) << "within bounds";
  l.call("w", {}, {{A, 4, 2}});
  EXPECT_THAT(l.to_save(200), ElementsAre(Pair(A, 2)));
}

TEST(lineage, names_one_tile_that_is_larger_than_it_may_ask_for) {
  told l(lineage::bounds{.calls = 1});
  l.call("w", {}, {{A, 0, 2}});
  l.call("w", {}, {{A, 1, 2}});
  EXPECT_THAT(l.to_save(10), ElementsAre(Pair(A, 0)));
}

TEST(lineage, minds_the_cost_of_its_calls_and_the_bytes_that_are_kept) {
  told dear(lineage::bounds{.cost_ns = 5000});
  dear.call("w", {}, {{A, 0, 2}}, true, 4000);
  EXPECT_THAT(dear.to_save(1000), IsEmpty());
  dear.call("w", {}, {{A, 1, 2}}, true, 4000);
  EXPECT_THAT(dear.to_save(100), ElementsAre(Pair(A, 0)));

  told large(lineage::bounds{.kept_bytes = 150});
  for (std::uint32_t t = 0; t < 2; ++t) {
    large.call("w", {{B, t, 1}}, {{A, t, 2}});
    EXPECT_THAT(large.to_save(1000), IsEmpty());
    large.replace(B, t, 2);
  }
  EXPECT_THAT(large.to_save(100), ElementsAre(Pair(A, 0)));
}

TEST(lineage, a_tile_that_was_written_on_while_it_came_home_is_the_youngest) {
  told l(lineage::bounds{.calls = 1});
  l.call("w", {}, {{A, 0, 2}});
  l.call("w", {}, {{A, 1, 2}});
  EXPECT_THAT(l.to_save(1), ElementsAre(Pair(A, 0)));
  l.call("u", {{A, 0, 2}}, {{A, 0, 3}});
  l.came_home(A, 0, 2);
  EXPECT_EQ(l.calls(), 2u);
  EXPECT_THAT(l.to_save(1), ElementsAre(Pair(A, 1)));
}

/// Notes a call on an executor that writes one tile.
void write_at(told& l, std::uint16_t where, value what, float cost_ns, float fetch_worth_ns = 0, bool at_once = false) {
  lineage::call c;
  c.writes.push_back({what, 100, fetch_worth_ns, at_once});
  c.what = std::make_shared<const std::string>("w");
  c.cost_ns = cost_ns;
  c.executor = where;
  l.ran(std::move(c));
}

TEST(lineage, bounds_what_each_place_has_to_itself) {
  told l(lineage::bounds{.cost_ns = 5000});
  for (std::uint16_t where = 0; where < 10; ++where) write_at(l, where, {A, where, 2}, 4000);
  EXPECT_THAT(l.to_save(1000), IsEmpty()) << "if one of them dies, only that is lost";
  write_at(l, 3, {B, 0, 2}, 4000);
  EXPECT_THAT(l.to_save(100), ElementsAre(Pair(A, 3)));
  EXPECT_EQ(l.cost_ns(3), 8000);
  l.came_home(A, 3, 2);
  EXPECT_EQ(l.cost_ns(3), 4000);
  EXPECT_THAT(l.to_save(100), IsEmpty());
  write_at(l, 4, {B, 0, 3}, 4000);  // that tile has moved on
  EXPECT_THAT(l.to_save(100), ElementsAre(Pair(A, 4)));
  EXPECT_EQ(l.cost_ns(3), 0);
}

TEST(lineage, copies_no_more_than_it_is_worth) {
  told l(lineage::bounds{.cost_ns = 1000});
  write_at(l, 1, {A, 0, 2}, 3000, 10'000);
  write_at(l, 1, {A, 1, 2}, 3000, 10'000);
  EXPECT_THAT(l.to_save(1000), IsEmpty()) << "copying both is worth 20 us of calls";
  for (std::uint32_t v = 2; v < 7; ++v) {
    lineage::call u;
    u.reads = {{A, 1, v}};
    u.writes.push_back({{A, 1, v + 1}, 100, 10'000});
    u.what = std::make_shared<const std::string>("u");
    u.cost_ns = 3000;
    u.executor = 1;
    l.ran(std::move(u));
  }
  EXPECT_THAT(l.to_save(1000), UnorderedElementsAre(Pair(A, 0), Pair(A, 1)));
}

TEST(lineage, wants_at_once_what_is_to_be_here_too) {
  told l;
  write_at(l, 1, {A, 0, 2}, 1, 1e9F, true);
  write_at(l, 1, {A, 1, 2}, 1, 0, false);
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(A, 0)));
  write_at(l, 1, {A, 0, 3}, 1, 1e9F, true);
  EXPECT_THAT(l.to_save(0), IsEmpty()) << "one version at a time";
  l.came_home(A, 0, 2);
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(A, 0))) << "which is the next one";
  l.came_home(A, 0, 3);
  EXPECT_THAT(l.to_save(0), IsEmpty());
}

TEST(lineage, asks_for_what_cannot_be_had_when_it_has_been_written_again) {
  told l(lineage::bounds{.cost_ns = 1000});
  write_at(l, 1, {A, 0, 2}, 2000);
  write_at(l, 1, {B, 0, 2}, 1, 0, true);
  EXPECT_THAT(l.to_save(1000), UnorderedElementsAre(Pair(A, 0), Pair(B, 0)));
  l.not_saved(A, 0, false);
  l.not_saved(B, 0, false);
  EXPECT_THAT(l.to_save(1000), IsEmpty());
  write_at(l, 1, {C, 0, 2}, 1);
  EXPECT_THAT(l.to_save(1000), ElementsAre(Pair(C, 0)));
  write_at(l, 1, {A, 0, 3}, 2000);
  write_at(l, 1, {B, 0, 3}, 1, 0, true);
  EXPECT_THAT(l.to_save(1000), UnorderedElementsAre(Pair(A, 0), Pair(B, 0)));
}

}  // namespace
