// What this file is for: tasks whose scope names a node that joins only after they were spawned, between tasks of the
// cores on the same array.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::on;
using troupe::index_t;

void add_to(view<long, 1> a, long v) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += v;
}
constexpr auto add = kernel<inout<long, 1>, long>("joined.add").on(cpu, add_to);
// The same, of which no time is known.
constexpr auto add_anew = kernel<inout<long, 1>, long>("joined.add_anew").on(cpu, add_to);
constexpr auto toil = kernel<inout<long, 1>>("joined.toil").on(cpu, [](view<long, 1> a) {
  const auto end = std::chrono::steady_clock::now() + 5ms;
  while (std::chrono::steady_clock::now() < end) ++a(a.lo(0));
});
std::atomic<bool> held{false};
constexpr auto hold = kernel<inout<long, 1>>("joined.hold").on(cpu, [](view<long, 1> a) {
  held.wait(true);
  add_to(a, 1);
});
constexpr auto copy =
    kernel<in<long, 1>, out<long, 1>>("joined.copy").on(cpu, [](view<const long, 1> a, view<long, 1> to) {
      for (index_t i = 0; i < to.size(0); ++i) to(to.lo(0) + i) = a(a.lo(0) + i);
    });
const offer offered{add, add_anew, toil, hold, copy};

struct setting {
  index_t elements;
  int behind;  // tasks of the cores behind the one that may go
  bool known;  // the time of the one that may go is known
  bool again;  // the node changes the array once more afterwards
};

class joined_scope : public testing::TestWithParam<setting> {};

// The node is the idler one when the task can run.
TEST_P(joined_scope, keeps_the_order_of_all_that_touch_the_array) {
  const setting s = GetParam();
  options o = test::node_options("a");
  o.cost_cache = "none";
  runtime a(o);
  const task_options here{.where = scope::here()}, either{.where = scope::here() | scope::at("b")};
  const auto x = a.filled<long>({s.elements}, tiles(s.elements), 0), other = a.filled<long>({4}, tiles(4), 0);
  for (int i = 0; i < 64; ++i) a.spawn(here, add, update(other), 1L);
  for (int i = 0; i < 4; ++i) a.spawn(here, toil, update(other));
  a.wait_all();
  held = true;
  a.spawn(here, hold, update(x));
  a.spawn(either, s.known ? add : add_anew, update(x), 1'000L);
  for (int i = 0; i < s.behind; ++i) a.spawn(here, add, update(x), 1L);
  options of_b = test::node_options("b", a.addresses());
  of_b.cost_cache = "none";
  runtime b(of_b);
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  std::vector<array<long, 1>> busy;
  for (int i = 0; i < 12; ++i) {
    busy.push_back(a.filled<long>({4}, tiles(4), 0));
    a.spawn(here, toil, update(busy.back()));
  }
  held = false;
  held.notify_all();
  if (s.again) a.spawn(on("b"), add, update(x), 0L);
  const auto seen = a.array<long>({s.elements}, tiles(s.elements));
  a.spawn(on("b"), copy, read(x), write(seen));
  const long expected = 1'001 + s.behind;
  const auto there = seen.try_read_for(30s);
  ASSERT_TRUE(there.has_value()) << "it has not ended";
  const auto at_home = x.try_read_for(30s);
  ASSERT_TRUE(at_home.has_value());
  for (const index_t i : {index_t{0}, s.elements - 1}) {
    EXPECT_EQ((*there)(i), expected);
    EXPECT_EQ((*at_home)(i), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(all, joined_scope,
                         testing::Values(setting{4, 3, false, false}, setting{4, 3, false, true},
                                         setting{2'000, 3, false, false}, setting{200'000, 1, false, false},
                                         setting{4, 3, true, false}, setting{2'000, 3, true, true}));

}  // namespace
