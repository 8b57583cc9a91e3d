// What this file is for: calls that wait for a node to come that may run them, and what they say where none does.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "several_nodes.hpp"

#include <atomic>
#include <future>
#include <optional>
#include <stop_token>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "tests/api/gates.hpp"

namespace {

using namespace std::chrono_literals;
using test::several_nodes;
using troupe::errc;
using troupe::scope;

inline constexpr auto add =
    troupe::kernel<troupe::inout<int, 1>>("wait.add").on(troupe::cpu, [](troupe::view<int, 1> v) { v(0) += 1; });
inline constexpr auto kept =
    troupe::kernel<troupe::inout<int, 1>>("wait.not_offered").on(troupe::cpu, [](troupe::view<int, 1> v) {
      v(0) += 1;
    });
std::atomic<int> bodies_begun{0};
std::atomic<bool> held{false};
inline constexpr auto add_when_let =
    troupe::kernel<troupe::inout<int, 1>>("wait.add_when_let").on(troupe::cpu, [](troupe::view<int, 1> v) {
      ++bodies_begun;
      held.wait(true);
      v(0) += 1;
    });
const troupe::offer offered{add, add_when_let};

template <class F>
std::string refusal(errc code, F&& call) {
  try {
    call();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(nodes_wait, a_call_waits_for_the_node_that_it_names) {
  several_nodes n(0);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  refusal(errc::no_executor, [&] { n.a.spawn({.where = scope::at("late")}, add, troupe::update(x)); });
  refusal(errc::no_executor,
          [&] { n.a.spawn({.where = scope::at("late"), .executor_wait = 5ms}, add, troupe::update(x)); });
  auto call = std::async(std::launch::async, [&] {
    n.a.spawn({.where = scope::at("late"), .executor_wait = test::patience}, add, troupe::update(x)).get();
  });
  const troupe::runtime late(test::node_options("late", n.a.addresses()));
  call.get();
  EXPECT_EQ(x.read()(0), 1);
}

TEST(nodes_wait, a_call_waits_for_who_comes_in_the_place_of_one_that_has_gone) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  n.rest.clear();
  ASSERT_TRUE(test::comes_true([&] { return n.a.nodes().empty(); }));
  auto call = std::async(std::launch::async, [&] {
    n.a.spawn({.where = scope::at("b"), .executor_wait = test::patience}, add, troupe::update(x)).get();
  });
  const troupe::runtime again(test::node_options("b", n.a.addresses()));
  call.get();
  EXPECT_EQ(x.read()(0), 1);
}

TEST(nodes_wait, a_call_waits_for_a_quantity_that_is_to_come) {
  several_nodes n(0);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  refusal(errc::no_resource, [&] { n.a.spawn({.resources = {{"licence", 1}}}, add, troupe::update(x)); });
  auto call = std::async(std::launch::async, [&] {
    n.a.spawn({.resources = {{"licence", 1}}, .executor_wait = test::patience}, add, troupe::update(x)).get();
  });
  troupe::options o = test::node_options("rich", n.a.addresses());
  o.resources = {{"licence", 2}};
  const troupe::runtime rich(o);
  call.get();
  EXPECT_EQ(x.read()(0), 1);
}

TEST(nodes_wait, a_call_ends_with_the_runtime_that_it_waits_in) {
  auto n = std::make_unique<several_nodes>(0);
  const auto x = n->a.filled<int>({1}, troupe::tiles(1), 0);
  test::gate begun;
  auto call = std::async(std::launch::async, [&] {
    begun.open();
    refusal(errc::no_executor,
            [&] { n->a.spawn({.where = scope::at("late"), .executor_wait = 1h}, add, troupe::update(x)); });
  });
  ASSERT_TRUE(begun.pass());
  n->a.shutdown(1s);
  call.get();
}

troupe::task_options waiting_on(const std::string& node, std::chrono::milliseconds wait = test::patience) {
  return {.where = scope::at(node), .executor_wait = wait};
}
std::string failure(const troupe::future<void>& f, errc code) {
  try {
    f.get();
  } catch (const troupe::task_failed& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "it went well";
  return {};
}

/// A task here that what is spawned afterwards on `x` waits for.
struct obstacle {
  obstacle(troupe::runtime& rt, const troupe::array<int, 1>& x)
      : done(rt.spawn(
            {.where = scope::here()}, [this](troupe::view<int, 1>) { EXPECT_TRUE(open.pass()); }, troupe::update(x))) {}
  ~obstacle() { pass(); }
  void pass() {
    open.open();
    done.get();
  }
  test::gate open;
  troupe::future<void> done;
};

struct let_go {
  let_go() {
    bodies_begun = 0;
    held = true;
  }
  ~let_go() { now(); }
  static void now() {
    held = false;
    held.notify_all();
  }
};

// In all states that a task can be in: under way there, sent and not begun, not sent, behind others; with what only
// that node had.
TEST(nodes_wait, tasks_whose_node_dies_wait_for_the_next_one_of_its_name) {
  test::nodes_apart n;
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  const auto y = n.a.filled<int>({3000}, troupe::tiles(1), 0);
  for (int i = 0; i < 5; ++i) n.a.spawn(waiting_on("b"), add, troupe::update(x));
  n.a.wait_all();
  let_go bodies;
  std::vector<troupe::future<void>> all;
  all.push_back(n.a.spawn(waiting_on("b"), add_when_let, troupe::update(x)));
  for (int i = 0; i < 5; ++i) all.push_back(n.a.spawn(waiting_on("b"), add, troupe::update(x)));
  for (troupe::index_t i = 0; i < 3000; ++i)
    all.push_back(n.a.spawn(waiting_on("b"), add_when_let, troupe::update(y.sub(troupe::box<1>{{i}, {i + 1}}))));
  ASSERT_TRUE(test::comes_true([] { return bodies_begun >= 2; }));
  n.part();
  ASSERT_TRUE(test::comes_true([&] { return n.a.nodes().empty(); }));
  bodies.now();
  n.meet();
  for (const auto& f : all) f.get();
  EXPECT_EQ(x.read()(0), 11);
  const auto v = y.read();
  for (troupe::index_t i = 0; i < 3000; ++i) ASSERT_EQ(v(i), 1) << i;
}

TEST(nodes_wait, a_task_whose_node_dies_fails_by_name_where_its_call_does_not_wait_or_nobody_comes) {
  for (const auto wait : {0ms, 50ms}) {
    test::nodes_apart n;
    const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0), y = n.a.filled<int>({1}, troupe::tiles(1), 0);
    let_go bodies;
    troupe::task_options o = waiting_on("b", wait);
    o.name = "first";
    const auto first = n.a.spawn(o, add_when_let, troupe::update(x));
    o.name = "second";
    const auto second = n.a.spawn(o, add_when_let, troupe::update(y));
    ASSERT_TRUE(test::comes_true([] { return bodies_begun == 2; }));
    n.part();
    for (const auto& [f, name] : {std::pair(first, "first"), std::pair(second, "second")}) {
      const std::string why = failure(f, errc::task_failed);
      EXPECT_NE(why.find(name), std::string::npos) << why;
      EXPECT_NE(why.find("node b"), std::string::npos) << why;
    }
    n.a.wait_all();
    bodies.now();
  }
}

TEST(nodes_wait, a_task_behind_others_waits_for_the_next_node_of_the_name_that_it_named) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0), y = n.a.filled<int>({1}, troupe::tiles(1), 0);
  obstacle before_x(n.a, x), before_y(n.a, y);
  const auto waits = n.a.spawn(waiting_on("b"), add, troupe::update(x));
  const auto fails = n.a.spawn(test::on("b"), add, troupe::update(y));
  n.rest.clear();
  ASSERT_TRUE(test::comes_true([&] { return n.a.nodes().empty(); }));
  const troupe::runtime other(test::node_options("c", n.a.addresses()));  // has the place that b had
  ASSERT_TRUE(n.a.wait_for_nodes(1, 20s));
  before_x.pass();
  before_y.pass();
  EXPECT_NE(failure(fails, errc::task_failed).find("node b"), std::string::npos);
  EXPECT_FALSE(waits.wait_for(0ms));
  const troupe::runtime again(test::node_options("b", n.a.addresses()));
  waits.get();
  EXPECT_EQ(x.read()(0), 1);
  EXPECT_EQ(test::tasks_of(n.a, "c"), 0u);
  EXPECT_EQ(test::tasks_of(n.a, "b"), 1u);
}

