// What this file is for: every device's links can be measured, and are left as they were.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "conformance.hpp"
#include "devices/calibration/links.hpp"

namespace conformance_suite {

namespace {

TEST_P(conformance, links_are_measured_both_ways_and_what_it_took_is_given_back) {
  constexpr std::uint64_t limit = std::uint64_t{4} << 20;
  const auto a = open(0, 3, limit);
  const auto s = measure_links(*a, std::chrono::milliseconds(500));
  for (const auto& one : {s.in, s.out}) {
    EXPECT_GT(one.latency_ns, 0);
    EXPECT_GT(one.bytes_per_ns, 0.001);  // 1 MB/s
    EXPECT_LT(one.bytes_per_ns, 10'000);
  }
  const block everything(*a, limit);
  fill(*a, 0, everything.at(), 7, 100);
  EXPECT_EQ(content<int>(*a, everything.at(), 100), std::vector<int>(100, 7));
}

TEST_P(conformance, a_device_without_room_has_unknown_links) {
  const auto a = open(0, 2, 16 << 10);
  const auto s = measure_links(*a);
  EXPECT_FALSE(s.in.known());
  EXPECT_FALSE(s.out.known());
}

}  // namespace

}  // namespace conformance_suite
