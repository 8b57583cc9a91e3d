// What this file is for: a device is looked after at any time, and the sleep of its thread ends in each case.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/watchers.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace troupe::detail;
using std::chrono::nanoseconds;

TEST(gpu_watchers, let_one_look_pass_in_each_interval) {
  gpu_watchers w(1.0);  // ticks of a nanosecond
  EXPECT_TRUE(w.may_look(1'000));
  EXPECT_FALSE(w.may_look(1'001));
  EXPECT_FALSE(w.may_look(1'299));
  EXPECT_TRUE(w.may_look(1'300));
}

TEST(gpu_watchers, ask_the_thread_to_be_rung_when_the_last_one_goes_and_something_is_under_way) {
  gpu_watchers w(1.0);
  w.add();
  w.add();
  w.leave_to_them(true);
  EXPECT_FALSE(w.remove());
  EXPECT_TRUE(w.any());
  EXPECT_TRUE(w.remove());
  EXPECT_FALSE(w.any());
  w.add();
  w.get_up();
  EXPECT_FALSE(w.remove()) << "the thread looks itself";
}

TEST(gpu_watchers, end_a_sleep_that_was_asked_to_be_short) {
  gpu_watchers w(1.0);
  bell b;
  EXPECT_TRUE(w.ask_for_nap());
  EXPECT_FALSE(w.ask_for_nap()) << "nobody has slept since";
  bell::held hold = b.hold();
  w.sleep(b, hold, nanoseconds(0));  // for ever, otherwise
  EXPECT_FALSE(b.is_rung(hold));
  EXPECT_TRUE(w.ask_for_nap());
}

TEST(gpu_watchers, end_the_sleep_when_what_is_under_way_has_been_left_by_all) {
  gpu_watchers w(1.0);
  bell b;
  w.leave_to_them(true);
  bell::held hold = b.hold();
  w.sleep(b, hold, nanoseconds(0));
  EXPECT_FALSE(b.is_rung(hold));
}

// Sleeps as a device's thread does; calls `meanwhile` once the sleep has begun. Returns true if a watcher was there
// when the sleep ended.
template <class F>
bool sleep_while(gpu_watchers& w, bell& b, F&& meanwhile) {
  std::thread other;
  bell::held hold = b.hold();
  b.announce(hold);
  other = std::thread([&] {
    (void)b.hold();  // is free once the sleep has begun
    meanwhile();
  });
  w.sleep(b, hold, nanoseconds(0));
  const bool watched = w.any();
  b.answer(hold);
  hold.unlock();
  b.get_up();
  w.get_up();
  other.join();
  return watched;
}

TEST(gpu_watchers, let_the_thread_sleep_until_the_last_one_has_gone) {
  gpu_watchers w(1.0);
  bell b;
  w.add();
  w.leave_to_them(true);
  const bool watched = sleep_while(w, b, [&] { (void)w.remove(); });  // does not ring: the thread looks up by itself
  EXPECT_FALSE(watched) << "it got up while somebody looked after the device";
}

TEST(gpu_watchers, let_a_client_leave_one_small_task_to_the_thread_that_looks_up_often) {
  constexpr double hour_ns = 3.6e12;  // of a tick: longer than any patience
  gpu_watchers w(hour_ns);
  bell b;
  w.add();
  w.note_driven(true, false, true);  // it began something, and saw its end
  { w.note_left(b.hold(), ticks()); }
  bool patient = false;
  sleep_while(w, b, [&] {
    patient = w.is_patient(b.hold());
    b.ring();
  });
  EXPECT_FALSE(patient) << "a tick of an hour leaves no patience";

  gpu_watchers often(1e-6);
  often.add();
  often.note_driven(true, false, true);
  { often.note_left(b.hold(), ticks()); }
  sleep_while(often, b, [&] {
    patient = often.is_patient(b.hold());
    b.ring();
  });
  EXPECT_TRUE(patient);
  EXPECT_FALSE(often.is_patient(b.hold())) << "it does not sleep any more";
}

}  // namespace
