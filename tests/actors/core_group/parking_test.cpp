// What this file is for: sleeping threads are woken by threads that call them, and slots are lent and returned exactly.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "actors/core_group/parking.hpp"

namespace {

using troupe::detail::parking;

// Threads that park again and again and count how often they were let go to work.
class lot : private parking::wake_conditions {
 public:
  explicit lot(int slots, int spares_max = 0)
      : parking_lot(slots, spares_max, *this, 1), threads_(static_cast<std::size_t>(slots) + 1) {
    for (int i = 0; i < slots; ++i) add(true);
  }
  ~lot() {
    parking_lot.close();
    for (auto& t : running_) t.join();
  }
  void add(bool has_slot) {
    parking::thread* mine = has_slot ? &threads_[running_.size()] : &spare_;
    mine->has_slot = has_slot;
    running_.emplace_back([this, mine] {
      for (;;) {
        const auto why = parking_lot.park(*mine);
        if (why == parking::woken::to_end) break;
        const int held = mine->slots();
        if (held > 1) parking_lot.give_slots(std::exchange(mine->more, 0));
        tell([&] { ++(why == parking::woken::to_work ? worked : held > 1 ? wide : slotless); });
      }
      parking_lot.ended(*mine);
    });
  }
  template <class F>
  void tell(F&& f) {
    const std::lock_guard hold(lock_);
    f();
    changed_.notify_all();
  }
  template <class F>
  bool wait(F&& f) {
    std::unique_lock hold(lock_);
    return changed_.wait_for(hold, std::chrono::seconds(30), f);
  }
  // A body that waited and needs one slot.
  void go_on() {
    parking::thread body;
    body.has_slot = true;
    parking_lot.take_slots(body);
  }
  bool all_sleep(int n) {
    while (parking_lot.sleepers() != n) std::this_thread::yield();
    return true;
  }

  parking parking_lot;
  int worked = 0, slotless = 0, wide = 0;
  std::atomic<bool> busy{false}, work{false}, overdue{false}, others_work{false};
  std::atomic<int> idle_told{0};
  mutable std::atomic<int> naps{0};

 private:
  bool somebody_works() const override { return busy; }
  bool work_in_sight() const override { return work.load(); }
  bool work_to_watch() const override { return work || others_work; }
  bool work_overdue() const override {
    ++naps;
    naps.notify_all();
    return overdue;
  }
  void all_asleep() override { ++idle_told; }

