// What this file is for: where several threads submit, each orders its tasks itself, and program order holds all the
// same.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "actors/placement/side_policy.hpp"
#include "actors/protocol/phase.hpp"
#include "stage.hpp"

namespace {

using namespace test;
using troupe::access_mode;

struct submission_test : testing::Test {
  submission_test() {
    array_core *const a = s.array(), *const b = s.array();
    for (int i = 0; i < 4; ++i) {  // times are known for one array and for two
      s.complete(s.submitted({{a, access_mode::update}}));
      s.complete(s.submitted({{a, access_mode::update}, {b, access_mode::read}}));
    }
  }
  // Two threads submit more than one turn gets done, and this task, if it is one.
  void crowd(task_record* last = nullptr) {
    std::vector<task_record*> all;
    for (std::size_t i = 0; i < troupe::detail::side_policy::begin_after; ++i)
      all.push_back(s.task({{s.array(), access_mode::write}}));
    s.placement_actor->with_turn([&] {
      for (std::size_t half : {std::size_t{0}, all.size() / 2})
        on_a_thread([&] {
          for (std::size_t i = half; i < half + all.size() / 2; ++i) s.placement_actor->submit(all[i], false);
        });
      if (last) s.placement_actor->submit(last, false);
    });
    s.complete_all();
  }
  template <class F>
  static void on_a_thread(F&& f) {
    std::thread(f).join();
  }
  task_record* submitted_outside(const std::vector<use>& uses) {
    task_record* const t = s.task(uses);
    on_a_thread([&] { s.placement_actor->submit(t, false); });
    return t;
  }
  static bool is_aside(const task_record* t) { return series_of(t->id) != 0; }
  void expect_all_counted() {
    s.complete_all();
    const troupe::runtime_report r = s.placement_actor->report();
    EXPECT_EQ(r.finished, r.spawned);
    EXPECT_TRUE(s.placement_actor->is_quiet());
  }

