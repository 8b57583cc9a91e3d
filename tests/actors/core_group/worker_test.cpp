// What this file is for: one worker without a group: bodies that succeed, throw, are tried again, or run inside others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/worker.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "actors/memory/record_pool.hpp"
#include "actors/protocol/phase.hpp"
#include "lone_workplace.hpp"

namespace {

using namespace troupe::detail;
using troupe::error;
using troupe::task_context;

class lone_worker : public testing::Test {
 protected:
  using body = std::function<void(task_context&)>;

  ~lone_worker() override {
    for (task_record* t : tasks_) {
      t->error = nullptr;
      delete std::exchange(t->extra, nullptr);
      place_.where.rt.records.give(t);
    }
  }
  task_record& task(body b, int retries = 0) {
    static constexpr task_ops ops{
        [](task_record& t, task_context& c) { (*static_cast<body*>(t.extra->payload.get()))(c); },
        [](task_record& t) { t.extra->payload.reset(); }, [](task_record&) noexcept {},
        [](task_record&) noexcept -> void* { return nullptr; }, kernel_info{.name = "kernel", .key = 1}};
    task_record* t = tasks_.emplace_back(take_record(place_.where.rt));
    t->ops = &ops;
    t->kernel = &ops.closure;
    t->extra = new task_extra;
    t->extra->payload = std::make_shared<body>(std::move(b));
    t->extra->options.name = "step";
    t->extra->options.retries = retries;
    return *t;
  }

 private:
  test::lone_workplace place_;
  std::vector<task_record*> tasks_;

 protected:
  worker alone{place_.where, 3};
};

TEST_F(lone_worker, runs_a_body_and_the_task_is_done) {
  const run_context *inside = nullptr, *running = nullptr;
  const auto captured = std::make_shared<int>();
  task_record* own = nullptr;
  task_record& t = task([&, captured](task_context& c) {
    inside = alone.context();
    running = alone.running();
    EXPECT_EQ(inside, &c);
    EXPECT_EQ(inside->task(), own);
    EXPECT_FALSE(is_fulfilled(*own));
    EXPECT_EQ(alone.depth(), 1);
  });
  own = &t;
  alone.run(t);
  EXPECT_NE(inside, nullptr);
  EXPECT_EQ(inside, running);
  EXPECT_TRUE(is_fulfilled(t));
  EXPECT_EQ(t.error, nullptr);
  EXPECT_EQ(captured.use_count(), 1) << "what the body captured is gone";
  EXPECT_EQ(alone.context(), nullptr);
  EXPECT_EQ(alone.running(), nullptr);
  EXPECT_EQ(alone.counts().tasks, 1u);
  EXPECT_EQ(alone.counts().failed, 0u);
  EXPECT_GT(t.measured_ns, 0) << "of unknown time, so it was timed";
}

TEST_F(lone_worker, times_few_tiny_bodies_but_all_of_the_next_ones_when_a_prediction_proves_wrong) {
  const auto timed_of = [&](int n) {
    int timed = 0;
    for (int i = 0; i < n; ++i) {
      task_record& t = task([](task_context&) {});
      t.predicted_ns = 100;
      t.measured_ns = 0;
      alone.run(t);
      timed += t.measured_ns > 0 ? 1 : 0;
    }
    return timed;
  };
  EXPECT_LE(timed_of(64), 24);
  alone.compare(100, 2'000);  // a turn beside it may take as long
  EXPECT_LE(timed_of(64), 24);
  alone.compare(100, 50'000);
  EXPECT_EQ(timed_of(16), 16);
  EXPECT_LE(timed_of(64), 24);
  alone.compare(20'000, 50'000);
  EXPECT_LE(timed_of(64), 24);
}

TEST_F(lone_worker, tries_a_body_again_that_throws) {
  std::vector<int> attempts;
  task_record& t = task(
      [&](task_context& c) {
        attempts.push_back(c.attempt());
        if (attempts.size() < 3) throw std::runtime_error("not yet");
      },
      3);
  alone.run(t);
  EXPECT_EQ(attempts, (std::vector{1, 2, 3}));
  EXPECT_EQ(t.error, nullptr);
  EXPECT_EQ(alone.counts().tasks, 3u);
  EXPECT_EQ(alone.counts().failed, 2u);
}

TEST_F(lone_worker, tells_the_last_error_with_its_origin) {
  int runs = 0;
  task_record& t = task([&](task_context&) { throw std::runtime_error("broken " + std::to_string(++runs)); }, 1);
  alone.run(t);
  EXPECT_EQ(runs, 2);
  ASSERT_TRUE(is_fulfilled(t));
  ASSERT_NE(t.error, nullptr);
  try {
    std::rethrow_exception(t.error);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), troupe::errc::task_failed);
    const std::string text = e.what();
    for (const char* part : {"step", "cpu:0", "broken 2"}) EXPECT_NE(text.find(part), text.npos) << text;
  }
}

TEST_F(lone_worker, leaves_a_task_alone_that_another_thread_has_claimed) {
  bool ran = false;
  task_record& t = task([&](task_context&) { ran = true; });
  ASSERT_TRUE(claim(t));
  wait_table board;
  fulfil(t, board);
  alone.run(t);
  EXPECT_FALSE(ran);
  EXPECT_EQ(alone.counts().tasks, 0u);
  EXPECT_EQ(alone.depth(), 0);
}

TEST_F(lone_worker, does_not_begin_a_task_whose_token_says_stop) {
  bool ran = false;
  const auto stop = std::make_unique<std::stop_source>();
  task_record& t = task([&](task_context&) { ran = true; });
  t.extra->options.stop = stop->get_token();
  stop->request_stop();
  alone.run(t);
  EXPECT_FALSE(ran);
  ASSERT_NE(t.error, nullptr);
  try {
    std::rethrow_exception(t.error);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), troupe::errc::cancelled);
  }
}

TEST_F(lone_worker, gives_a_body_inside_another_a_context_of_its_own) {
  const run_context *outer = nullptr, *inner = nullptr;
  task_record& second = task([&](task_context&) {
    inner = alone.context();
    EXPECT_EQ(alone.depth(), 2);
    EXPECT_EQ(alone.running(), inner);
  });
  task_record& first = task([&](task_context&) {
    outer = alone.context();
    alone.run(second);
    EXPECT_EQ(alone.context(), outer);
    EXPECT_EQ(alone.running(), outer);
    EXPECT_TRUE(is_fulfilled(second));
    EXPECT_EQ(alone.holds().slots, 1) << "those of the outer body again";
  });
  alone.run(first);
  ASSERT_NE(inner, nullptr);
  EXPECT_NE(inner, outer);
  EXPECT_EQ(inner->below(), outer);
  EXPECT_EQ(alone.counts().tasks, 2u);
  EXPECT_EQ(alone.holds().slots, 0);
}

TEST_F(lone_worker, asks_about_two_tasks_at_first_and_now_and_then) {
  task_record &a = task({}), &b = task({});
  EXPECT_TRUE(alone.is_to_ask(&a, &b));
  int asked = 0;
  for (int i = 0; i < 128; ++i) asked += alone.is_to_ask(&a, &b) ? 1 : 0;
  EXPECT_EQ(asked, 2) << "every 64th time";
  EXPECT_TRUE(alone.is_to_ask(&b, &a)) << "another question";
}

}  // namespace