  std::vector<parking::thread> threads_;
  parking::thread spare_;
  std::vector<std::thread> running_;
  std::mutex lock_;
  std::condition_variable changed_;
};

TEST(parking, wakes_as_many_as_are_called) {
  lot l(3);
  ASSERT_TRUE(l.all_sleep(3));
  l.parking_lot.wake(2, parking::nearness::far);
  ASSERT_TRUE(l.wait([&] { return l.worked == 2; }));
  ASSERT_TRUE(l.all_sleep(3));
  l.parking_lot.wake(5, parking::nearness::near);  // no more than there are
  ASSERT_TRUE(l.wait([&] { return l.worked == 5; }));
  ASSERT_TRUE(l.all_sleep(3));
  EXPECT_EQ(l.worked, 5);
  EXPECT_GE(l.idle_told.load(), 1);
}

// More than one thread wakes itself; those that it wakes see to the others.
TEST(parking, wakes_each_of_many_once) {
  constexpr int many = 40;
  static_assert(many > 3 * static_cast<int>(parking::wakes_of_one));
  lot l(many);
  int all = 0;
  for (const int n : {many, 1, 9, 20, many - 1, many + 5, many}) {
    ASSERT_TRUE(l.all_sleep(many));
    l.parking_lot.wake(static_cast<std::size_t>(n), n % 2 == 0 ? parking::nearness::far : parking::nearness::near);
    all += std::min(n, many);
    ASSERT_TRUE(l.wait([&] { return l.worked >= all; })) << n;
    ASSERT_TRUE(l.all_sleep(many));
    EXPECT_EQ(l.worked, all) << n;
  }
}

TEST(parking, learns_what_a_wake_up_takes_from_the_first) {
  lot l(1);  // which thinks that it takes one tick
  ASSERT_TRUE(l.all_sleep(1));
  for (int i = 1; i <= 16; ++i) {
    l.parking_lot.wake(1, parking::nearness::far);
    ASSERT_TRUE(l.wait([&] { return l.worked == i; }));
    ASSERT_TRUE(l.all_sleep(1));
    if (i == 1) {
      EXPECT_GE(l.parking_lot.wake_up(), 4u) << "as much as one may count";
    }
  }
  EXPECT_GT(l.parking_lot.wake_up(), 16u) << "no system wakes a thread so soon";
}

TEST(parking, lets_nobody_sleep_over_work_in_sight) {
  lot l(1);
  ASSERT_TRUE(l.all_sleep(1));
  l.work = true;
  l.parking_lot.wake(1, parking::nearness::near);
  ASSERT_TRUE(l.wait([&] { return l.worked >= 100; }));  // comes back each time, and sees it
  l.work = false;
  ASSERT_TRUE(l.all_sleep(1));
}

TEST(parking, naps_while_somebody_works_and_looks_up_when_work_is_overdue) {
  lot l(2);
  ASSERT_TRUE(l.all_sleep(2));
  l.busy = true;
  l.overdue = true;
  l.parking_lot.keep_watch();
  ASSERT_TRUE(l.wait([&] { return l.worked >= 3; }));
  l.overdue = false;
  l.busy = false;
}

std::chrono::milliseconds time_of_naps(lot& l, int n) {
  const auto begin = std::chrono::steady_clock::now();
  for (int now = l.naps, last = now + n; now < last; now = l.naps) l.naps.wait(now);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
}

// One body may take seconds, and each nap ends with a wake-up.
TEST(parking, naps_for_longer_while_there_is_nothing_to_watch) {
  lot l(2);
  ASSERT_TRUE(l.all_sleep(2));
  l.busy = true;
  l.parking_lot.keep_watch();
  EXPECT_GE(time_of_naps(l, 20).count(), 200);
  l.overdue = true;  // seen at the end of a short nap that begins now
  l.parking_lot.keep_watch();
  ASSERT_TRUE(l.wait([&] { return l.worked >= 1; }));
  l.busy = l.overdue = false;
}

TEST(parking, naps_shortly_while_there_is_work) {
  for (const bool is_elsewhere : {false, true}) {
    lot l(1);
    ASSERT_TRUE(l.all_sleep(1));
    l.busy = true;
    (is_elsewhere ? l.others_work : l.work) = true;
    l.parking_lot.keep_watch();
    EXPECT_LT(time_of_naps(l, 400).count(), 5'000) << "6,400 with the longest naps";
    l.work = l.others_work = false;
    l.busy = false;
  }
}

TEST(parking, keeps_a_sleeper_in_while_his_slot_is_lent) {
  lot l(1);
  ASSERT_TRUE(l.all_sleep(1));
  ASSERT_TRUE(l.parking_lot.borrow_slot());
  EXPECT_FALSE(l.parking_lot.borrow_slot()) << "there is one slot";
  l.parking_lot.wake(1, parking::nearness::far);
  l.parking_lot.wake(1, parking::nearness::far);
  std::this_thread::yield();
  l.tell([&] { EXPECT_EQ(l.worked, 0); });
  l.parking_lot.return_slot();
  ASSERT_TRUE(l.wait([&] { return l.worked == 1; }));
}

TEST(parking, keeps_a_call_that_reached_a_kept_in_sleeper_once_somebody_else_sleeps) {
  lot l(1);
  ASSERT_TRUE(l.all_sleep(1));
  ASSERT_TRUE(l.parking_lot.borrow_slot());
  l.parking_lot.wake(1, parking::nearness::far);  // it may not leave
  l.add(true);                                    // finds nothing to do, and its slot is as good
  ASSERT_TRUE(l.wait([&] { return l.worked == 1; }));
  l.parking_lot.return_slot();
  ASSERT_TRUE(l.all_sleep(2));
}

TEST(parking, lends_no_slot_where_nobody_sleeps) {
  lot l(0);
  EXPECT_FALSE(l.parking_lot.borrow_slot());
}

TEST(parking, gives_a_slot_that_a_body_left_to_a_spare_and_takes_one_back_from_a_sleeper) {
  lot l(1, 1);
  ASSERT_TRUE(l.all_sleep(1));
  ASSERT_TRUE(l.parking_lot.give_slots(1)) << "a spare is to be made";
  l.add(false);
  ASSERT_TRUE(l.wait([&] { return l.worked >= 1; })) << "the spare has the slot";
  ASSERT_TRUE(l.all_sleep(2));
  l.go_on();  // a sleeper has left its slot, and sleeps on without
  EXPECT_EQ(l.parking_lot.sleepers(), 1);
  EXPECT_EQ(l.worked, 1) << "nobody was woken for that";
  EXPECT_EQ(l.parking_lot.give_slots(1), 0) << "there is a thread for it";
  EXPECT_EQ(l.parking_lot.sleepers(), 2);
}

TEST(parking, calls_an_idle_thread_that_gets_a_slot_while_there_is_work) {
  lot l(1);
  ASSERT_TRUE(l.all_sleep(1));
  l.go_on();
  l.work = true;  // the thread that posted it saw no sleeper
  l.parking_lot.give_slots(1);
  ASSERT_TRUE(l.wait([&] { return l.worked >= 1; }));
  l.work = false;
}

TEST(parking, hands_tasks_without_a_slot_to_spares) {
  troupe::detail::task_record t;
  lot l(1, 1);
  ASSERT_TRUE(l.parking_lot.give_slotless(t)) << "a spare is to be made";
  l.add(false);
  ASSERT_TRUE(l.wait([&] { return l.slotless == 1; }));
  troupe::detail::task_record* none[1];
  EXPECT_EQ(l.parking_lot.take_unstarted(none, 1, [](const auto&) { return true; }), 0u);
}

TEST(parking, gathers_the_slots_of_sleepers_for_a_task_that_needs_several) {
  troupe::detail::task_record t;
  lot l(3);
  for (int i = 1; i <= 100; ++i) {
    l.parking_lot.give_wide(t, 1 + i % 3 + (i % 3 == 0 ? 1 : 0), 0);
    ASSERT_TRUE(l.wait([&] { return l.wide == i; }));
  }
  ASSERT_TRUE(l.all_sleep(3)) << "every slot is back";
}

TEST(parking, gives_nobody_a_slot_while_an_earlier_one_waits_for_several) {
  troupe::detail::task_record t;
  lot l(2);
  ASSERT_TRUE(l.all_sleep(2));
  l.go_on();  // a body that goes on
  l.parking_lot.give_wide(t, 2, 0);
  std::atomic<bool> served{false};
  std::thread later([&] {
    l.go_on();
    served = true;
    l.parking_lot.give_slots(1);
  });
  EXPECT_EQ(l.wide, 0);
  l.parking_lot.give_slots(1);
  ASSERT_TRUE(l.wait([&] { return l.wide == 1; }));
  later.join();
  EXPECT_TRUE(served);
  ASSERT_TRUE(l.all_sleep(2));
}

TEST(parking, hands_back_tasks_that_still_wait_for_slots) {
  troupe::detail::task_record one, two;
  lot l(2);
  ASSERT_TRUE(l.all_sleep(2));
  l.go_on();
  l.parking_lot.give_wide(one, 2, 0);
  l.parking_lot.give_wide(two, 2, 1);
  troupe::detail::task_record* back[4];
  ASSERT_EQ(l.parking_lot.take_unstarted(back, 4, [](const auto&) { return true; }), 2u);
  EXPECT_EQ(back[0], &two) << "by priority";
  l.parking_lot.give_slots(1);
  ASSERT_TRUE(l.all_sleep(2));
  EXPECT_EQ(l.wide, 0);
}

}  // namespace
