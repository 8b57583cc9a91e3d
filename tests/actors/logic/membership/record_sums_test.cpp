// What this file is for: sums of records: equal for equal knowledge, and different where that differs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/record_sums.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {

using namespace troupe::detail;
using troupe::logic::record_sums;

node_record record(std::uint8_t n, std::uint32_t round = 0, std::uint64_t incarnation = 1) {
  node_record r;
  r.node.bytes[0] = n;
  r.round = round;
  r.incarnation = incarnation;
  return r;
}

void add(record_sums& to, const node_record& r) { to.replace(r.node, 0, record_sums::sum_of(r)); }

TEST(record_sums, do_not_depend_on_the_order_of_the_records) {
  record_sums a, b;
  for (int n = 1; n <= 100; ++n) add(a, record(static_cast<std::uint8_t>(n)));
  for (int n = 100; n >= 1; --n) add(b, record(static_cast<std::uint8_t>(n)));
  EXPECT_NE(a.total(), 0u);
  EXPECT_EQ(a.total(), b.total());
  EXPECT_EQ(a.all(), b.all());
}

TEST(record_sums, tell_rounds_and_incarnations_apart) {
  const std::uint64_t first = record_sums::sum_of(record(1));
  EXPECT_NE(first, record_sums::sum_of(record(1, 1)));
  EXPECT_NE(first, record_sums::sum_of(record(1, 0, 2)));
  EXPECT_NE(first, record_sums::sum_of(record(2)));
  EXPECT_NE(record_sums::sum_of(record(1, 1, 0)), record_sums::sum_of(record(1, 0, 1))) << "the two are not swapped";
}

TEST(record_sums, do_not_depend_on_claims_and_addresses) {
  node_record suspect = record(1);
  suspect.claim = node_claim::suspect;
  suspect.addresses = {{"10.0.0.1", 7}};
  EXPECT_EQ(record_sums::sum_of(suspect), record_sums::sum_of(record(1)));
}

TEST(record_sums, count_the_records_that_count) {
  record_sums s;
  const node_record old = record(1), fresh = record(1, 1);
  add(s, old);
  add(s, record(2));
  EXPECT_EQ(s.count(), 2u);
  s.replace(old.node, record_sums::sum_of(old), record_sums::sum_of(fresh));
  EXPECT_EQ(s.count(), 2u) << "the same node";
  s.replace(old.node, record_sums::sum_of(fresh), 0);
  EXPECT_EQ(s.count(), 1u);
  EXPECT_EQ(s.total(), record_sums::sum_of(record(2)));
}

TEST(record_sums, show_in_which_part_knowledge_differs) {
  record_sums a, b;
  for (int n = 1; n <= 100; ++n) {
    add(a, record(static_cast<std::uint8_t>(n)));
    add(b, record(static_cast<std::uint8_t>(n), n == 17 ? 1 : 0));
  }
  const std::vector<std::uint64_t> of_a = a.all(), of_b = b.all();
  ASSERT_EQ(of_a.size(), record_sums::parts);
  for (std::size_t part = 0; part < record_sums::parts; ++part)
    EXPECT_EQ(of_a[part] != of_b[part], part == record_sums::part_of(record(17).node)) << part;
}

TEST(record_sums, are_undone_by_the_same_change) {
  record_sums s;
  add(s, record(1));
  const std::vector<std::uint64_t> before = s.all();
  s.change(record(2).node, record_sums::sum_of(record(2)));
  EXPECT_NE(s.all(), before);
  EXPECT_EQ(s.count(), 1u) << "a change is not counted";
  s.change(record(2).node, record_sums::sum_of(record(2)));
  EXPECT_EQ(s.all(), before);
}

}  // namespace
