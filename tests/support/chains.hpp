// What this file is for: work that checks itself: chains of tasks whose result shows a step that is lost or repeated.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/support/chain_kernels.hpp"

namespace test {

/// Chains of hashes, one for each tile, and each step a task.
class chains {
 public:
  /// `home`: a task changes part of its tile only, so that what it has made comes back with it and is never lost.
  enum class results { come_home, stay_there };

  /// So many, of `width` numbers each; a step costs about `us`.
  chains(troupe::runtime& rt, results which, int count, std::uint64_t us, troupe::index_t width = 512)
      : rt_(rt),
        data_(rt.filled<std::uint64_t>({count * width}, troupe::tiles(width), 1)),
        which_(which),
        count_(count),
        width_(width),
        us_(us) {}

  /// So many more steps of each chain.
  void grow(int steps, const troupe::scope& where = {}) {
    for (int i = 0; i < steps; ++i, ++steps_)
      for (int c = 0; c < count_; ++c) {
        const troupe::box<1> part{{c * width_}, {(c + 1) * width_ - (which_ == results::come_home ? 1 : 0)}};
        tasks_.push_back(rt_.spawn({.where = where}, link_on, troupe::update(data_.sub(part)), steps_, us_));
      }
  }
  /// How many are wrong; throws what reading throws.
  int wrong() const {
    const auto v = data_.read();
    std::uint64_t right = 1;
    for (std::uint64_t s = 0; s < steps_; ++s) right = hashed(right, s);
    int n = 0;
    for (troupe::index_t i = 0; i < count_ * width_; ++i) {
      const bool untouched = which_ == results::come_home && i % width_ == width_ - 1;
      n += v(i) == (untouched ? 1 : right) ? 0 : 1;
    }
    return n;
  }
  std::uint64_t spawned() const { return tasks_.size(); }
  std::uint64_t finished() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(tasks_, [](const auto& f) { return f.is_ready(); }));
  }
  /// Waits until the tasks have ended that are first in line, one of each chain at most; false if they do not in time.
  bool first_in_line_end(std::chrono::milliseconds limit) const {
    std::vector<troupe::future<void>> first;
    for (const auto& f : tasks_)
      if (!f.is_ready() && first.size() < static_cast<std::size_t>(count_)) first.push_back(f);
    const auto deadline = std::chrono::steady_clock::now() + limit;
    return std::ranges::all_of(first,
                               [&](const auto& f) { return f.wait_for(deadline - std::chrono::steady_clock::now()); });
  }
  const std::vector<troupe::future<void>>& tasks() const { return tasks_; }

 private:
  troupe::runtime& rt_;
  troupe::array<std::uint64_t, 1> data_;
  results which_;
  int count_;
  troupe::index_t width_;
  std::uint64_t us_, steps_ = 0;
  std::vector<troupe::future<void>> tasks_;
};

}  // namespace test
