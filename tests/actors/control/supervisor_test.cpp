// What this file is for: the supervisor, on CAF's deterministic scheduler: what is done about each failure, in what
// order, how often. And the housekeeper, in imagined time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/supervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <caf/scheduler/test_coordinator.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/control/housekeeper.hpp"
#include "actors/control/trace_observer.hpp"

namespace {

using namespace troupe::detail;
using namespace std::chrono_literals;
using testing::ElementsAre;

std::exception_ptr made(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }

class puppet : public actor {
 public:
  puppet(actor_kind k, std::string name, std::vector<std::string>& log) : kind_(k), name_(std::move(name)), log_(log) {}
  actor_kind kind() const override { return kind_; }
  std::string label() const override { return name_; }
  void restart() override {
    log_.push_back(name_ + " restarts");
    if (restart_throws) throw std::runtime_error("cannot");
  }
  void withdraw(std::exception_ptr why) override {
    log_.push_back(name_ + " withdraws: " + text_of(why));
    if (withdraw_throws) throw std::runtime_error("stuck");
  }
  bool restart_throws = false, withdraw_throws = false;

 private:
  const actor_kind kind_;
  const std::string name_;
  std::vector<std::string>& log_;
};

class supervised : public testing::Test {
 protected:
  supervised() {
    config_.set("scheduler.policy", caf::atom("testing"));
    options_.tidy = [this] { return tidy(); };
    options_.ring = [this] {
      log.push_back("ring");
      if (ring_throws) throw std::runtime_error("bad ring");
    };
    options_.end_runtime = [this](const std::string& actor, const std::exception_ptr& why) {
      log.push_back("the end, by " + actor + ": " + text_of(why));
    };
    system_ = std::make_unique<caf::actor_system>(config_);
  }
  ~supervised() override {
    if (supervisor_) caf::anon_send_exit(supervisor_, caf::exit_reason::kill);
    if (below_) caf::anon_send_exit(below_, caf::exit_reason::kill);
    supervisor_ = nullptr;
    below_ = nullptr;
    run();
  }
  void start(bool with_housekeeper = false) {
    std::vector<system_actor> below;
    if (with_housekeeper)
      below.push_back({.number = desk.add(actor_kind::housekeeper, "housekeeper"),
                       .spawn = [this](caf::actor_system& s) {
                         return spawn_housekeeper(s, options_, delays, [this](std::exception_ptr why) {
                           desk.note_reason(0, std::move(why));
                         });
                       },
                       .spawned = [this](const caf::actor& a, bool first) {
                         below_ = a;
                         if (!first) log.push_back(a ? "another housekeeper" : "no housekeeper");
                       }});
    supervisor_ = start_supervisor(*system_, desk, options_, std::move(below));
    run();
  }
  std::shared_ptr<puppet> add(actor_kind k, const std::string& name) {
    auto p = std::make_shared<puppet>(k, name, log);
    numbers_.emplace(p.get(), desk.add(p));
    tell();
    return p;
  }
  void fail(const std::shared_ptr<puppet>& p, const char* why) {
    desk.note_failure(numbers_.at(p.get()), made(why));
    tell();
  }
  void tell() {
    caf::anon_send(supervisor_, desk_changed{});
    run();
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  }
  void run() { scheduler().run(); }
  void pass(std::chrono::milliseconds t) {
    scheduler().advance_time(t);
    run();
  }
  virtual bool tidy() { return true; }

  std::vector<std::string> log;
  supervision_desk desk;
  delay_desk delays;
  bool ring_throws = false;
  caf::actor below_;
  supervisor_actor supervisor_;

 private:
  caf::actor_system_config config_;
  std::unordered_map<const puppet*, std::size_t> numbers_;