TEST(nodes_wait, a_task_whose_node_has_come_again_meanwhile_runs_there) {
  several_nodes n(2);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  obstacle before(n.a, x);
  const auto f = n.a.spawn(test::on("b"), add, troupe::update(x));
  n.rest.erase(n.rest.begin());
  ASSERT_TRUE(test::comes_true([&] { return n.a.nodes().size() == 1; }));
  const troupe::runtime other(test::node_options("d", n.a.addresses()));
  ASSERT_TRUE(n.a.wait_for_nodes(2, 20s));
  const troupe::runtime again(test::node_options("b", n.a.addresses()));
  ASSERT_TRUE(n.a.wait_for_nodes(3, 20s));
  before.pass();
  f.get();
  EXPECT_EQ(test::tasks_of(n.a, "b"), 1u);
  EXPECT_EQ(test::tasks_of(n.a, "d"), 0u);
}

TEST(nodes_wait, a_task_waits_for_a_quantity_that_has_gone_with_its_node) {
  several_nodes n(0);
  troupe::options o = test::node_options("rich", n.a.addresses());
  o.resources = {{"licence", 1}};
  std::optional<troupe::runtime> rich(o);
  ASSERT_TRUE(n.a.wait_for_nodes(1, 20s));
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0), y = n.a.filled<int>({1}, troupe::tiles(1), 0);
  obstacle before_x(n.a, x), before_y(n.a, y);
  const troupe::task_options asks{.resources = {{"licence", 1}}, .name = "asks", .executor_wait = test::patience};
  const auto waits = n.a.spawn(asks, add, troupe::update(x)), also = n.a.spawn(asks, add, troupe::update(x));
  const auto fails = n.a.spawn({.resources = {{"licence", 1}}, .name = "hasty"}, add, troupe::update(y));
  rich.reset();
  ASSERT_TRUE(test::comes_true([&] { return n.a.nodes().empty(); }));
  before_x.pass();
  before_y.pass();
  const std::string why = failure(fails, errc::no_resource);
  EXPECT_NE(why.find("hasty"), std::string::npos) << why;
  EXPECT_NE(why.find("licence"), std::string::npos) << why;
  EXPECT_NE(why.find("node rich"), std::string::npos) << why;
  EXPECT_FALSE(waits.wait_for(0ms));
  o.cluster.node_name = "richer";
  rich.emplace(o);
  waits.get();
  also.get();
  EXPECT_EQ(x.read()(0), 2);
  EXPECT_EQ(test::tasks_of(n.a, "richer"), 2u);
}

