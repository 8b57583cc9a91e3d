// What this file is for: calls of a node's part of a graph whose inputs come together run side by side.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <ostream>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"
#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

constexpr int side_by_side = 4;
constexpr index_t tile = 16;

// Where the calls of one run meet; each run makes a new one.
std::shared_ptr<test::meeting> all_of_them;
std::atomic<int> alone{0};

constexpr auto make = kernel<inout<int, 1>>("arrivals.make").on(cpu, [](view<int, 1> a) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += 1;
});
constexpr auto meet =
    kernel<in<int, 1>, inout<int, 1>>("arrivals.meet").on(cpu, [](view<const int, 1> a, view<int, 1> b) {
      if (!all_of_them->arrive_and_wait()) ++alone;
      b(b.lo(0)) += a(a.lo(0));
    });
const offer offered{make, meet};

// How long the threads of the other node look for work.
struct looks {
  std::chrono::microseconds spin;
};
std::ostream& operator<<(std::ostream& out, const looks& l) { return out << l.spin.count() << " us"; }

// Other threads go to sleep meanwhile, most probably.
void compute_for_a_while() {
  const auto until = std::chrono::steady_clock::now() + 10ms;
  while (std::chrono::steady_clock::now() < until) {
  }
}

class arrivals : public testing::TestWithParam<looks> {};

// The thread that takes in what comes is one of those that look for calls: it comes for the first one, and the others
// are for threads that sleep.
TEST_P(arrivals, of_several_inputs_wake_a_thread_for_each) {
  runtime a(test::node_options("a", {}, 2));
  options o = test::node_options("b", a.addresses(), side_by_side);
  o.spin = GetParam().spin;
  runtime b(o);
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  const task_options here{.where = scope::here()}, there{.where = scope::at("b")};
  auto x = a.filled<int>({side_by_side * tile}, tiles(tile), 0),
       y = a.filled<int>({side_by_side * tile}, tiles(tile), 0);
  const graph g = a.record([&](recorder& r) {
    r.spawn(here, make, update(x));
    for (index_t t = 0; t < side_by_side; ++t)
      r.spawn(there, meet, read(x.sub({{t * tile}, {(t + 1) * tile}})), update(y.sub({{t * tile}, {(t + 1) * tile}})));
  });
  alone = 0;
  int sum = 0;
  for (int run = 1; run <= 10 && alone == 0; ++run) {
    compute_for_a_while();
    all_of_them = std::make_shared<test::meeting>(side_by_side);
    a.run(g).get();
    EXPECT_EQ(y.read()(tile), sum += run);
  }
  EXPECT_EQ(alone, 0) << "calls waited in vain for others, whose inputs were there, to begin";
}

INSTANTIATE_TEST_SUITE_P(spin, arrivals, testing::Values(looks{0us}, looks{20us}, looks{5000us}));

}  // namespace
