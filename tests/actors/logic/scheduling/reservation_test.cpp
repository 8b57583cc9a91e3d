// What this file is for: a task that needs more than is free begins in time, and those that would not delay it pass.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/reservation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace {

using logic_time = std::uint64_t;
using troupe::logic::reservation;
constexpr auto unknown = reservation::unknown, never = reservation::never;

struct job {
  int asks = 1;
  logic_time arrives = 0, lasts = 1, predicted = 1;
  int priority = 0;
  logic_time began = never, ended = never;
};

// A quantity in virtual time, given out in rounds as admission does.
class shop {
 public:
  shop(int total, std::vector<job> jobs, logic_time guess = unknown)
      : line_(guess), free_(total), guess_(guess), jobs_(std::move(jobs)) {}

  // Nobody passes: what a reservation is to be as good as.
  void be_strict() { strict_ = true; }
  // Has a body wait for another one; it ends with it at the earliest.
  void nest(std::size_t parent, std::size_t child) { child_of_[parent] = child; }

  // False: somebody never began.
  bool run(logic_time limit) {
    for (logic_time now = 0; now < limit;) {
      for (std::size_t i = jobs_.size(); i-- != 0;) {  // children come after their parents
        job& j = jobs_[i];
        if (j.began == never || j.ended != never || now < j.began + j.lasts) continue;
        if (const auto c = child_of_.find(i); c != child_of_.end() && jobs_[c->second].ended == never) continue;
        j.ended = now;
        free_ += j.asks;
        line_.end(&j);
      }
      const logic_time again = round(now);
      logic_time next = std::min(again, limit);
      bool all = true;
      for (const job& j : jobs_) {
        all = all && j.ended != never;
        if (j.arrives > now) next = std::min(next, j.arrives);
        if (j.began != never && j.ended == never && j.began + j.lasts > now) next = std::min(next, j.began + j.lasts);
      }
      if (all) return true;
      now = std::max(now + 1, next);
    }
    return false;
  }
  const job& operator[](std::size_t i) const { return jobs_[i]; }

 private:
  logic_time round(logic_time now) {
    std::vector<job*> order;
    for (job& j : jobs_)
      if (j.began == never && j.arrives <= now) order.push_back(&j);
    std::ranges::stable_sort(order, [](const job* a, const job* b) { return a->priority > b->priority; });
    line_.begin_round();
    logic_time again = never;
    for (job* j : order) {
      if (j->asks <= free_ && line_.lets_pass(j->asks, now, j->predicted)) {
        line_.hold(j, j->asks, now, j->predicted);
        free_ -= j->asks;
        j->began = now;
        EXPECT_GE(free_, 0);
        continue;
      }
      if (strict_) break;
      if (j->asks <= free_) again = std::min(again, line_.look_at(now, std::max<logic_time>(guess_, 1)));
      if (!line_.is_kept()) line_.keep(j, j->asks, free_, line_.when_back(j->asks - free_, now).at, now);
    }
    return again;
  }

  reservation line_;
  int free_;
  const logic_time guess_;
  bool strict_ = false;
  std::vector<job> jobs_;
  std::map<std::size_t, std::size_t> child_of_;
};

TEST(reservation, lets_who_ends_before_it_begins_pass_and_nobody_else) {
  shop s(2, {{.asks = 1, .lasts = 100, .predicted = 100},
             {.asks = 2, .arrives = 1, .lasts = 10, .predicted = 10},
             {.asks = 1, .arrives = 2, .lasts = 99, .predicted = 99},
             {.asks = 1, .arrives = 3, .lasts = 97, .predicted = 97}});
  EXPECT_TRUE(s.run(1000));
  EXPECT_EQ(s[1].began, 100u);
  EXPECT_EQ(s[2].began, 110u) << "it would have ended at 101";
  EXPECT_EQ(s[3].began, 3u);
}

TEST(reservation, lets_who_fits_beside_it_pass_however_long_that_takes) {
  shop s(4, {{.asks = 3, .lasts = 10, .predicted = 10},
             {.asks = 2, .arrives = 1},
             {.asks = 1, .arrives = 2, .lasts = 1000, .predicted = 1000}});
  EXPECT_TRUE(s.run(2000));
  EXPECT_EQ(s[1].began, 10u);
  EXPECT_EQ(s[2].began, 2u);
}

TEST(reservation, is_for_the_first_in_order_of_priority) {
  shop s(2, {{.asks = 1, .lasts = 10, .predicted = 10},
             {.asks = 2, .arrives = 1, .lasts = 10, .predicted = 10},
             {.asks = 2, .arrives = 2, .lasts = 10, .predicted = 10, .priority = 1}});
  EXPECT_TRUE(s.run(100));
  EXPECT_EQ(s[2].began, 10u);
  EXPECT_EQ(s[1].began, 20u);
}

TEST(reservation, keeps_nothing_of_unknown_length_from_passing_one_at_a_time_where_there_is_long_to_wait) {
  shop s(3,
         {{.asks = 1, .lasts = 1000, .predicted = 1000},
          {.asks = 3, .arrives = 1},
          {.asks = 1, .arrives = 2, .lasts = 5, .predicted = unknown},
          {.asks = 1, .arrives = 2, .lasts = 5, .predicted = unknown}},
         10);
  EXPECT_TRUE(s.run(3000));
  EXPECT_EQ(s[1].began, 1000u);
  EXPECT_EQ(s[2].began, 2u);
  EXPECT_GE(s[3].began, 7u);
  EXPECT_LT(s[3].began, 1000u);
}

