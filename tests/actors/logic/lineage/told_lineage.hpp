// What this file is for: a log that is told by the test what ran, by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/logic/lineage/lineage.hpp"

namespace test {

using troupe::logic::lineage;
using troupe::logic::reexecution_plan;
using troupe::logic::value;

inline constexpr std::uint64_t A = 1, B = 2, C = 3, D = 4;

/// Names its calls, so that plans can be read.
struct told : lineage {
  using lineage::lineage;
  void call(const std::string& name, std::vector<value> reads, std::vector<value> writes, bool repeatable = true,
            float cost_ns = 1000, std::uint64_t bytes = 100) {
    lineage::call c;
    c.reads = std::move(reads);
    for (const value& w : writes) c.writes.push_back({w, bytes});
    c.what = std::make_shared<const std::string>(name);
    c.cost_ns = cost_ns;
    c.repeatable = repeatable;
    ran(std::move(c));
  }
  /// The host's bytes are replaced by others; what must be kept is.
  bool replace(std::uint64_t array, std::uint32_t tile, std::uint32_t version) {
    const auto keep = must_keep(array, tile);
    if (keep) {
      EXPECT_TRUE(kept(*keep, 100));
    }
    leaves_home(array, tile);
    came_home(array, tile, version);
    return keep.has_value();
  }
  reexecution_plan plan(std::vector<value> lost) const { return reexecute(lost); }
};

inline std::vector<std::string> names(const reexecution_plan& p) {
  std::vector<std::string> all;
  for (const auto& s : p.steps) all.push_back(*static_cast<const std::string*>(s.what.get()));
  return all;
}

}  // namespace test
