// Time of a step of Life and of PageRank, each in two tilings.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include "problem.hpp"

#include <memory>
#include <optional>

namespace bench {

namespace {

std::optional<double> ms_per_step(const std::optional<cost>& spent, int steps) {
  return spent ? std::optional(spent->nanoseconds / steps / 1e6) : std::nullopt;
}

figures measure(contender& who, const settings& how) {
  // Made once: their answers take longer than what is measured.
  static life_problem life(how.quick ? 512 : 4096, how.quick ? 10 : 100);
  static rank_problem ranks(how.quick ? 20'000 : 1'000'000, 10, how.quick ? 5 : 10);
  const std::size_t chunk = ranks.nodes / 64 / 16 * 16;  // tiles of whole cache lines
  return {ms_per_step(who.life(life, life.side / 32, life.side), life.steps),
          ms_per_step(who.life(life, life.side / 8, life.side / 8), life.steps),
          ms_per_step(who.page_rank(ranks, chunk, ranks.nodes), ranks.steps),
          ms_per_step(who.page_rank(ranks, chunk, chunk), ranks.steps)};
}

}  // namespace

group loops_group(const settings&) {
  group all{.name = "loops",
            .about = "Life on 4096 x 4096 cells, PageRank of 1,000,000 nodes and 10,000,000 links, beside plain loops",
            .rows = {},
            .measure = measure};
  for (const char* row : {"loops/life/rows", "loops/life/squares", "loops/page_rank", "loops/page_rank/tiled"})
    all.rows.push_back({row, "ms/step", better::lower, {}, {{"openmp", 0.95}}});
  return all;
}

}  // namespace bench