// A stream of small tasks on all slots, and a large one of a higher priority: the rule before let all of them pass.
TEST(reservation, begins_under_a_stream_of_small_ones_whatever_is_known_of_them) {
  for (const logic_time predicted : {logic_time{20}, unknown, logic_time{1}, logic_time{500}}) {
    std::vector<job> jobs;
    for (logic_time i = 0; i < 1000; ++i)
      jobs.push_back({.asks = 1, .arrives = i * 5, .lasts = 20 + i % 7, .predicted = predicted});
    jobs.push_back({.asks = 2, .arrives = 100, .lasts = 1, .predicted = 1, .priority = 100});
    shop s(2, jobs, 1);
    EXPECT_TRUE(s.run(100'000));
    EXPECT_LT(s[1000].began, 100u + 40 * 26) << predicted;
  }
}

// Holders of one take the others in turn, each longer than anybody thought.
TEST(reservation, is_put_off_by_wrong_predictions_so_often_at_most) {
  for (const logic_time takes : {100, 1'000, 10'000}) {
    std::vector<job> jobs;
    for (logic_time i = 0; i < 400; ++i) jobs.push_back({.asks = 1, .arrives = 0, .lasts = takes + i, .predicted = 2});
    jobs.push_back({.asks = 2, .arrives = 1, .lasts = 1, .predicted = 1, .priority = 1});
    shop s(2, jobs, 2);
    EXPECT_TRUE(s.run(400 * 10'500));
    EXPECT_LT(s[400].began, takes * 20) << takes;
  }
}

// The child needs what is kept for a task that waits for the parent.
TEST(reservation, is_no_deadlock_where_a_holder_waits_for_one_that_comes_after_it) {
  for (const logic_time predicted : {logic_time{5}, logic_time{5000}, unknown}) {
    shop s(2,
           {{.asks = 1, .lasts = 10, .predicted = 10},
            {.asks = 2, .arrives = 1, .lasts = 10, .predicted = 10, .priority = 1},
            {.asks = 1, .arrives = 2, .lasts = 5, .predicted = predicted}},
           1);
    s.nest(0, 2);
    EXPECT_TRUE(s.run(1'000'000)) << predicted;
    EXPECT_LT(s[2].began, s[1].began);
  }
}

TEST(reservation, expects_a_holder_that_is_over_its_time_to_take_as_long_again) {
  reservation r;
  int a = 0, b = 0;
  r.hold(&a, 1, 0, 10);
  r.hold(&b, 2, 5, 100);
  EXPECT_EQ(r.when_back(1, 3).at, 10u);
  EXPECT_TRUE(r.when_back(1, 3).sure);
  EXPECT_EQ(r.when_back(1, 40).at, 80u);
  EXPECT_FALSE(r.when_back(1, 40).sure);
  EXPECT_EQ(r.when_back(1, 90).at, 105u) << "the other one comes first now";
  EXPECT_EQ(r.when_back(3, 90).at, 180u);
  EXPECT_EQ(r.when_back(4, 90).at, never);
  r.end(&b);
  EXPECT_EQ(r.when_back(1, 90).at, 180u);
}

// Exhaustive: all sets of five small jobs behind two, where predictions are right. The task that waits first begins as
// if none could pass it, and all together are done no later for that.
TEST(reservation, delays_the_first_that_waits_in_no_order_of_small_jobs) {
  std::vector<std::pair<int, logic_time>> kinds;
  for (int asks = 1; asks <= 3; ++asks)
    for (const logic_time lasts : {1, 3, 6}) kinds.push_back({asks, lasts});
  std::vector<std::size_t> at(4, 0);
  std::size_t passed = 0, cases = 0;
  for (bool more = true; more;) {
    std::vector<job> jobs{{.asks = 2, .lasts = 5, .predicted = 5}, {.asks = 3, .lasts = 2, .predicted = 2}};
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto& [asks, lasts] = kinds[at[i]];
      jobs.push_back({.asks = asks, .arrives = i, .lasts = lasts, .predicted = lasts});
    }
    shop with(4, jobs), strict(4, jobs);
    strict.be_strict();
    ASSERT_TRUE(with.run(1000));
    ASSERT_TRUE(strict.run(1000));
    ++cases;
    ASSERT_EQ(with[1].began, 5u);
    ASSERT_EQ(strict[1].began, 5u);
    for (std::size_t i = 2; i < jobs.size(); ++i) passed += with[i].began < with[1].began ? 1 : 0;
    more = false;
    for (std::size_t i = 0; i < at.size() && !more; ++i) {
      more = ++at[i] < kinds.size();
      if (!more) at[i] = 0;
    }
  }
  EXPECT_EQ(cases, 6561u);
  EXPECT_GT(passed, 2000u);
}

// Predictions are wrong by up to a hundred times either way, and some are not known.
TEST(reservation, lets_everybody_begin_in_random_orders_with_random_predictions) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<job> jobs;
    const int total = 1 + static_cast<int>(random() % 6);
    logic_time work = 0;
    for (int i = 0; i < 60; ++i) {
      job j{.asks = 1 + static_cast<int>(random() % static_cast<unsigned>(total)),
            .arrives = random() % 300,
            .lasts = 1 + random() % 100,
            .predicted = random() % 4 == 0 ? unknown : 1 + random() % 100,
            .priority = static_cast<int>(random() % 3)};
      work += j.lasts;
      jobs.push_back(j);
    }
    shop s(total, jobs, 3);
    ASSERT_TRUE(s.run(20 * work)) << trial;
  }
}

}  // namespace