TEST(nodes_wait, a_task_that_waits_for_a_node_can_be_stopped_and_ends_with_its_runtime) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0), y = n.a.filled<int>({1}, troupe::tiles(1), 0);
  std::optional<obstacle> before_x(std::in_place, n.a, x), before_y(std::in_place, n.a, y);
  std::stop_source stop;
  troupe::task_options o = waiting_on("b", 1h);
  const auto left = n.a.spawn(o, add, troupe::update(y));
  o.stop = stop.get_token();
  const auto stopped = n.a.spawn(o, add, troupe::update(x));
  const auto after = n.a.spawn({.where = scope::here()}, add, troupe::update(x));
  n.rest.clear();
  ASSERT_TRUE(test::comes_true([&] { return n.a.nodes().empty(); }));
  before_x.reset();
  before_y.reset();
  EXPECT_FALSE(stopped.wait_for(0ms));
  stop.request_stop();
  failure(stopped, errc::cancelled);
  failure(after, errc::cancelled);  // what comes after it is not held up any longer
  n.a.shutdown(100ms);
  failure(left, errc::runtime_stopped);
}

TEST(nodes_wait, what_a_node_does_not_offer_is_said_of_that_node) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  const std::string why = refusal(errc::no_executor, [&] { n.a.spawn(test::on("b"), kept, troupe::update(x)); });
  EXPECT_NE(why.find("node b does not offer it"), std::string::npos) << why;
  const std::string lambda = refusal(errc::no_executor, [&] { n.a.spawn(test::on("b"), [] {}); });
  EXPECT_NE(lambda.find("no lambdas"), std::string::npos) << lambda;
}

}  // namespace
