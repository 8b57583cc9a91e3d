// What this file is for: a program cut into parts reads what the whole would, sends nothing twice, and ends at home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/graph_cut.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "points.hpp"

namespace {

using namespace troupe;
using logic::box4;
using logic::crossing;
using logic::cut_call;
using logic::cut_piece;
using logic::graph_cut;
using logic::point4;
using test::each_point;
using troupe::index_t;

box4 box_of(index_t lo0, index_t hi0, index_t lo1 = 0, index_t hi1 = 1) {
  box4 b{{lo0, lo1, 0, 0}, {hi0, hi1, 1, 1}};
  return b;
}
cut_piece read_of(std::uint32_t tile, const box4& b) { return {0, tile, b, true, false}; }
cut_piece write_of(std::uint32_t tile, const box4& b) { return {0, tile, b, false, true}; }
cut_piece update_of(std::uint32_t tile, const box4& b) { return {0, tile, b, true, true}; }

// What each part has of each element: the number of the call that wrote it; 0: as it was before the run.
using element = std::pair<std::uint64_t, point4>;
using memory = std::map<element, std::uint32_t>;
std::uint64_t key_of(const cut_piece& p) { return std::uint64_t{p.array} << 32 | p.tile; }
std::uint64_t key_of(const crossing& c) { return std::uint64_t{c.array} << 32 | c.tile; }
constexpr std::uint32_t never = ~std::uint32_t{0};

/// Runs the parts one after the other in the order of the steps, beside the whole program in one memory.
class two_runs {
 public:
  two_runs(const std::vector<cut_call>& calls, std::uint32_t parts) : calls_(calls), cut_(calls), there_(parts) {}

  const graph_cut& cut() const { return cut_; }
  void run() {
    for (const auto& s : cut_.steps()) s.is_crossing ? move(cut_.crossings()[s.number]) : call(s.number);
    // Every tile that was written is whole at home.
    for (const auto& [e, value] : whole_)
      if (const auto home =
              cut_.home_of(static_cast<std::uint32_t>(e.first >> 32), static_cast<std::uint32_t>(e.first))) {
        EXPECT_EQ(at(*home, e), value);
      }
  }
  std::uint64_t moved() const { return moved_; }

 private:
  // Before a run a tile is at its home; one that is never written is everywhere.
  std::uint32_t at(std::uint32_t part, const element& e) {
    const auto found = there_[part].find(e);
    if (found != there_[part].end()) return found->second;
    const auto home = cut_.home_of(static_cast<std::uint32_t>(e.first >> 32), static_cast<std::uint32_t>(e.first));
    return !home || *home == part ? 0 : never;
  }
  std::uint32_t now(const element& e) {
    const auto found = whole_.find(e);
    return found == whole_.end() ? 0 : found->second;
  }
  void move(const crossing& c) {
    ASSERT_NE(c.from, c.to);
    if (!c.carries_bytes()) return;
    ASSERT_FALSE(c.where.empty());
    each_point(c.where, [&](const point4& p) {
      const element e{key_of(c), p};
      EXPECT_EQ(at(c.from, e), now(e)) << "what is sent is not current";
      EXPECT_NE(at(c.to, e), now(e)) << "an element is sent to who has it";
      there_[c.to][e] = at(c.from, e);
      ++moved_;
    });
  }
  void call(std::uint32_t n) {
    const cut_call& c = calls_[n];
    for (const cut_piece& piece : c.pieces)
      if (piece.reads)
        each_point(piece.where, [&](const point4& p) {
          const element e{key_of(piece), p};
          EXPECT_EQ(at(c.part, e), now(e)) << "call " << n << " reads what is not current";
        });
    for (const cut_piece& piece : c.pieces)
      if (piece.writes)
        each_point(piece.where, [&](const point4& p) {
          there_[c.part][{key_of(piece), p}] = n + 1;
          whole_[{key_of(piece), p}] = n + 1;
        });
  }