 protected:
  control_options options_;
  std::unique_ptr<caf::actor_system> system_;
};

TEST_F(supervised, is_restarted_as_often_as_its_row_says_and_then_withdrawn) {
  start();
  const auto disk = add(actor_kind::disk, "disk");
  std::vector<std::string> expected;
  for (int i = 0; i < row_of(actor_kind::disk).restarts; ++i) {
    fail(disk, "again");
    expected.push_back("disk restarts");
  }
  EXPECT_EQ(log, expected);
  fail(disk, "too often");
  expected.push_back("disk withdraws: too often");
  EXPECT_EQ(log, expected);
}

TEST_F(supervised, without_restarts_is_withdrawn_each_time) {
  start();
  const auto n = add(actor_kind::remote_node, "node:0");
  fail(n, "one");
  fail(n, "two");  // another process in the same place
  EXPECT_THAT(log, ElementsAre("node:0 withdraws: one", "node:0 withdraws: two"));
}

TEST_F(supervised, that_the_runtime_needs_ends_it) {
  start();
  const auto p = add(actor_kind::placement, "placement");
  fail(p, "broken");
  EXPECT_THAT(log, ElementsAre("the end, by placement: broken"));
}

TEST_F(supervised, whose_restart_throws_has_failed_again) {
  start();
  const auto g = add(actor_kind::gpu, "gpu");
  g->restart_throws = true;
  fail(g, "broken");
  EXPECT_THAT(log, ElementsAre("gpu restarts", "gpu restarts", "gpu restarts", "gpu withdraws: cannot"));
}

TEST_F(supervised, that_cannot_be_withdrawn_ends_the_runtime) {
  start();
  const auto n = add(actor_kind::cluster, "cluster");
  n->withdraw_throws = true;
  fail(n, "broken");
  EXPECT_THAT(log, ElementsAre("cluster withdraws: broken", "the end, by cluster: stuck"));
}

TEST_F(supervised, fails_alone) {
  start();
  const auto one = add(actor_kind::disk, "one");
  const auto two = add(actor_kind::gpu, "two");
  fail(two, "broken");
  fail(one, "broken");
  fail(two, "broken");
  EXPECT_THAT(log, ElementsAre("two restarts", "one restarts", "two restarts"));
}

TEST_F(supervised, that_is_gone_is_left_alone) {
  start();
  auto one = add(actor_kind::disk, "one");
  const std::size_t number = 0;
  one.reset();
  desk.note_failure(number, made("late"));
  tell();
  EXPECT_TRUE(log.empty());
}

TEST_F(supervised, is_not_once_supervision_has_ended) {
  start();
  const auto one = add(actor_kind::disk, "one");
  desk.close();
  fail(one, "late");
  EXPECT_TRUE(log.empty());
}

TEST_F(supervised, are_told_in_remarks_that_differ) {
  options_.remark = [this](std::string text) { log.push_back(std::move(text)); };
  start();
  const auto g = add(actor_kind::gpu, "gpu");
  fail(g, "broken");
  fail(g, "broken");
  EXPECT_THAT(log, ElementsAre("gpu has failed (1): broken; it is restarted", "gpu restarts",
                               "gpu has failed (2): broken; it is restarted", "gpu restarts"));
}

TEST_F(supervised, housekeeper_rings_when_a_time_has_passed_and_not_before) {
  start(true);
  delays.add(100ms);
  delays.add(300ms);
  caf::anon_send(below_, ring_later{});
  run();
  pass(99ms);
  EXPECT_TRUE(log.empty());
  pass(1ms);
  EXPECT_THAT(log, ElementsAre("ring"));
  pass(200ms);
  EXPECT_THAT(log, ElementsAre("ring", "ring"));
}

TEST_F(supervised, housekeeper_that_fails_is_replaced) {
  start(true);
  ring_throws = true;
  delays.add(0ms);
  caf::anon_send(below_, ring_later{});
  run();
  pass(1ms);
  EXPECT_THAT(log, ElementsAre("ring", "another housekeeper"));
  ring_throws = false;
  delays.add(10ms);
  caf::anon_send(below_, ring_later{});
  run();
  pass(10ms);
  EXPECT_THAT(log, ElementsAre("ring", "another housekeeper", "ring"));
}

class tidying : public supervised {
 protected:
  bool tidy() override {
    log.push_back("tidy");
    return --left == 0;
  }
  int left = 1;
};

TEST_F(tidying, waits_for_the_last_of_a_series_of_idle_times) {
  start(true);
  caf::anon_send(below_, executors_idle{});
  run();
  pass(150ms);
  caf::anon_send(below_, executors_idle{});
  run();
  pass(150ms);
  EXPECT_TRUE(log.empty());
  pass(50ms);
  EXPECT_THAT(log, ElementsAre("tidy"));
  pass(10s);
  EXPECT_THAT(log, ElementsAre("tidy"));
}

TEST_F(tidying, comes_again_after_twice_the_time_while_something_is_left) {
  left = 3;
  start(true);
  caf::anon_send(below_, executors_idle{});
  run();
  pass(200ms);
  EXPECT_THAT(log, ElementsAre("tidy"));
  pass(399ms);
  EXPECT_THAT(log, ElementsAre("tidy"));
  pass(1ms);
  EXPECT_THAT(log, ElementsAre("tidy", "tidy"));
  pass(800ms);
  EXPECT_THAT(log, ElementsAre("tidy", "tidy", "tidy"));
  pass(10s);
  EXPECT_EQ(log.size(), 3u);
}

TEST(supervision_table, has_a_row_for_each_kind_in_their_order) {
  for (std::size_t i = 0; i < supervision_table.size(); ++i)
    EXPECT_EQ(supervision_table[i].kind, static_cast<actor_kind>(i)) << supervision_table[i].name;
  EXPECT_EQ(supervision_table.size(), static_cast<std::size_t>(actor_kind::housekeeper) + 1);
}

TEST(trace_desk, that_is_given_up_lets_those_go_on_who_wait_for_its_end) {
  trace_desk d;
  d.open(testing::TempDir() + "given_up.json");
  EXPECT_TRUE(d.add({}));
  d.give_up("no memory");
  EXPECT_FALSE(d.add({}));
  EXPECT_TRUE(d.finish());
  EXPECT_EQ(d.wait_closed(), "no memory");
}

}  // namespace
