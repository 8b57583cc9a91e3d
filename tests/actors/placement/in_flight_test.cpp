// What this file is for: threads that wait for tasks in flight go on when enough have finished, and not before.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "actors/placement/in_flight.hpp"

namespace {

using troupe::detail::in_flight;
using clock_type = std::chrono::steady_clock;

constexpr auto for_ever = clock_type::time_point::max();
constexpr auto long_after = std::chrono::seconds(60);

void submit(in_flight& f, int n) { f.submissions().fetch_add(static_cast<std::uint64_t>(n)); }

// Retires tasks as one turn does, and wakes as it does after the turn.
void retire(in_flight& f, int n) {
  for (int i = 0; i < n; ++i) f.note_retired();
  f.publish();
  f.wake_waiters();
}

TEST(in_flight, counts_what_has_been_submitted_and_has_not_finished) {
  in_flight f(8);
  EXPECT_TRUE(f.none());
  submit(f, 5);
  f.note_retired();
  EXPECT_EQ(f.count(), 5u) << "nothing has been published";
  f.publish();
  EXPECT_EQ(f.finished(), 1u);
  EXPECT_EQ(f.count(), 4u);
  EXPECT_EQ(f.finished(), 1u);
  EXPECT_EQ(f.submitted(), 5u);
  EXPECT_FALSE(f.none());
  EXPECT_FALSE(f.all_retired());
  retire(f, 4);
  EXPECT_TRUE(f.none());
  EXPECT_TRUE(f.all_retired());
}

TEST(in_flight, counts_a_granted_access_as_finished_and_knows_that_its_view_is_open) {
  in_flight f(8);
  submit(f, 1);
  f.note_granted();
  f.publish();
  EXPECT_EQ(f.finished(), 1u);
  EXPECT_TRUE(f.none()) << "nobody waits for the end of a view";
  EXPECT_FALSE(f.all_retired());
  f.note_closed();
  EXPECT_TRUE(f.all_retired());
  f.publish();
  EXPECT_EQ(f.finished(), 1u) << "it counts once";
}

TEST(in_flight, is_at_its_bound_with_as_many_as_allowed) {
  in_flight f(8);
  submit(f, 7);
  EXPECT_FALSE(f.is_at_bound());
  submit(f, 1);
  EXPECT_TRUE(f.is_at_bound());
}

TEST(in_flight, looks_at_a_large_bound_now_and_then_and_at_a_small_one_always) {
  in_flight small(64 * in_flight::look_every - 1), large(64 * in_flight::look_every);
  submit(small, 1);
  submit(large, 1);
  EXPECT_TRUE(small.may_be_at_bound());
  EXPECT_FALSE(large.may_be_at_bound());
  submit(large, in_flight::look_every - 1);
  EXPECT_TRUE(large.may_be_at_bound());
}

TEST(in_flight, counts_what_each_side_submits) {
  in_flight f(1'024);
  f.count_sides();
  submit(f, 2);
  f.note_submitted_aside(0);
  f.note_submitted_aside(in_flight::sides - 1);
  EXPECT_EQ(f.submitted(), 4u);
  EXPECT_EQ(f.count(), 4u);
  retire(f, 3);
  EXPECT_FALSE(f.all_retired());
  f.note_retired_outside(1, 0);
  EXPECT_TRUE(f.none());
  EXPECT_TRUE(f.all_retired());
}

TEST(in_flight, has_each_side_look_at_a_large_bound_now_and_then) {
  in_flight f(64 * in_flight::look_every);
  f.count_sides();
  submit(f, 1);
  EXPECT_TRUE(f.may_be_at_bound(1));
  EXPECT_FALSE(f.may_be_at_bound(1)) << "whether it submits its tasks by mail or not";
  EXPECT_TRUE(f.may_be_at_bound(2));
  for (std::uint64_t i = 2; i < in_flight::look_every; ++i) EXPECT_FALSE(f.may_be_at_bound(1));
  EXPECT_TRUE(f.may_be_at_bound(1));
  in_flight small(64 * in_flight::look_every - 1);
  small.note_submitted_aside(1);
  EXPECT_TRUE(small.may_be_at_bound(1));
}

TEST(in_flight, holds_a_thread_back_until_a_quarter_has_drained) {
  in_flight f(9);  // goes on at 6
  submit(f, 9);
  std::atomic<bool> went_on{false};
  std::thread held([&] {
    f.wait_until_drained([] {});
    went_on = true;
  });
  retire(f, 2);
  EXPECT_EQ(f.count(), 7u);
  EXPECT_FALSE(went_on) << "seven are more than six";
  retire(f, 1);
  held.join();
  EXPECT_TRUE(went_on);
}

TEST(in_flight, lets_a_thread_go_that_the_others_wait_for) {
  in_flight f(4);
  submit(f, 4);
  int asked = 0;
  f.use_exemption([&] { return ++asked == 2; });  // not at first: tasks begin to wait for it meanwhile
  f.wait_until_drained([] {});
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(f.count(), 4u);
}

TEST(in_flight, has_room_as_soon_as_one_less_than_the_bound_is_left) {
  in_flight f(8);
  submit(f, 8);
  EXPECT_FALSE(f.wait_for_room(clock_type::now() + std::chrono::milliseconds(1), [] {}));
  f.note_retired();
  f.publish();
  EXPECT_TRUE(f.wait_for_room(clock_type::now(), [] {}));
}

TEST(in_flight, wakes_who_waits_for_quiet_when_the_last_one_has_finished) {
  in_flight f(8);
  submit(f, 2);
  std::promise<void> waiting;
  std::atomic<int> looks{0};
  auto quiet = std::async(std::launch::async, [&] {
    return f.wait_until(
        [&] {
          if (looks.fetch_add(1) == 0) waiting.set_value();
          return f.none();
        },
        for_ever);
  });
  waiting.get_future().wait();
  retire(f, 1);
  retire(f, 1);
  ASSERT_EQ(quiet.wait_for(long_after), std::future_status::ready);
  EXPECT_TRUE(quiet.get());
  EXPECT_LE(looks, 4) << "one wake-up is enough";
}

TEST(in_flight, counts_what_retires_without_a_turn_beside_the_others) {
  in_flight f(8);
  submit(f, 5);
  f.note_retired();
  f.note_retired_outside(3, 0);
  EXPECT_EQ(f.finished(), 3u) << "the turn has not been left";
  f.publish();
  EXPECT_EQ(f.finished(), 4u);
  EXPECT_EQ(f.count(), 1u);
  EXPECT_FALSE(f.all_retired());
  f.note_retired_outside(1, in_flight::counters - 1);
  EXPECT_TRUE(f.none());
  EXPECT_TRUE(f.all_retired());
}

// Two threads retire tasks, one of them in turns; each time another one waits until none is left.
TEST(in_flight, wakes_who_waits_whichever_way_the_last_one_retires) {
  constexpr int rounds = 2000;
  in_flight f(8);
  std::atomic<int> round{0};
  const auto each_round = [&](auto&& retires) {
    return std::async(std::launch::async, [&, retires] {
      for (int r = 1; r <= rounds; ++r) {
        while (round.load() < r) std::this_thread::yield();
        retires();
      }
    });
  };
  auto in_turns = each_round([&] { retire(f, 1); });
  auto without = each_round([&] { f.note_retired_outside(1, 3); });
  for (int r = 1; r <= rounds; ++r) {
    submit(f, 2);
    round.store(r);
    ASSERT_TRUE(f.wait_until([&] { return f.none(); }, clock_type::now() + long_after)) << "round " << r;
  }
  in_turns.get();
  without.get();
}

TEST(in_flight, says_that_it_is_not_quiet_when_the_deadline_has_passed) {
  in_flight f(8);
  submit(f, 1);
  EXPECT_FALSE(f.wait_until([&] { return f.none(); }, clock_type::now()));
}

TEST(in_flight, lets_all_go_when_waiting_is_given_up_and_holds_nobody_after_that) {
  in_flight f(4);
  submit(f, 4);
  std::promise<void> waiting;
  std::atomic<bool> first{true};
  auto quiet = std::async(std::launch::async, [&] {
    return f.wait_until(
        [&] {
          if (first.exchange(false)) waiting.set_value();
          return f.none();
        },
        for_ever);
  });
  auto room = std::async(std::launch::async, [&] { return f.wait_for_room(for_ever, [] {}); });
  waiting.get_future().wait();
  f.give_up();
  ASSERT_EQ(quiet.wait_for(long_after), std::future_status::ready);
  EXPECT_FALSE(quiet.get()) << "it is not quiet, the wait is only over";
  ASSERT_EQ(room.wait_for(long_after), std::future_status::ready);
  EXPECT_TRUE(room.get());
  EXPECT_FALSE(f.wait_until([&] { return f.none(); }, for_ever));
  EXPECT_TRUE(f.given_up());
}

TEST(in_flight, has_room_for_everybody_once_it_is_closed) {
  in_flight f(2);
  submit(f, 2);
  EXPECT_FALSE(f.closed());
  f.close();
  EXPECT_TRUE(f.closed());
  EXPECT_TRUE(f.wait_for_room(for_ever, [] {})) << "who is let in is refused by name, instead of waiting for ever";
}

// Another thread may submit before anybody looks again.
TEST(in_flight, a_wait_ends_well_if_it_was_quiet_once) {
  for (const auto deadline : {for_ever, clock_type::now() + std::chrono::hours(1)}) {
    in_flight f(8);
    int looks = 0;
    EXPECT_TRUE(f.wait_until([&] { return ++looks == 1; }, deadline));
    EXPECT_EQ(looks, 1);
  }
}

}  // namespace
