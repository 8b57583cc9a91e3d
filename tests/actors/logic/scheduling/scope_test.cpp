// What this file is for: the algebra of scopes and the executors they name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "actors/logic/scheduling/scope.hpp"

namespace {

using namespace troupe;
using logic::executor_set;
using logic::resolve;

const std::vector<detail::executor_facts>& machine() {
  static const std::vector<detail::executor_facts> facts{{0, "cpu:0", device_kind::cpu, 0, 2},
                                                         {1, "cpu:1", device_kind::cpu, 0, 2},
                                                         {2, "cuda:0", device_kind::cuda, 1, 1},
                                                         {3, "sim:0", device_kind::sim, 2, 1}};
  return facts;
}

executor_set names(const scope& s) { return resolve(s, machine()); }

TEST(scope, of_any_is_every_executor) {
  EXPECT_TRUE(scope().is_any());
  EXPECT_EQ(names(scope::any()), (executor_set{0, 1, 2, 3}));
}

TEST(scope, of_a_kind_is_the_executors_of_that_kind) {
  EXPECT_EQ(names(scope::cpu()), (executor_set{0, 1}));
  EXPECT_EQ(names(scope::kind(device_kind::sim)), executor_set{3});
  EXPECT_TRUE(names(scope::kind(device_kind::hip)).empty());
}

TEST(scope, of_gpus_holds_no_core_group) { EXPECT_TRUE((names(scope::gpu()) & names(scope::cpu())).empty()); }

TEST(scope, of_an_unknown_name_is_nobody) {
  EXPECT_TRUE(names(scope::executor("cpu:9")).empty());
  EXPECT_TRUE(names(scope::executor("")).empty());
  EXPECT_FALSE(scope::executor("cpu:9").is_any());
}

TEST(scope, of_an_executor_takes_the_name_of_a_node_as_it_is_listed) {
  auto facts = machine();
  detail::executor_facts& node = facts.emplace_back();
  node.id = 4;
  node.name = "node:0";
  node.kind = device_kind::node;
  node.label = std::make_shared<detail::node_label>();
  node.label->set("b");
  EXPECT_EQ(node.shown_name(), "b");
  for (const char* name : {"b", "node:0"}) EXPECT_EQ(resolve(scope::executor(name), facts), executor_set{4}) << name;
  EXPECT_TRUE(logic::may_name_nodes(scope::executor("b")));
  EXPECT_FALSE(logic::may_name_nodes(scope::executor("cpu:0")));
}

TEST(scope, tells_what_it_names) {
  EXPECT_EQ(logic::names_in(scope::executor("cpu:1") | scope::at("b")), " (executor cpu:1, node b)");
  EXPECT_EQ(logic::nodes_named_in(scope::executor("cpu:1") | scope::at("b")), "node b");
  EXPECT_EQ(logic::names_in(scope::gpu()), "");
}

TEST(scope, names_devices_that_are_not_there_only_where_there_are_none) {
  const auto names_absent = [](const scope& s) { return logic::names_absent_devices(s, machine()); };
  EXPECT_FALSE(names_absent(scope::executor("cpu:0") & scope::executor("sim:0")));
  EXPECT_FALSE(names_absent(scope::gpu() & scope::cpu()));
  EXPECT_FALSE(names_absent(scope::executor("cpu:9") | scope::at("nowhere")));
  EXPECT_TRUE(names_absent(scope::executor("cuda:1")));
  EXPECT_TRUE(names_absent(scope::kind(device_kind::hip) | scope::cpu()));
  EXPECT_TRUE(logic::names_absent_devices(scope::gpu(), {}));
}

TEST(scope, unions_and_intersections_are_those_of_the_sets) {
  const std::vector<scope> all{scope::any(),
                               scope::cpu(),
                               scope::gpu(),
                               scope::executor("cpu:0"),
                               scope::executor("no"),
                               scope::executor("cuda:0"),
                               scope::kind(device_kind::sim)};
  for (const scope& a : all)
    for (const scope& b : all) {
      ASSERT_EQ(names(a | b), names(a) | names(b));
      ASSERT_EQ(names(a & b), names(a) & names(b));
      for (const scope& c : all) {
        ASSERT_EQ(names((a | b) & c), (names(a) | names(b)) & names(c));
        ASSERT_EQ(names(a | (b & c)), names(a) | (names(b) & names(c)));
      }
    }
}

TEST(scope, stays_valid_after_the_scopes_it_was_made_of_are_gone) {
  scope s;
  {
    const scope a = scope::executor("cpu:1"), b = scope::executor("sim:0");
    s = a | b;
  }
  EXPECT_EQ(names(s), (executor_set{1, 3}));
}

TEST(scope, resolved_in_an_empty_house_is_nobody) { EXPECT_TRUE(resolve(scope::any(), {}).empty()); }

TEST(with_body, takes_the_executors_whose_kind_has_a_bit) {
  const auto bit = [](device_kind k) { return 1u << static_cast<int>(k); };
  EXPECT_EQ(logic::with_body(static_cast<unsigned char>(bit(device_kind::cpu)), machine()), (executor_set{0, 1}));
  EXPECT_EQ(logic::with_body(static_cast<unsigned char>(bit(device_kind::cuda) | bit(device_kind::sim)), machine()),
            (executor_set{2, 3}));
  EXPECT_TRUE(logic::with_body(0, machine()).empty());
}

TEST(able_to_run, leaves_out_devices_that_lack_the_doubles_of_their_text) {
  const auto bit = [](device_kind k) { return static_cast<unsigned char>(1u << static_cast<int>(k)); };
  auto all = machine();
  all[2].has_double = false;
  const detail::executor_facts& lacks = all[2];
  detail::kernel_info k;
  k.kinds = static_cast<unsigned char>(bit(device_kind::cpu) | bit(lacks.kind));
  logic::abilities index;
  for (const auto& e : all) index.add(e);
  EXPECT_EQ(logic::able_to_run(k, all), logic::with_body(k.kinds, all));
  EXPECT_EQ(index.of(k), logic::able_to_run(k, all));
  EXPECT_TRUE(logic::reason_against(k, lacks).empty());
  k.doubles = bit(lacks.kind);
  EXPECT_EQ(logic::able_to_run(k, all), logic::with_body(k.kinds, all) - executor_set{2});
  EXPECT_EQ(index.of(k), logic::able_to_run(k, all));
  EXPECT_NE(logic::reason_against(k, lacks).find("doubles"), std::string_view::npos);
  EXPECT_TRUE(logic::reason_against(k, all[0]).empty());
}

TEST(uses_double, is_true_of_the_type_and_of_nothing_that_only_looks_like_it) {
  for (const char* text : {"double x;", "GPU_IN(double, a)", "/* so */ const double f", "x = (double)y",
                           "// no\ndouble", "double4 v", "double"})
    EXPECT_TRUE(logic::uses_double(text)) << text;
  for (const char* text : {"", "float x;", "doubles", "is_double", "double_buffer()", "// double", "/* double */ float",
                           "// a double\nfloat x;", "/* double", "doubl"})
    EXPECT_FALSE(logic::uses_double(text)) << text;
}

TEST(names_of, lists_executors_in_order_and_says_none_for_nobody) {
  EXPECT_EQ(logic::names_of({0, 1, 3}, machine()), "cpu:0, cpu:1, sim:0");
  EXPECT_EQ(logic::names_of({}, machine()), "none");
}

}  // namespace
