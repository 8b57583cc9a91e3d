// Two programs that are loops over all elements, again and again: what a step computes, and what must come out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../contender.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

// Otherwise the compiler leaves these loops as they are at -O2, and what moves memory beside them would not be seen.
#if defined(__GNUC__) && !defined(__clang__)
#define TROUPE_BENCH_VECTORISED [[gnu::optimize("O3")]]
#else
#define TROUPE_BENCH_VECTORISED
#endif

namespace bench {

/// Conway's Life on a square without edges.
class life_problem {
 public:
  using cells = std::vector<std::uint8_t>;

  life_problem(std::size_t side_of_square, int number_of_steps) : side(side_of_square), steps(number_of_steps) {
    std::mt19937 random(1);
    start_.resize(side * side);
    for (std::uint8_t& c : start_) c = random() & 1;
  }
  /// Cells of the next generation in [begin, end) of a row, from it and its neighbours.
  TROUPE_BENCH_VECTORISED static void next(const std::uint8_t* above, const std::uint8_t* here,
                                           const std::uint8_t* below, std::uint8_t* result, std::ptrdiff_t begin,
                                           std::ptrdiff_t end) {
    for (std::ptrdiff_t x = begin; x < end; ++x) {
      const int sum = above[x - 1] + above[x] + above[x + 1] + here[x - 1] + here[x] + here[x + 1] + below[x - 1] +
                      below[x] + below[x + 1];
      result[x] = static_cast<std::uint8_t>((sum == 3) | ((sum == 4) & here[x]));
    }
  }
  /// A whole row, whose ends are neighbours.
  static void next_row(const std::uint8_t* above, const std::uint8_t* here, const std::uint8_t* below,
                       std::uint8_t* result, std::size_t n) {
    next(above, here, below, result, 1, static_cast<std::ptrdiff_t>(n) - 1);
    for (const std::size_t x : {std::size_t{0}, n - 1}) {
      const std::uint8_t* const rows[] = {above, here, below};
      int sum = 0;
      for (const std::uint8_t* r : rows) sum += r[(x + n - 1) % n] + r[x] + r[(x + 1) % n];
      result[x] = static_cast<std::uint8_t>(sum == 3 || (sum == 4 && here[x] != 0));
    }
  }
  const cells& start() const { return start_; }
  /// Throws wrong_answer if these are not the cells after all steps. `at(y, x)` returns one.
  template <class At>
  void check(At&& at) {
    if (right_.empty()) {
      right_ = start_;
      cells other(right_.size());
      for (int s = 0; s < steps; ++s, right_.swap(other))
        for (std::size_t y = 0; y < side; ++y)
          next_row(&right_[(y + side - 1) % side * side], &right_[y * side], &right_[(y + 1) % side * side],
                   &other[y * side], side);
    }
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x)
        if (at(y, x) != right_[y * side + x]) throw wrong_answer("a generation of Life is not what the last one makes");
  }

  const std::size_t side;
  const int steps;

 private:
  cells start_, right_;
};

/// PageRank by gathering: each node's new rank from those that link to it.
class rank_problem {
 public:
  rank_problem(std::size_t number_of_nodes, std::size_t links_of_each, int number_of_steps)
      : nodes(number_of_nodes), steps(number_of_steps) {
    std::mt19937 random(1);
    first.push_back(0);
    std::vector<std::uint32_t> out(nodes);
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::size_t count = links_of_each / 2 + random() % (links_of_each + 1);
      for (std::size_t k = 0; k < count; ++k) {
        from.push_back(static_cast<std::uint32_t>(random() % nodes));
        ++out[from.back()];
      }
      first.push_back(static_cast<std::uint32_t>(from.size()));
    }
    for (const std::uint32_t n : out) share.push_back(n == 0 ? 0 : 1 / static_cast<float>(n));
  }
  float at_first() const { return 1 / static_cast<float>(nodes); }
  float new_rank(float sum) const { return 0.15f * at_first() + 0.85f * sum; }
  /// Throws wrong_answer if these are not the ranks after all steps. `at(i)` returns one.
  template <class At>
  void check(At&& at) {
    if (right_.empty()) {
      right_.assign(nodes, at_first());
      std::vector<float> next(nodes);
      for (int s = 0; s < steps; ++s, right_.swap(next))
        for (std::size_t i = 0; i < nodes; ++i) {
          float sum = 0;
          for (std::uint32_t k = first[i]; k < first[i + 1]; ++k) sum += right_[from[k]] * share[from[k]];
          next[i] = new_rank(sum);
        }
    }
    for (std::size_t i = 0; i < nodes; ++i)
      if (std::abs(at(i) - right_[i]) > 1e-4f * right_[i]) throw wrong_answer("a rank is not what its links make");
  }

  const std::size_t nodes;
  const int steps;
  std::vector<std::uint32_t> first, from;  ///< links to node i: from[first[i]] to before from[first[i + 1]]
  std::vector<float> share;                ///< of a node's rank, to each that it links to

 private:
  std::vector<float> right_;
};

}  // namespace bench
