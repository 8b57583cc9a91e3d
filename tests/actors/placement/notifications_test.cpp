// What this file is for: an executor or listener that was told something in a turn is called once, after it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "actors/logic/data/array_core.hpp"
#include "actors/placement/notifications.hpp"
#include "collector.hpp"

namespace {

using namespace troupe::detail;

std::vector<std::string> calls_made;

class named_executor final : public test::collector {
 public:
  named_executor(std::uint16_t id, troupe::device_kind kind) : collector({id, std::to_string(id), kind, id, 1}) {}
  bool owes = false;
  bool wants_after_turn() const override { return owes || executor::wants_after_turn(); }
  void after_turn() override { calls_made.push_back("after " + facts().name); }
  void save(array_core& a, std::uint32_t tile) override {
    calls_made.push_back("save " + a.spec.name + "/" + std::to_string(tile) + " at " + facts().name);
  }
};

class named_listener final : public task_listener {
 public:
  explicit named_listener(std::string name) : name_(std::move(name)) {}
  void granted(task_record&) override {}
  void retired(task_record&) override {}
  void after_turn() override { calls_made.push_back("after " + name_); }

 private:
  std::string name_;
};

struct notifications_test : testing::Test {
  notifications_test() { calls_made.clear(); }
  std::vector<std::string> make(executor* with = nullptr) {
    const auto calls = told.take([&](const notifications::tile&) { return with; });
    EXPECT_TRUE(told.empty());
    EXPECT_EQ(calls_made, std::vector<std::string>()) << "not before they are made";
    calls.make();
    return std::exchange(calls_made, {});
  }
  notifications told;
  named_executor node{1, troupe::device_kind::node}, other_node{2, troupe::device_kind::node},
      cores{0, troupe::device_kind::cpu};
  named_listener listener{"listener"}, other_listener{"another"};
};

using names = std::vector<std::string>;

TEST_F(notifications_test, are_empty_until_something_is_added) {
  EXPECT_TRUE(told.empty());
  told.add(node);
  EXPECT_FALSE(told.empty());
  EXPECT_EQ(make(), names{"after 1"});
  EXPECT_EQ(make(), names());
}

TEST_F(notifications_test, call_nodes_and_of_other_executors_those_that_want_it) {
  told.add(cores);
  EXPECT_TRUE(told.empty());
  cores.owes = true;
  told.add(cores);
  EXPECT_EQ(make(), names{"after 0"});
}

TEST_F(notifications_test, call_each_once_however_often_it_was_told_something) {
  for (int i = 0; i < 3; ++i) {
    told.add(node);
    told.add(other_node);
    told.add(listener);
    told.add(other_listener);
  }
  EXPECT_EQ(make(), (names{"after 1", "after 2", "after listener", "after another"}));
}

TEST_F(notifications_test, call_the_same_ones_again_after_the_next_turn) {
  for (int i = 0; i < 2; ++i) {
    told.add(node);
    EXPECT_EQ(make(), names{"after 1"});
    told.add(listener);
    EXPECT_EQ(make(), names{"after listener"});
    told.add(node);
    told.add(listener);
    EXPECT_EQ(make(), (names{"after 1", "after listener"}));
  }
}

TEST_F(notifications_test, have_a_tile_saved_by_the_node_that_has_it_before_that_is_told_that_the_turn_is_over) {
  array_core a;
  a.spec.name = "field";
  told.add(node);
  told.add_save(a, 3);
  told.add_save(a, 4);
  EXPECT_EQ(make(&other_node), (names{"save field/3 at 2", "save field/4 at 2", "after 1"}));
}

TEST_F(notifications_test, let_go_of_an_array_whose_tile_no_node_has_any_more) {
  array_core a;
  ASSERT_TRUE(a.keep());
  ASSERT_EQ(a.handles.load(), 1 + array_core::kept_once);
  told.add_save(a, 0);
  EXPECT_EQ(make(nullptr), names());
  EXPECT_EQ(a.handles.load(), 1);
}

}  // namespace
