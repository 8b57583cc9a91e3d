// What this file is for: the log of what ran elsewhere: what stays in it, what is kept, what a plan says.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "told_lineage.hpp"

namespace {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;
using testing::UnorderedElementsAre;
using origin = reexecution_plan::origin;
using reason = reexecution_plan::reason;

TEST(lineage, knows_nothing_of_a_call_that_wrote_nothing_there) {
  told l;
  l.call("reads", {{A, 0, 1}}, {});
  EXPECT_TRUE(l.empty());
}

TEST(lineage, remakes_a_chain_of_updates_from_what_is_at_home) {
  told l;
  l.call("u1", {{A, 0, 1}}, {{A, 0, 2}});
  l.call("u2", {{A, 0, 2}}, {{A, 0, 3}});
  l.call("u3", {{A, 0, 3}}, {{A, 0, 4}});
  EXPECT_EQ(l.calls(), 3u);
  const reexecution_plan p = l.plan({{A, 0, 4}});
  EXPECT_THAT(names(p), ElementsAre("u1", "u2", "u3"));
  EXPECT_THAT(p.holes, IsEmpty());
  EXPECT_EQ(p.cost_ns, 3000);
  ASSERT_EQ(p.steps[0].reads.size(), 1u);
  EXPECT_EQ(p.steps[0].reads[0].where, origin::home);
  EXPECT_EQ(p.steps[2].reads[0].where, origin::step);
  EXPECT_EQ(p.steps[2].reads[0].step, 1u);
  EXPECT_THAT(p.steps[0].done_with, IsEmpty());
  EXPECT_THAT(p.steps[1].done_with, ElementsAre(value{A, 0, 2}));
  EXPECT_THAT(p.steps[2].done_with, ElementsAre(value{A, 0, 3}));
  ASSERT_EQ(p.reexecuted.size(), 1u);
  EXPECT_EQ(p.reexecuted[0].where, origin::step);
  EXPECT_EQ(p.reexecuted[0].step, 2u);
}

TEST(lineage, forgets_a_chain_once_its_end_is_at_home) {
  told l;
  for (std::uint32_t v = 1; v < 100; ++v) l.call("u", {{A, 0, v}}, {{A, 0, v + 1}});
  EXPECT_EQ(l.calls(), 99u);
  l.came_home(A, 0, 100);
  EXPECT_EQ(l.calls(), 0u);
  EXPECT_EQ(l.cost_ns(), 0);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, keeps_what_came_after_a_version_that_came_home) {
  told l;
  for (std::uint32_t v = 1; v < 10; ++v) l.call(std::to_string(v + 1), {{A, 0, v}}, {{A, 0, v + 1}});
  EXPECT_TRUE(l.replace(A, 0, 8)) << "until it has come home, what was there is needed";
  EXPECT_THAT(names(l.plan({{A, 0, 10}})), ElementsAre("9", "10"));
  EXPECT_EQ(l.calls(), 2u);
  EXPECT_THAT(l.take_unwanted(), ElementsAre(value{A, 0, 1}));
}

TEST(lineage, drops_what_was_overwritten_unread) {
  told l;
  l.call("first", {}, {{A, 0, 2}});
  l.call("second", {}, {{A, 0, 3}});
  EXPECT_EQ(l.calls(), 1u);
  EXPECT_THAT(names(l.plan({{A, 0, 3}})), ElementsAre("second"));
}

TEST(lineage, drops_what_a_device_has_overwritten) {
  told l;
  l.call("there", {{B, 0, 1}}, {{A, 0, 2}});
  l.overwritten(A, 0, 3);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, repeats_what_two_diamonds_share_once) {
  told l;
  l.call("top", {{A, 0, 1}}, {{A, 0, 2}});
  l.call("left", {{A, 0, 2}}, {{B, 0, 2}});
  l.call("right", {{A, 0, 2}}, {{C, 0, 2}});
  l.call("bottom", {{B, 0, 2}, {C, 0, 2}}, {{D, 0, 2}});
  const reexecution_plan p = l.plan({{D, 0, 2}});
  EXPECT_THAT(names(p), ElementsAre("top", "left", "right", "bottom"));
  EXPECT_THAT(p.steps[2].done_with, ElementsAre(value{A, 0, 2}));
  EXPECT_THAT(p.steps[3].done_with, UnorderedElementsAre(value{B, 0, 2}, value{C, 0, 2}));
  const reexecution_plan all = l.plan({{A, 0, 2}, {D, 0, 2}});
  EXPECT_EQ(all.steps.size(), 4u);
  EXPECT_THAT(all.steps[2].done_with, IsEmpty()) << "it is to be put in its place";
  l.came_home(B, 0, 2);
  EXPECT_EQ(l.plan({{D, 0, 2}}).steps[2].reads[0].where, origin::home);
  EXPECT_THAT(names(l.plan({{D, 0, 2}})), ElementsAre("top", "right", "bottom"));
}

TEST(lineage, repeats_only_what_the_lost_values_need) {
  told l;
  l.call("a", {}, {{A, 0, 2}});
  l.call("b", {}, {{B, 0, 2}});
  EXPECT_THAT(names(l.plan({{B, 0, 2}})), ElementsAre("b"));
}

TEST(lineage, follows_a_tile_that_several_nodes_wrote_in_turn) {
  told l;
  l.call("on one", {{A, 0, 1}}, {{A, 0, 2}});
  l.replace(A, 0, 2);  // on its way to the other
  l.call("on two", {{A, 0, 2}}, {{A, 0, 3}});
  EXPECT_THAT(names(l.plan({{A, 0, 3}})), ElementsAre("on two"));
  l.replace(A, 0, 3);
  l.call("on one again", {{A, 0, 3}}, {{A, 0, 4}});
  EXPECT_THAT(names(l.plan({{A, 0, 4}})), ElementsAre("on one again"));
  EXPECT_EQ(l.calls(), 1u);
  EXPECT_EQ(l.take_unwanted().size(), 2u);
  EXPECT_EQ(l.kept_bytes(), 0u);
}

// A = f(B), B = g(A), and what is at home is overwritten while it is still needed.
TEST(lineage, keeps_the_bases_of_two_arrays_that_are_made_of_each_other) {
  told l;
  l.call("A2", {{B, 0, 1}}, {{A, 0, 2}});
  l.call("B2", {{A, 0, 2}}, {{B, 0, 2}});
  l.call("A3", {{B, 0, 2}}, {{A, 0, 3}});
  EXPECT_THAT(l.must_keep(A, 0), testing::Eq(std::nullopt)) << "nobody reads what home has of it";
  EXPECT_THAT(l.must_keep(B, 0), Optional(value{B, 0, 1}));
  EXPECT_FALSE(l.replace(A, 0, 3));
  EXPECT_TRUE(l.must_keep(B, 0)) << "B is lost with the node still";
  EXPECT_EQ(l.calls(), 2u);
  EXPECT_TRUE(l.replace(B, 0, 2));
  EXPECT_EQ(l.calls(), 0u);
  EXPECT_THAT(l.take_unwanted(), ElementsAre(value{B, 0, 1}));
  EXPECT_EQ(l.kept_bytes(), 0u);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, makes_plans_of_kept_copies) {
  told l;
  l.call("B2", {{A, 0, 1}}, {{B, 0, 2}});
  EXPECT_TRUE(l.replace(A, 0, 2));  // somebody here overwrites it
  EXPECT_EQ(l.kept_bytes(), 100u);
  EXPECT_FALSE(l.must_keep(A, 0)) << "of this version nobody has read";
  const reexecution_plan p = l.plan({{B, 0, 2}});
  ASSERT_EQ(p.steps.size(), 1u);
  EXPECT_EQ(p.steps[0].reads[0].where, origin::kept);
  EXPECT_THAT(l.take_unwanted(), IsEmpty());
  l.came_home(B, 0, 2);
  EXPECT_THAT(l.take_unwanted(), ElementsAre(value{A, 0, 1}));
}

TEST(lineage, says_what_is_gone_and_remakes_the_others) {
  told l;
  l.call("b", {{A, 0, 1}}, {{B, 0, 2}});
  l.call("c", {{B, 0, 2}}, {{C, 0, 2}});
  l.call("d", {{A, 1, 1}}, {{D, 0, 2}});
  l.leaves_home(A, 0);  // and nobody keeps it
  l.came_home(A, 0, 2);
  const reexecution_plan p = l.plan({{C, 0, 2}, {D, 0, 2}, {B, 0, 2}});
  EXPECT_THAT(names(p), ElementsAre("d"));
  ASSERT_EQ(p.holes.size(), 2u);
  EXPECT_EQ(p.holes[0].lost, (value{C, 0, 2}));
  EXPECT_EQ(p.holes[0].lacks, (value{A, 0, 1}));
  EXPECT_EQ(p.holes[0].why, reason::gone);
  EXPECT_EQ(p.holes[1].lost, (value{B, 0, 2}));
  ASSERT_EQ(p.reexecuted.size(), 1u);
  EXPECT_EQ(p.reexecuted[0].what, (value{D, 0, 2}));
}

TEST(lineage, says_so_when_nobody_knows_who_wrote_it) {
  told l;
  const reexecution_plan p = l.plan({{A, 7, 5}});
  ASSERT_EQ(p.holes.size(), 1u);
  EXPECT_EQ(p.holes[0].lacks, (value{A, 7, 5}));
  EXPECT_EQ(p.holes[0].why, reason::gone);
}

TEST(lineage, keeps_what_is_needed_of_a_forgotten_array) {
  told l;
  l.call("b", {{A, 0, 1}, {A, 1, 1}}, {{B, 0, 2}, {A, 2, 2}});
  EXPECT_THAT(l.must_keep(A), UnorderedElementsAre(value{A, 0, 1}, value{A, 1, 1}));
  for (const value& v : l.must_keep(A)) EXPECT_TRUE(l.kept(v, 10));
  EXPECT_THAT(l.must_keep(A), IsEmpty());
  l.forget(A);
  EXPECT_EQ(l.kept_bytes(), 20u);
  EXPECT_THAT(names(l.plan({{B, 0, 2}})), ElementsAre("b"));
  l.forget(B);
  EXPECT_EQ(l.calls(), 0u);
  EXPECT_EQ(l.take_unwanted().size(), 2u);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, drops_what_only_a_forgotten_array_needed) {
  told l;
  l.call("a", {{B, 0, 1}}, {{A, 0, 2}});
  l.call("a again", {{A, 0, 2}}, {{A, 0, 3}});
  l.forget(A);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, compares_versions_that_wrap) {
  told l;
  const std::uint32_t last = 0xffffffff;
  l.call("last", {{A, 0, last - 1}}, {{A, 0, last}});
  l.call("zero", {{A, 0, last}}, {{A, 0, 0}});
  l.call("one", {{A, 0, 0}}, {{A, 0, 1}});
  EXPECT_THAT(names(l.plan({{A, 0, 1}})), ElementsAre("last", "zero", "one"));
  l.replace(A, 0, last);
  EXPECT_THAT(names(l.plan({{A, 0, 1}})), ElementsAre("zero", "one"));
  l.replace(A, 0, 1);
  EXPECT_EQ(l.take_unwanted().size(), 2u);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, does_not_read_at_home_what_is_being_overwritten) {
  told l;
  l.leaves_home(A, 0);  // parts of it, by two tasks
  l.leaves_home(A, 0);
  l.call("b", {{A, 0, 1}}, {{B, 0, 2}});  // another part
  EXPECT_EQ(l.plan({{B, 0, 2}}).holes.size(), 1u);
  l.came_home(A, 0, 2);
  EXPECT_EQ(l.plan({{B, 0, 2}}).holes.size(), 1u);
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(B, 0))) << "it can never be reexecuted";
  l.call("c", {{A, 0, 2}}, {{C, 0, 2}});
  l.came_home(A, 0, 3);
  EXPECT_EQ(l.plan({{C, 0, 2}}).holes.size(), 1u);
  l.call("d", {{A, 0, 3}}, {{D, 0, 2}});
  EXPECT_EQ(l.plan({{D, 0, 2}}).holes.size(), 0u);
}