  stage s{1};
};

TEST_F(submission_test, one_thread_has_its_tasks_ordered_in_turns) {
  task_record* const t = submitted_outside({{s.array(), access_mode::update}});
  EXPECT_TRUE(s.is_out(t));
  EXPECT_FALSE(is_aside(t));
}

TEST_F(submission_test, threads_of_a_crowd_order_tasks_themselves) {
  crowd();
  array_core *const a = s.array(), *const b = s.array();
  task_record *first = s.task({{a, access_mode::update}}), *second = s.task({{a, access_mode::update}}),
              *third = s.task({{b, access_mode::update}, {a, access_mode::read}});
  on_a_thread([&] {
    for (task_record* t : {first, second, third}) s.placement_actor->submit(t, false);
  });
  for (task_record* t : {first, second, third}) EXPECT_TRUE(is_aside(t));
  EXPECT_TRUE(s.is_out(first));
  EXPECT_FALSE(s.is_out(second));
  s.complete(first);
  EXPECT_TRUE(s.is_out(second));
  EXPECT_FALSE(s.is_out(third));
  s.complete(second);
  EXPECT_TRUE(s.is_out(third));
  expect_all_counted();
}

TEST_F(submission_test, even_while_the_turn_is_wanted_for_something_else) {
  crowd();
  array_core* const a = s.array();
  task_record* const t = submitted_outside({{a, access_mode::update}});
  EXPECT_TRUE(is_aside(t));
  s.placement_actor->with_turn([] {});
  EXPECT_TRUE(is_aside(submitted_outside({{s.array(), access_mode::update}})));
  expect_all_counted();
}

TEST_F(submission_test, are_posted_behind_what_was_posted_while_a_turn_is_held) {
  crowd();
  array_core* const a = s.array();
  task_record *const first = s.task({{a, access_mode::update}}), *const second = s.task({{a, access_mode::update}});
  s.placement_actor->with_turn([&] {
    s.placement_actor->submit(first, true);
    on_a_thread([&] { s.placement_actor->submit(second, false); });
  });
  EXPECT_FALSE(is_aside(second));
  EXPECT_TRUE(s.is_out(first));
  EXPECT_FALSE(s.is_out(second));
  s.complete(first);
  EXPECT_TRUE(s.is_out(second));
  expect_all_counted();
}

// A thread that waits for what is in the mail handles that itself: nobody else may come for it.
TEST_F(submission_test, come_after_what_was_posted_before) {
  crowd();
  array_core* const a = s.array();
  task_record *const first = s.task({{a, access_mode::update}}), *const second = s.task({{a, access_mode::update}});
  s.placement_actor->became_active();  // so the mail is left to this thread
  s.placement_actor->submit(first, true);
  on_a_thread([&] { s.placement_actor->submit(second, false); });
  s.placement_actor->became_idle();
  EXPECT_TRUE(is_aside(second));
  EXPECT_TRUE(s.is_out(first));
  EXPECT_FALSE(s.is_out(second));
  s.complete(first);
  EXPECT_TRUE(s.is_out(second));
  expect_all_counted();
}

TEST_F(submission_test, are_not_ordered_aside_with_a_priority) {
  crowd();
  task_record* const t = s.task({{s.array(), access_mode::update}});
  s.extra(t).options.priority = 1;
  on_a_thread([&] { s.placement_actor->submit(t, false); });
  EXPECT_FALSE(is_aside(t));
  expect_all_counted();
}

// Has tasks submitted while a turn is held, and when it has just been left.
struct hooks final : task_listener {
  std::function<void()> in_turn, behind_turn;
  void granted(task_record&) override { in_turn(); }
  void retired(task_record&) override {}
  void after_turn() override {
    if (behind_turn) std::exchange(behind_turn, nullptr)();
  }
};

TEST_F(submission_test, come_after_what_was_posted_when_threads_were_not_asked_to_yet) {
  array_core* const a = s.array();
  task_record *const first = s.task({{a, access_mode::update}}), *const second = s.task({{a, access_mode::update}});
  hooks h;
  h.in_turn = [&] { on_a_thread([&] { s.placement_actor->submit(first, false); }); };
  h.behind_turn = [&] { on_a_thread([&] { s.placement_actor->submit(second, false); }); };
  task_record* const look = s.task({{s.array(), access_mode::read}});
  look->kind = task_kind::host_access;
  s.extra(look).listener = &h;
  crowd(look);
  EXPECT_FALSE(is_aside(second));
  EXPECT_LT(first->id, second->id);
  EXPECT_TRUE(s.is_done(first) || s.is_out(first));
  s.placement_actor->report_done({&look, 1}, nullptr);
  EXPECT_TRUE(is_aside(submitted_outside({{s.array(), access_mode::update}}))) << "they are asked to by now";
  expect_all_counted();
}

TEST_F(submission_test, come_after_what_another_thread_has_ordered) {
  crowd();
  array_core* const a = s.array();
  task_record* const first = submitted_outside({{a, access_mode::update}});
  task_record* const second = submitted_outside({{a, access_mode::update}});
  EXPECT_TRUE(is_aside(first));
  EXPECT_FALSE(is_aside(second)) << "the array belongs to the first thread";
  EXPECT_FALSE(s.is_out(second));
  s.complete(first);
  EXPECT_TRUE(s.is_out(second));
  task_record* const third = submitted_outside({{a, access_mode::update}});
  EXPECT_TRUE(is_aside(third)) << "the turn has set all arrays free";
  EXPECT_FALSE(s.is_out(third));
  s.complete(second);
  EXPECT_TRUE(s.is_out(third));
  expect_all_counted();
}

TEST_F(submission_test, fail_with_what_they_read) {
  crowd();
  array_core* const a = s.array();
  task_record *const bad = s.task({{a, access_mode::update}}), *const before = s.task({{a, access_mode::read}}),
                     *const after = s.task({{a, access_mode::read}});
  on_a_thread([&] {
    s.placement_actor->submit(bad, false);
    s.placement_actor->submit(before, false);
  });
  EXPECT_TRUE(is_aside(before));
  s.complete(bad, 1000, std::make_exception_ptr(std::runtime_error("bad")));
  EXPECT_TRUE(s.is_done(before));
  EXPECT_TRUE(before->error);
  on_a_thread([&] { s.placement_actor->submit(after, false); });
  EXPECT_TRUE(s.is_done(after));
  EXPECT_TRUE(after->error);
  task_record* const healed = submitted_outside({{a, access_mode::write}});
  s.complete(healed);
  EXPECT_FALSE(healed->error);
  expect_all_counted();
}

TEST_F(submission_test, that_were_cancelled_before_do_not_run) {
  crowd();
  task_record* const t = s.task({{s.array(), access_mode::update}});
  ASSERT_TRUE(claim(*t));
  fulfil(*t, s.board);
  on_a_thread([&] { s.placement_actor->submit(t, false); });
  EXPECT_FALSE(s.is_out(t));
  expect_all_counted();
}

TEST_F(submission_test, are_given_up_with_all_others_when_the_runtime_ends) {
  crowd();
  array_core* const a = s.array();
  task_record *const first = s.task({{a, access_mode::update}}), *const second = s.task({{a, access_mode::write}});
  on_a_thread([&] {
    s.placement_actor->submit(first, false);
    s.placement_actor->submit(second, false);
  });
  ASSERT_TRUE(is_aside(second));
  s.placement_actor->close();
  EXPECT_EQ(s.placement_actor->abandon_queued(), 2u);
  EXPECT_TRUE(first->error);
  EXPECT_TRUE(second->error);
  task_record* const late = submitted_outside({{s.array(), access_mode::update}});
  EXPECT_FALSE(is_aside(late));
  EXPECT_TRUE(late->error);
  expect_all_counted();
}

TEST_F(submission_test, do_not_exist_beside_a_device_or_another_group) {
  for (const int groups : {1, 2}) {
    stage other(groups);
    if (groups == 1) other.add({1, "gpu:0", troupe::device_kind::sim, 1, 1});
    std::vector<task_record*> all;
    for (std::size_t i = 0; i < 2 * troupe::detail::side_policy::begin_after; ++i)
      all.push_back(other.task({{other.array(), access_mode::write}}));
    other.placement_actor->with_turn([&] {
      on_a_thread([&] {
        for (std::size_t i = 0; i < all.size() / 2; ++i) other.placement_actor->submit(all[i], false);
      });
      on_a_thread([&] {
        for (std::size_t i = all.size() / 2; i < all.size(); ++i) other.placement_actor->submit(all[i], false);
      });
    });
    other.complete_all();
    task_record* const t = other.task({{other.array(), access_mode::update}});
    on_a_thread([&] { other.placement_actor->submit(t, false); });
    EXPECT_FALSE(is_aside(t)) << groups;
  }
}

}  // namespace
