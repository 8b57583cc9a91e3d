// What this file is for: what must hold of a stream's report at any time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include <troupe/stream.hpp>

#include "../gates.hpp"
#include "tests/support/comes_true.hpp"

namespace test {

/// Nothing is lost and nothing counted twice: in the stream, in each stage, in each edge.
inline void expect_balanced(const troupe::stream::report& r) {
  ASSERT_TRUE(r.is_exact) << r.text();
  EXPECT_EQ(r.items.pushed + r.items.created,
            r.items.delivered + r.items.dropped + r.items.dead + r.items.absorbed + r.items.in_flight)
      << r.text();
  for (const auto& s : r.stages) {
    if (s.kind == "source") continue;
    EXPECT_EQ(s.in + s.created, s.out + s.absorbed + s.dropped + s.dead + s.held) << s.name << "\n" << r.text();
  }
  for (const auto& e : r.edges) {
    EXPECT_EQ(e.pushed, e.taken + e.dropped + e.items) << e.to << "\n" << r.text();
    EXPECT_LE(e.items_max, e.items_bound) << e.to;
  }
}

/// False if the stream does not end in time. Does not throw what it ended with.
inline bool ends(const troupe::stream::running& r) {
  try {
    return r.wait_for(patience);
  } catch (const troupe::error&) {
    return true;
  }
}

}  // namespace test