// Two calls have read parts that nobody overwrites.
TEST(lineage, has_what_was_copied_as_a_call_was_told_while_another_part_was_overwritten) {
  told l;
  EXPECT_FALSE(l.is_away({A, 0, 1}));
  l.leaves_home(A, 0);
  EXPECT_TRUE(l.is_away({A, 0, 1}));
  for (const std::uint64_t to : {B, C}) {
    lineage::call c;
    c.reads = {{A, 0, 1}};
    c.writes = {{{to, 0, 2}, 100}};
    c.what = std::make_shared<const std::string>("call");
    c.cost_ns = 1000;
    c.kept = {{{A, 0, 1}, 40}};
    l.ran(std::move(c));
  }
  EXPECT_EQ(l.kept_bytes(), 80u);
  for (const bool is_over : {false, true}) {
    if (is_over) l.came_home(A, 0, 2);
    const reexecution_plan p = l.plan({{B, 0, 2}, {C, 0, 2}});
    EXPECT_THAT(p.holes, IsEmpty());
    ASSERT_EQ(p.steps.size(), 2u);
    for (const auto& s : p.steps) EXPECT_EQ(s.reads[0].where, origin::kept);
  }
  l.came_home(B, 0, 2);
  EXPECT_THAT(l.take_unwanted(), IsEmpty());
  l.came_home(C, 0, 2);
  EXPECT_THAT(l.take_unwanted(), ElementsAre(value{A, 0, 1}));
  EXPECT_EQ(l.kept_bytes(), 0u);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, does_not_trust_bytes_that_were_to_be_overwritten) {
  told l;
  l.call("b", {{A, 0, 1}}, {{B, 0, 2}});
  l.leaves_home(A, 0);
  l.stays_away(A, 0);
  EXPECT_EQ(l.plan({{B, 0, 2}}).holes.size(), 1u);
}

