// What this file is for: what every actor is made of: planted faults, reports of failures, threads that are waited for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/actor.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

using namespace troupe::detail;
using namespace std::chrono_literals;

constexpr auto patience = 30s;
auto in_time() { return std::chrono::steady_clock::now() + patience; }
std::exception_ptr made(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }

// An actor whose steps the test makes.
class puppet : public actor {
 public:
  actor_kind kind() const override { return actor_kind::disk; }
  std::string label() const override { return "puppet"; }
  void withdraw(std::exception_ptr why) override { withdrawn = text_of(why); }
  void look_up() override { ++looks; }
  void step() { check_fault(); }
  void fail(const char* why) { tell_supervisor(made(why)); }
  std::string withdrawn;
  int looks = 0;
};

TEST(actor, throws_a_planted_fault_once_at_its_next_step) {
  puppet p;
  p.step();
  p.plant(made("planted"));
  EXPECT_EQ(p.looks, 1);
  EXPECT_THROW(p.step(), std::runtime_error);
  p.step();
}

TEST(actor, tells_its_supervisor_and_without_one_withdraws) {
  puppet p;
  p.fail("alone");
  EXPECT_EQ(p.withdrawn, "alone");
  std::string told;
  p.supervise([&](std::exception_ptr why) { told = text_of(why); });
  p.fail("supervised");
  EXPECT_EQ(told, "supervised");
  EXPECT_EQ(p.withdrawn, "alone");
}

TEST(actor_thread, keeps_what_it_needs_until_it_has_ended) {
  actor_thread t;
  EXPECT_TRUE(t.wait_ended(std::chrono::steady_clock::now()));  // never started
  auto kept = std::make_shared<int>(1);
  std::promise<void> go;
  std::string name(32, '\0');
  t.start(
      "one", kept,
      [&] {
        pthread_getname_np(pthread_self(), name.data(), name.size());
        go.get_future().wait();
      },
      nullptr);
  const std::weak_ptr<int> seen = kept;
  kept.reset();
  EXPECT_FALSE(seen.expired());
  go.set_value();
  EXPECT_TRUE(t.wait_ended(in_time()));
  EXPECT_TRUE(seen.expired());
  EXPECT_STREQ(name.c_str(), "one");
}

TEST(actor_thread, reports_what_it_throws_after_it_has_come_to_rest) {
  actor_thread t;
  std::promise<std::string> told;
  t.start("throws", nullptr, [] { throw std::runtime_error("oh"); },
          [&](std::exception_ptr why) { told.set_value(text_of(why)); });
  EXPECT_EQ(told.get_future().get(), "oh");
  EXPECT_TRUE(t.wait_ended(in_time()));
}

TEST(actor_thread, may_be_started_again_once_it_has_ended) {
  actor_thread t;
  std::atomic<int> runs{0};
  for (int i = 0; i < 3; ++i) {
    t.start("again", nullptr, [&] { ++runs; }, nullptr);
    EXPECT_TRUE(t.wait_ended(in_time()));
  }
  EXPECT_EQ(runs, 3);
}

TEST(actor_thread, is_left_behind_if_it_does_not_end_in_time_and_ends_later) {
  auto go = std::make_shared<std::promise<void>>();
  auto over = std::make_shared<std::promise<void>>();
  {
    actor_thread t;
    t.start(
        "late", nullptr,
        [go, over] {
          go->get_future().wait();
          over->set_value();
        },
        nullptr);
    EXPECT_FALSE(t.wait_ended(std::chrono::steady_clock::now() + 1ms));
  }
  go->set_value();
  over->get_future().wait();
}

}  // namespace
