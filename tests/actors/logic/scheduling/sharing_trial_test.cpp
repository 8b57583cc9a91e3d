// What this file is for: whether threads share tiny tasks follows from how many end in the same time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>

#include "actors/logic/scheduling/sharing_trial.hpp"

namespace {

using troupe::logic::sharing_trial;

// A program whose tasks take so many ticks each, of all threads together: with one thread, and with several.
class program {
 public:
  std::uint64_t alone = 400, shared = 150, body = 20;

  // Runs so many windows; returns in how many of them tasks were shared.
  int run(int windows) {
    int n = 0;
    for (int i = 0; i < windows; ++i) {
      n += shares_ ? 1 : 0;
      at_.now += sharing_trial::window * (shares_ ? shared : alone);
      at_.tasks += sharing_trial::window;
      at_.bodies += sharing_trial::window * body;
      shares_ = trial_.note(at_);
    }
    return n;
  }
  void pause() {
    at_.now += 1'000'000'000;
    ++at_.pauses;
  }
  bool shares() const { return shares_; }
  bool are_tiny() const { return trial_.are_tiny(); }
  // Runs tasks one by one until there is a trial, and returns the time that this takes.
  std::uint64_t time_of_trial() {
    const bool before = shares_;
    while (shares_ == before) step();
    const std::uint64_t begun = at_.now;
    while (shares_ != before) step();
    return at_.now - begun;
  }
  void step() {
    at_.now += shares_ ? shared : alone;
    ++at_.tasks;
    at_.bodies += body;
    shares_ = trial_.note(at_);
  }
  // Notes less than a window.
  void hurry() {
    at_.tasks += sharing_trial::window / 2;
    shares_ = trial_.note(at_);
  }

 private:
  sharing_trial trial_{1'000};
  sharing_trial::moment at_{.now = 1};
  bool shares_ = false;
};

TEST(sharing_trial, shares_soon_where_more_tasks_end) {
  program p;
  p.run(6);
  EXPECT_TRUE(p.shares());
  EXPECT_GE(p.run(200), 190);
}

TEST(sharing_trial, tries_ever_more_seldom_where_fewer_tasks_end) {
  program p;
  p.shared = 700;
  const int early = p.run(100), late = p.run(1'000);
  EXPECT_GE(early, 2);
  EXPECT_LE(early, 8);
  EXPECT_GE(late, 1);
  EXPECT_LE(late, 8);
  EXPECT_FALSE(p.shares());
}

TEST(sharing_trial, gives_up_what_is_slower_after_the_time_of_one_window) {
  program p;
  p.shared = 40'000;
  EXPECT_LE(p.time_of_trial(), sharing_trial::window * p.alone + p.shared);
}

TEST(sharing_trial, takes_one_slow_window_for_chance) {
  program p;
  p.run(500);
  ASSERT_TRUE(p.shares());
  int shared = 0;
  for (int i = 0; i < 300; ++i) {
    p.shared = i % 3 == 0 ? 300 : 150;
    shared += p.run(1);
  }
  EXPECT_GE(shared, 285);
}

TEST(sharing_trial, does_not_share_for_a_small_gain) {
  program p;
  p.shared = 380;
  p.run(100);
  EXPECT_FALSE(p.shares());
}

TEST(sharing_trial, goes_back_soon_when_the_program_changes) {
  program p;
  p.run(20);
  ASSERT_TRUE(p.shares());
  p.alone = 500;
  p.shared = 900;
  p.run(12);
  EXPECT_FALSE(p.shares());
  p.alone = 2'000;
  p.shared = 300;
  p.run(12);
  EXPECT_TRUE(p.shares());
}

TEST(sharing_trial, learns_nothing_from_time_without_work) {
  program p;
  p.shared = 700;
  for (int i = 0; i < 50; ++i) {
    p.pause();
    p.run(1);
    EXPECT_FALSE(p.shares());
  }
}

TEST(sharing_trial, tries_seldom_where_pauses_cut_trials_off) {
  program p;
  p.shared = 700;
  int shared = 0;
  for (int i = 0; i < 300; ++i) {
    if (i % 3 == 0) p.pause();
    shared += p.run(1);
  }
  EXPECT_LE(shared, 30);
}

TEST(sharing_trial, ends_with_bodies_that_are_not_tiny_and_is_remembered) {
  program p;
  p.run(20);
  ASSERT_TRUE(p.shares());
  p.body = 3'000;
  p.run(1);
  EXPECT_FALSE(p.shares());
  EXPECT_EQ(p.run(100), 0);
  p.body = 20;
  p.alone = 100;
  p.run(2);
  EXPECT_TRUE(p.shares()) << "nothing was compared";
}

TEST(sharing_trial, compares_nothing_before_enough_tasks_have_ended) {
  program p;
  for (int i = 0; i < 3; ++i) {
    p.hurry();
    EXPECT_FALSE(p.shares());
  }
}

TEST(sharing_trial, tells_whether_the_tasks_that_ended_last_were_tiny) {
  program p;
  p.run(2);
  EXPECT_TRUE(p.are_tiny());
  p.body = 2'000;
  p.run(1);
  EXPECT_FALSE(p.are_tiny());
}

}  // namespace
