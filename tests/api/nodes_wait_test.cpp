// What this file is for: calls that wait for a node to come that may run them, and what they say where none does.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "several_nodes.hpp"

#include <future>

#include <troupe/offer.hpp>

#include "gates.hpp"

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
const troupe::offer offered{add};

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

TEST(nodes_wait, what_a_node_does_not_offer_is_said_of_that_node) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1}, troupe::tiles(1), 0);
  const std::string why = refusal(errc::no_executor, [&] { n.a.spawn(test::on("b"), kept, troupe::update(x)); });
  EXPECT_NE(why.find("node b does not offer it"), std::string::npos) << why;
  const std::string lambda = refusal(errc::no_executor, [&] { n.a.spawn(test::on("b"), [] {}); });
  EXPECT_NE(lambda.find("no lambdas"), std::string::npos) << lambda;
}

}  // namespace
