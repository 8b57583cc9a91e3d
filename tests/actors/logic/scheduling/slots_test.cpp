// What this file is for: every slot is in one hand at a time, and no work waits beside a thread that could do it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "actors/logic/scheduling/slots.hpp"

namespace {

using troupe::detail::task_record;
using troupe::logic::slots;
using thread_state = slots::thread_state;

// So many threads with a slot each, all of them asleep.
slots group(int n, int spares_max) {
  slots s(spares_max);
  for (int i = 0; i < n; ++i) s.arrive(s.add(false), 1);
  return s;
}
int made(slots& s) { return std::exchange(s.done().spares, 0); }
std::vector<slots::seat> roused(slots& s) { return std::exchange(s.done().roused, {}); }
std::vector<slots::ticket> granted(slots& s) { return std::exchange(s.done().granted, {}); }
// As `group`, all of them at work.
slots busy_group(int n, int spares_max) {
  slots s = group(n, spares_max);
  while (!s.asleep().empty()) s.call(s.asleep().front());
  for (const slots::seat r : roused(s)) (void)s.take_duty(r);
  return s;
}

TEST(slots, of_sleepers_go_to_a_body_without_waking_anybody) {
  slots s = group(2, 4);
  EXPECT_TRUE(s.take(1, 1));
  EXPECT_EQ(s.asleep().size(), 1u);
  EXPECT_TRUE(roused(s).empty());
  s.give(1);
  EXPECT_EQ(s.asleep().size(), 2u);
  EXPECT_EQ(s.done().promoted.size(), 1u) << "somebody has to look whether there is work for it";
  EXPECT_EQ(made(s), 0);
}

TEST(slots, that_nobody_uses_are_for_a_spare) {
  slots s = group(1, 4);
  s.call(0);  // runs something
  (void)roused(s);
  s.give(1);  // waits inside
  EXPECT_EQ(made(s), 1);
  const slots::seat spare = s.add(true);
  s.arrive(spare, 0);
  ASSERT_EQ(s.state_of(spare), thread_state::awake) << "nobody has looked for work since the slot was left";
  EXPECT_EQ(s.take_duty(spare).slots, 1);
}

TEST(slots, count_an_idle_thread_for_one_purpose_only) {
  task_record t;
  slots s = group(1, 4);
  ASSERT_TRUE(s.take(1, 1));  // the sleeper is idle
  s.add_slotless(t);
  EXPECT_EQ(roused(s), std::vector<slots::seat>{0});
  EXPECT_EQ(made(s), 0);
  s.give(1);  // the one that was idle may be a long time at its task
  EXPECT_EQ(made(s), 1);
  EXPECT_EQ(s.take_duty(0).task, &t);
}

TEST(slots, are_gathered_for_a_task_that_needs_several) {
  task_record t;
  slots s = group(3, 0);
  s.call(0);
  (void)roused(s);
  s.add_wide(t, 3, 0);
  EXPECT_TRUE(roused(s).empty());
  EXPECT_TRUE(s.asleep().empty()) << "they have left theirs";
  s.arrive(0, 1);
  ASSERT_EQ(s.state_of(0), thread_state::awake);
  const slots::duty d = s.take_duty(0);
  EXPECT_EQ(d.task, &t);
  EXPECT_EQ(d.slots, 3);
  s.give(2);
  EXPECT_EQ(s.asleep().size(), 2u);
}

TEST(slots, that_gather_are_for_who_passes_the_line_meanwhile) {
  task_record t;
  slots s = group(3, 0);
  EXPECT_FALSE(s.passer());
  s.call(0);
  (void)roused(s);
  s.add_wide(t, 3, 0);
  EXPECT_EQ(s.first().slots, 3);
  EXPECT_EQ(s.first().who, &t);
  const auto first = s.passer();
  ASSERT_TRUE(first);
  ASSERT_TRUE(s.pass(*first));
  EXPECT_EQ(s.take_duty(*first).slots, 1);
  const auto second = s.passer();
  ASSERT_TRUE(second);
  ASSERT_TRUE(s.pass(*second));
  EXPECT_FALSE(s.passer()) << "all slots are in use";
  EXPECT_FALSE(s.pass(0)) << "it is not idle";
  (void)roused(s);
  s.arrive(0, 1);
  s.arrive(*first, 1);
  EXPECT_TRUE(roused(s).empty());
  s.arrive(*second, 1);
  ASSERT_EQ(s.state_of(*second), thread_state::awake);
  EXPECT_EQ(s.take_duty(*second).task, &t);
  EXPECT_FALSE(s.passer()) << "nobody is in line";
}

TEST(slots, that_gather_where_all_threads_are_inside_bodies_are_for_a_spare_who_passes) {
  task_record t;
  slots s = busy_group(2, 1);
  s.add_wide(t, 2, 0);
  s.give(1);  // the body of 0 waits
  EXPECT_EQ(made(s), 1);
  const slots::seat spare = s.add(true);
  s.arrive(spare, 0);
  EXPECT_EQ(s.passer(), spare);
}

TEST(slots, that_nobody_has_are_for_one_thread_more_than_is_allowed_which_is_dismissed_afterwards) {
  slots s(0, 2);
  for (int i = 0; i < 2; ++i) s.arrive(s.add(false), 1);
  s.call(0);
  s.call(1);
  (void)roused(s);
  (void)s.take_duty(0), (void)s.take_duty(1);
  s.give(1);  // the body of 0 waits
  EXPECT_EQ(made(s), 0) << "1 still has a slot";
  s.give(1);
  EXPECT_EQ(made(s), 1);
  const slots::seat more = s.add(true);
  s.arrive(more, 0);
  EXPECT_EQ(s.take_duty(more).slots, 1);
  (void)roused(s);
  s.give(1);  // its body waits as well
  EXPECT_EQ(made(s), 1);
  const slots::seat last = s.add(true);
  s.arrive(last, 0);
  (void)s.take_duty(last);
  (void)roused(s);
  // All go on: there is no slot left for one.
  EXPECT_TRUE(s.take(1, 1));
  s.arrive(last, 1);
  EXPECT_TRUE(s.take(2, 1));
  EXPECT_EQ(s.state_of(last), thread_state::idle);
  EXPECT_EQ(s.surplus(), last);
  EXPECT_TRUE(s.dismiss(last));
  EXPECT_FALSE(s.surplus());
  s.give(2);
  s.add_again(last);
  s.arrive(last, 0);
  EXPECT_EQ(s.state_of(last), thread_state::awake);
  EXPECT_FALSE(s.dismiss(last)) << "it has a slot";
}

TEST(slots, that_are_missing_are_those_of_who_comes_next) {
  slots s = busy_group(2, 0);
  EXPECT_FALSE(s.take(1, 1));
  EXPECT_FALSE(s.take(2, 1));
  s.take_missing(1, 1);
  EXPECT_EQ(s.free(), -1);
  EXPECT_EQ(s.line(), 1u);
  s.arrive(0, 1);
  EXPECT_EQ(s.state_of(0), thread_state::idle);
  EXPECT_EQ(s.free(), 0);
  EXPECT_TRUE(granted(s).empty());
  s.give(1);  // the one that went on
  EXPECT_EQ(granted(s), std::vector<slots::ticket>{2});
}

// A body that looks again and again whether something has ended: its slot is missing before it is given back.
TEST(slots, of_restless_bodies_keep_nobody_from_beginning) {
  slots s = busy_group(2, 0);
  s.give(1);
  const slots::seat third = s.add(true);
  s.arrive(third, 0);
  EXPECT_EQ(s.take_duty(third), (slots::duty{nullptr, 1}));
  EXPECT_FALSE(s.take(1, 1));
  s.take_missing(1, 1);
  EXPECT_EQ(s.free(), -1);
  s.relieve();
  EXPECT_EQ(made(s), 0) << "two others have all slots";
  s.give(1);  // one of those
  EXPECT_EQ(s.free(), 0);
  s.relieve();
  EXPECT_EQ(made(s), 1);
  const slots::seat fourth = s.add(true);
  s.arrive(fourth, 0);
  ASSERT_EQ(s.state_of(fourth), thread_state::awake);
  EXPECT_EQ(s.take_duty(fourth), (slots::duty{nullptr, 1, true}));
  EXPECT_EQ(s.free(), -1);
  s.relieve();
  EXPECT_EQ(made(s), 0) << "the third and the fourth have all slots";
  s.arrive(fourth, 1);  // the slot is that of the restless body
  EXPECT_EQ(s.state_of(fourth), thread_state::idle);
  EXPECT_FALSE(s.dismiss(fourth)) << "while a body is restless";
  s.relieve();
  EXPECT_EQ(roused(s), std::vector<slots::seat>{fourth});
  EXPECT_EQ(s.take_duty(fourth), (slots::duty{nullptr, 1, true}));
  s.calm(1);
  s.give(1);
  s.relieve();
  EXPECT_EQ(made(s), 0);
  EXPECT_EQ(s.free(), 0);
}

TEST(slots, are_given_in_line_whoever_asks_for_fewer) {
  task_record t;
  slots s = busy_group(2, 0);
  s.add_wide(t, 2, 0);
  EXPECT_FALSE(s.take(7, 1));
  s.arrive(0, 1);
  EXPECT_EQ(s.state_of(0), thread_state::idle);
  EXPECT_TRUE(granted(s).empty()) << "one slot is free, but not the second one's turn";
  s.arrive(1, 1);
  const slots::duty d = s.take_duty(1);
  EXPECT_EQ(d.task, &t);
  s.give(1);
  EXPECT_EQ(granted(s), std::vector<slots::ticket>{7});
}

TEST(slots, that_are_lent_come_back_and_calls_meanwhile_are_kept) {
  slots s = group(1, 0);
  ASSERT_TRUE(s.lend(99));
  EXPECT_FALSE(s.lend(99)) << "there is one";
  s.call_next(2);
  s.give_back();
  EXPECT_EQ(roused(s), std::vector<slots::seat>{0}) << "once: one slot was lent";
}

TEST(slots, of_one_who_was_called_and_has_not_come_are_lent_and_it_is_called_again) {
  slots s = group(1, 0);
  s.call(0);
  (void)roused(s);
  EXPECT_EQ(s.called(), 1u);
  ASSERT_TRUE(s.lend(99)) << "it has not woken up yet";
  EXPECT_EQ(s.state_of(0), thread_state::idle);
  EXPECT_EQ(s.called(), 0u);
  EXPECT_FALSE(s.lend(99));
  s.give_back();
  EXPECT_EQ(roused(s), std::vector<slots::seat>{0}) << "what it was called for may still be there";
  EXPECT_EQ(s.take_duty(0).slots, 1);
  EXPECT_FALSE(s.lend(99)) << "it has come";
}

TEST(slots, are_left_by_a_sleeper_for_a_task_without_one_where_no_spare_can_be_made) {
  task_record t;
  slots s = group(2, 1);
  s.call(1);
  (void)roused(s);
  s.add_slotless(t);
  EXPECT_EQ(made(s), 1);
  s.no_spare();  // the system gives no thread
  EXPECT_EQ(roused(s), std::vector<slots::seat>{0});
  EXPECT_EQ(s.take_duty(0).slots, 0);
  EXPECT_EQ(s.free(), 1);
  s.arrive(1, 1);
  s.arrive(0, 0);
  EXPECT_EQ(s.asleep().size(), 1u);
  EXPECT_EQ(s.take_duty(0).slots, 1) << "both slots are in use again";
}

TEST(slots, of_a_body_that_stands_aside_go_to_an_idle_thread_and_back) {
  slots s(1);
  const slots::seat owner = s.add(false);
  EXPECT_TRUE(s.stand_aside(7)) << "there is no other thread";
  ASSERT_EQ(made(s), 1);
  EXPECT_TRUE(s.stand_aside(7));
  EXPECT_EQ(made(s), 0) << "one is on its way";
  const slots::seat spare = s.add(true);
  s.arrive(spare, 0);
  EXPECT_EQ(s.state_of(spare), thread_state::idle);
  EXPECT_TRUE(s.may_stand_aside());
  EXPECT_FALSE(s.stand_aside(7));
  EXPECT_EQ(roused(s), std::vector{spare});
  EXPECT_EQ(s.take_duty(spare), (slots::duty{nullptr, 1, true}));
  EXPECT_TRUE(granted(s).empty());
  s.arrive(spare, 1);
  EXPECT_EQ(granted(s), std::vector<slots::ticket>{7});
  EXPECT_EQ(s.state_of(spare), thread_state::idle);
  EXPECT_FALSE(s.stand_aside(8)) << "each time";
  s.ended(1);  // the other thread, by its body
  EXPECT_EQ(granted(s), std::vector<slots::ticket>{8});
  s.arrive(owner, 1);
  EXPECT_EQ(s.state_of(owner), thread_state::asleep);
}

TEST(slots, of_a_body_that_stands_aside_stay_where_another_thread_can_look) {
  slots s(1);
  (void)s.add(false);
  const slots::seat other = s.add(false);
  s.arrive(other, 1);
  EXPECT_TRUE(s.stand_aside(7)) << "that one has a slot of its own";
  EXPECT_EQ(roused(s), std::vector{other});
  EXPECT_FALSE(s.may_stand_aside());
  EXPECT_TRUE(roused(s).empty()) << "it is on its way";
  EXPECT_FALSE(s.take(8, 2)) << "two, of which none is free";
  EXPECT_TRUE(s.stand_aside(9)) << "others are in line";
}

// At random, against counting: each slot is somewhere, and what waits has a reason to.
TEST(slots, are_never_lost_and_nothing_waits_without_a_reason) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const int total = 1 + draw(4), spares_max = draw(6);
    std::vector<task_record> records(64);
    std::size_t next_record = 0;
    slots s(spares_max);
    struct thread {
      int held = 0;
      bool here = true, slotless = false;  // awake and acting
    };
    std::vector<thread> threads;
    std::vector<std::pair<slots::ticket, int>> bodies;  // in line
    slots::ticket next_ticket = 1;
    int in_bodies = 0, lent = 0, coming = 0, restless = 0;
    std::vector<int> waiting_bodies;  // each has given so many away
    for (int i = 0; i < total; ++i) {
      (void)s.add(false);
      threads.push_back({1});
    }
    const auto carry_out = [&] {
      coming += made(s);
      s.done().promoted.clear();
      for (const slots::seat r : roused(s)) {
        threads[r].here = true;
        const slots::duty d = s.take_duty(r);
        threads[r].held = d.slots;
        threads[r].slotless = d.task && d.slots == 0;
      }
      for (const slots::ticket t : granted(s)) {
        const auto b = std::ranges::find(bodies, t, &std::pair<slots::ticket, int>::first);
        ASSERT_NE(b, bodies.end());
        in_bodies += b->second;
        bodies.erase(b);
      }
    };
    for (int step = 0; step < 300; ++step) {
      switch (draw(12)) {
        case 10:
          s.relieve();
          break;
        case 11: {  // the body on that thread lends its slot
          const auto i = static_cast<std::size_t>(draw(static_cast<int>(threads.size())));
          if (!threads[i].here || threads[i].held != 1) break;
          if (!s.stand_aside(next_ticket)) {
            threads[i].held = 0;
            bodies.emplace_back(next_ticket, 1);
          }
          ++next_ticket;
          break;
        }
        case 0:
        case 1:
        case 2: {  // a thread has nothing to do
          const auto i = static_cast<std::size_t>(draw(static_cast<int>(threads.size())));
          if (!threads[i].here) break;
          if (threads[i].held > 1) {
            s.give(threads[i].held - 1);
            threads[i].held = 1;
            carry_out();
          }
          s.arrive(static_cast<slots::seat>(i), threads[i].held);
          threads[i] = {0, false};
          if (s.state_of(static_cast<slots::seat>(i)) == thread_state::awake) {
            threads[i].here = true;
            const slots::duty d = s.take_duty(static_cast<slots::seat>(i));
            threads[i].held = d.slots;
          }
          break;
        }
        case 3:  // a spare comes
          if (coming == 0) break;
          --coming;
          (void)s.add(true);
          threads.push_back({0});
          break;
        case 4: {  // a body on that thread waits, or goes on
          if (!waiting_bodies.empty() && draw(2)) {
            const int n = waiting_bodies.back();
            waiting_bodies.pop_back();
            if (s.take(next_ticket, n)) {
              in_bodies += n;
            } else if (draw(3) == 0) {
              s.take_missing(next_ticket, n);
              in_bodies += n;
              restless += n;
            } else {
              bodies.emplace_back(next_ticket, n);
            }
            ++next_ticket;
            break;
          }
          const auto i = static_cast<std::size_t>(draw(static_cast<int>(threads.size())));
          if (!threads[i].here || threads[i].held == 0) break;
          waiting_bodies.push_back(threads[i].held);
          s.give(std::exchange(threads[i].held, 0));
          break;
        }
        case 5:
          if (next_record < records.size()) s.add_slotless(records[next_record++]);
          break;
        case 6:
          if (next_record < records.size() && total > 1)
            s.add_wide(records[next_record++], 2 + draw(total - 1), draw(3));
          break;
        case 7:
          if (lent != 0 && draw(2)) {
            --lent;
            s.give_back();
          } else if (s.lend(0)) {
            ++lent;
          }
          break;
        case 8:  // somebody passes the line
          if (const auto p = s.passer(); p && s.line() != 0) {
            ASSERT_TRUE(s.pass(*p)) << "seed " << seed;
          }
          break;
        default:  // a body that went on has ended: its slots are free
          s.calm(std::exchange(restless, 0));
          if (in_bodies != 0) s.give(std::exchange(in_bodies, 0));
      }
      carry_out();
      int held = in_bodies + lent + s.free() + static_cast<int>(s.asleep().size());
      bool somebody_idle = false;
      for (std::size_t i = 0; i < threads.size(); ++i) {
        held += threads[i].held;
        somebody_idle |= s.state_of(static_cast<slots::seat>(i)) == thread_state::idle;
      }
      ASSERT_EQ(held, total) << "seed " << seed << ", step " << step;
      EXPECT_TRUE(!somebody_idle || s.slotless() == 0) << "seed " << seed << ", step " << step;
      EXPECT_TRUE(!somebody_idle || s.line() != 0 || s.free() <= 0) << "seed " << seed << ", step " << step;
      EXPECT_TRUE(s.asleep().empty() || s.line() == 0) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