  const std::vector<cut_call>& calls_;
  const graph_cut cut_;
  std::vector<memory> there_;
  memory whole_;
  std::uint64_t moved_ = 0;
};

TEST(graph_cut, a_program_of_one_part_sends_nothing) {
  const std::vector<cut_call> calls{{0, {write_of(0, box_of(0, 8))}}, {0, {read_of(0, box_of(2, 4))}}};
  const graph_cut cut(calls);
  EXPECT_TRUE(cut.crossings().empty());
  EXPECT_EQ(cut.steps().size(), 2u);
  EXPECT_EQ(cut.home_of(0, 0), 0u);
  EXPECT_FALSE(cut.home_of(0, 1));
}

TEST(graph_cut, a_halo_is_what_travels_and_comes_from_before_the_run_at_first) {
  // Two tiles of 100, each updated by its part three times after a look at the neighbour's edge.
  std::vector<cut_call> calls;
  for (int step = 0; step < 3; ++step) {
    calls.push_back({0, {update_of(0, box_of(0, 100)), read_of(1, box_of(100, 101))}});
    calls.push_back({1, {update_of(1, box_of(100, 200)), read_of(0, box_of(99, 100))}});
  }
  two_runs both(calls, 2);
  both.run();
  EXPECT_EQ(both.moved(), 6u);
  EXPECT_EQ(both.cut().home_of(0, 0), 0u);
  EXPECT_EQ(both.cut().home_of(0, 1), 1u);
}

TEST(graph_cut, what_is_read_twice_is_sent_once) {
  const std::vector<cut_call> calls{
      {0, {write_of(0, box_of(0, 8))}}, {1, {read_of(0, box_of(0, 4))}}, {1, {read_of(0, box_of(2, 6))}}};
  two_runs both(calls, 2);
  both.run();
  EXPECT_EQ(both.moved(), 6u);
}

TEST(graph_cut, what_another_part_writes_of_a_tile_comes_home) {
  const std::vector<cut_call> calls{{0, {write_of(0, box_of(0, 8))}}, {1, {write_of(0, box_of(4, 6))}}};
  two_runs both(calls, 2);
  both.run();
  ASSERT_EQ(both.cut().crossings().size(), 1u);
  EXPECT_EQ(both.cut().crossings()[0].to, 0u);
  EXPECT_EQ(both.cut().crossings()[0].where, box_of(4, 6));
}

TEST(graph_cut, a_call_that_waits_for_another_is_told_of_its_end_once) {
  const std::vector<cut_call> calls{{0, {}}, {1, {}, {0}}, {1, {}, {0}}, {0, {}, {0, 1}}};
  const graph_cut cut(calls);
  ASSERT_EQ(cut.crossings().size(), 2u);
  EXPECT_FALSE(cut.crossings()[0].carries_bytes());
  EXPECT_EQ(cut.crossings()[0].call, 0u);
  EXPECT_EQ(cut.crossings()[0].to, 1u);
  EXPECT_EQ(cut.crossings()[1].call, 1u);
  EXPECT_EQ(cut.crossings()[1].to, 0u);
}

class any_program : public testing::TestWithParam<unsigned> {};

TEST_P(any_program, is_the_same_in_parts) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  for (int round = 0; round < 20; ++round) {
    const auto parts = static_cast<std::uint32_t>(pick(1, 5));
    std::vector<cut_call> calls;
    for (index_t n = pick(1, 30); n != 0; --n) {
      cut_call c{static_cast<std::uint32_t>(pick(0, parts - 1))};
      for (index_t pieces = pick(0, 4); pieces != 0; --pieces) {
        const index_t a = pick(0, 5), b = pick(a + 1, 6), x = pick(0, 5), y = pick(x + 1, 6);
        const index_t how = pick(0, 2);
        c.pieces.push_back({static_cast<std::uint32_t>(pick(0, 1)), static_cast<std::uint32_t>(pick(0, 2)),
                            box_of(a, b, x, y), how != 1, how != 0});
      }
      if (!calls.empty() && pick(0, 3) == 0)
        c.after.push_back(static_cast<std::uint32_t>(pick(0, static_cast<index_t>(calls.size()) - 1)));
      calls.push_back(std::move(c));
    }
    two_runs both(calls, parts);
    both.run();
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(programs, any_program, testing::Range(0u, 20u));

}  // namespace