TEST(lineage, forgets_what_was_given_up) {
  told l;
  l.call("once", {}, {{A, 0, 2}}, false);
  l.call("b", {{A, 0, 2}}, {{B, 0, 2}});
  l.give_up(A, 0);
  EXPECT_THAT(l.to_save(0), ElementsAre(Pair(B, 0)));
  l.came_home(B, 0, 2);
  EXPECT_TRUE(l.empty());
}

TEST(lineage, says_whether_a_version_is_of_use_at_home) {
  told l;
  for (std::uint32_t v = 1; v < 6; ++v) l.call(std::to_string(v + 1), {{A, 0, v}}, {{A, 0, v + 1}});
  EXPECT_TRUE(l.is_wanted({A, 0, 4}));
  EXPECT_TRUE(l.is_wanted({A, 0, 6}));
  EXPECT_FALSE(l.is_wanted({A, 0, 7})) << "nobody has written it yet";
  l.replace(A, 0, 4);
  EXPECT_FALSE(l.is_wanted({A, 0, 3}));
  EXPECT_FALSE(l.is_wanted({A, 0, 4}));
  EXPECT_TRUE(l.is_wanted({A, 0, 5}));
}

// Tiles that are written go on being read by others a step behind: it is when all of it has come home that the log is
// empty.
TEST(lineage, is_empty_after_a_grid_of_neighbours_has_come_home) {
  told l(lineage::bounds{.calls = 20});
  constexpr std::uint32_t n = 8;
  std::uint32_t version = 1;
  for (int sweep = 0; sweep < 6; ++sweep, ++version)
    for (std::uint64_t to : {A, B})
      for (std::uint32_t t = 0; t < n; ++t) {
        const std::uint64_t from = to == A ? B : A;
        const std::uint32_t v = to == A ? version : version + 1;
        l.call("s", {{from, (t + n - 1) % n, v}, {from, t, v}, {from, (t + 1) % n, v}}, {{to, t, version + 1}});
      }
  EXPECT_EQ(l.calls(), 96u);
  EXPECT_EQ(l.plan({{B, 0, version}}).steps.size(), 80u) << "1, 3, 5, 7 and from there on all 8";
  std::size_t saved = 0;
  for (auto tiles = l.to_save(1 << 20); !tiles.empty(); tiles = l.to_save(1 << 20))
    for (const auto& [array, tile] : tiles) {
      l.replace(array, tile, version);
      ++saved;
    }
  EXPECT_EQ(saved, 16u);
  EXPECT_EQ(l.calls(), 0u);
  l.take_unwanted();
  EXPECT_TRUE(l.empty());
}

