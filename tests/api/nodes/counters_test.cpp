// What this file is for: bodies that a node runs for another one are counted at both, each attempt, also when it dies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <stdexcept>
#include <stop_token>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"
#include "tests/api/gates.hpp"

namespace {

using test::comes_true;
using test::on;
using test::several_nodes;
using troupe::executor_report;
using troupe::scope;

// All nodes are of this process: bodies that have begun, and what they find.
std::atomic<int> bodies{0}, throwing{0};
std::atomic<bool> held{false};

constexpr auto add = troupe::kernel<troupe::inout<int, 1>>("count.add").on(troupe::cpu, [](troupe::view<int, 1> v) {
  ++bodies;
  v(0) += 1;
});
constexpr auto stubborn =
    troupe::kernel<troupe::inout<int, 1>>("count.stubborn").on(troupe::cpu, [](troupe::view<int, 1> v) {
      ++bodies;
      if (throwing-- > 0) throw std::runtime_error("not yet");
      held.wait(true);
      v(0) += 1;
    });
constexpr auto hold = troupe::kernel<>("count.hold").on(troupe::cpu, [] { held.wait(true); });
const troupe::offer offered{add, stubborn, hold};

struct bodies_let {
  explicit bodies_let(bool hold_them = false) {
    bodies = 0;
    throwing = 0;
    held = hold_them;
  }
  ~bodies_let() { go(); }
  static void go() {
    held = false;
    held.notify_all();
  }
};

executor_report of(const std::vector<executor_report>& all, const std::string& name) {
  for (const executor_report& e : all)
    if (e.name == name) return e;
  return {};
}
std::uint64_t tasks_of_all(const troupe::runtime& rt) {
  std::uint64_t n = 0;
  for (const executor_report& e : rt.report().executors) n += e.tasks;
  return n;
}
constexpr auto gone = "nodes that have gone";

#define EXPECT_COUNTS(r, ran, threw)  \
  do {                                \
    const auto counted = (r);         \
    EXPECT_EQ(counted.tasks, ran);    \
    EXPECT_EQ(counted.failed, threw); \
  } while (false)

TEST(nodes_counters, each_attempt_elsewhere_counts_at_both_nodes_and_in_what_members_say) {
  several_nodes n(1);
  const bodies_let let;
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  troupe::task_options o = on("b");
  o.retries = 5;
  throwing = 3;
  n.a.spawn(o, stubborn, troupe::update(x)).get();
  EXPECT_COUNTS(of(n.a.executors(), "b"), 4u, 3u);
  EXPECT_COUNTS(of(n.b().executors(), "cpu:0"), 4u, 3u);
  throwing = 100;
  o.retries = 2;
  EXPECT_THROW(n.a.spawn(o, stubborn, troupe::update(x)).get(), troupe::task_failed);
  EXPECT_COUNTS(of(n.a.executors(), "b"), 7u, 6u);
  EXPECT_COUNTS(of(n.b().executors(), "cpu:0"), 7u, 6u);
  const troupe::cluster_report r = n.a.query_cluster(std::chrono::seconds(10));
  for (const troupe::member_report& m : r.members) EXPECT_COUNTS(m, m.name == "b" ? 7u : 0u, m.name == "b" ? 6u : 0u);
  EXPECT_EQ(test::tasks_of(n.b(), "a"), 0u);
}

TEST(nodes_counters, a_task_that_was_stopped_before_it_began_counts_nowhere) {
  several_nodes n(1, 1);
  const bodies_let let(true);
  const auto blocker = n.a.spawn(on("b"), hold);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  std::stop_source stop;
  troupe::task_options o = on("b");
  o.stop = stop.get_token();
  const auto f = n.a.spawn(o, add, troupe::update(x));
  ASSERT_TRUE(comes_true([&] { return n.b().report().spawned >= 2; }));
  stop.request_stop();
  n.a.query_cluster(std::chrono::seconds(10));  // what was said to b before has been heard there
  let.go();
  blocker.get();
  EXPECT_THROW(f.get(), troupe::task_failed);
  EXPECT_COUNTS(of(n.a.executors(), "b"), 1u, 0u);
  EXPECT_COUNTS(of(n.b().executors(), "cpu:0"), 1u, 0u);
}

TEST(nodes_counters, attempts_that_have_thrown_elsewhere_count_before_the_task_has_ended) {
  several_nodes n(1);
  const bodies_let let(true);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  troupe::task_options o = on("b");
  o.retries = 5;
  throwing = 3;
  const auto f = n.a.spawn(o, stubborn, troupe::update(x));
  EXPECT_TRUE(comes_true([&] { return of(n.a.executors(), "b").tasks == 3; }));
  EXPECT_COUNTS(of(n.a.executors(), "b"), 3u, 3u);
  let.go();
  f.get();
  EXPECT_COUNTS(of(n.a.executors(), "b"), 4u, 3u);
}

TEST(nodes_counters, what_a_node_has_run_still_counts_when_it_has_died) {
  test::nodes_apart n;
  const bodies_let let(true);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0), y = n.a.filled<int>({1}, troupe::tiles(1), 0);
  for (int i = 0; i < 5; ++i) n.a.spawn(on("b"), add, troupe::update(x));
  n.a.wait_all();
  EXPECT_COUNTS(of(n.a.executors(), "b"), 5u, 0u);
  EXPECT_COUNTS(of(n.a.report().executors, gone), 0u, 0u);
  throwing = 2;
  const auto f = n.a.spawn({.where = scope::at("b") | scope::here(), .retries = 5}, hold);  // the cores are known
  const auto cut =
      n.a.spawn({.where = scope::at("b"), .retries = 5, .executor_wait = test::patience}, stubborn, troupe::update(y));
  ASSERT_TRUE(comes_true([&] { return of(n.a.executors(), "b").failed == 2; }));
  const std::uint64_t here = of(n.a.executors(), "cpu:0").tasks;
  n.part();
  ASSERT_TRUE(comes_true([&] { return n.a.nodes().empty(); }));
  EXPECT_EQ(x.read()(0), 5);  // made again here, which may have begun already
  EXPECT_EQ(of(n.a.executors(), "cpu:0").tasks, here + 5);
  EXPECT_COUNTS(of(n.a.report().executors, gone), 5u + 3u, 3u);  // the third attempt was lost with the node
  let.go();
  n.meet();
  cut.get();
  f.get();
  EXPECT_COUNTS(of(n.a.executors(), "b"), 1u, 0u);  // another process: it begins anew
  EXPECT_COUNTS(of(n.a.report().executors, gone), 8u, 3u);
  EXPECT_COUNTS(of(n.b().executors(), "cpu:0"), 1u, 0u);
  EXPECT_EQ(tasks_of_all(n.a), static_cast<std::uint64_t>(bodies) + 1u) << "and the one that held";
}

}  // namespace