// Processor time per call, of the fastest of a few tries.
double ns_per_call(int calls) {
  double best = 1e18;
  for (int attempt = 0; attempt < 3; ++attempt) {
    told l;
    const auto what = std::make_shared<const int>(0);
    const std::clock_t begin = std::clock();
    for (int i = 0; i < calls; ++i) {
      const auto t = static_cast<std::uint32_t>(i % 64), v = static_cast<std::uint32_t>(i / 64 + 1);
      l.ran({{{A, t, v}, {A, (t + 1) % 64, t == 63 ? v + 1 : v}}, {{{A, t, v + 1}, 100}}, what, 1000, true});
    }
    EXPECT_EQ(l.calls(), static_cast<std::size_t>(calls));
    for (std::uint32_t t = 0; t < 64; ++t) l.replace(A, t, static_cast<std::uint32_t>((calls - 1 - t) / 64 + 2));
    EXPECT_EQ(l.calls(), 0u);
    best = std::min(best, static_cast<double>(std::clock() - begin) * (1e9 / CLOCKS_PER_SEC) / calls);
  }
  return best;
}

TEST(lineage, costs_the_same_for_each_of_many_calls) {
  const double few = ns_per_call(2'000), many = ns_per_call(100'000);
  RecordProperty("ns_per_call_of_100000", std::to_string(many));
  EXPECT_LT(many, few * 20) << "50 times the calls; few: " << few << " ns each";
}

}  // namespace
