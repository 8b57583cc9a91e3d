// What this file is for: the calls that tell the time of day, in front of the C library's.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A program's own functions come before those of the libraries that it is linked with, for those libraries too. So the
// clock of one process can be set as an administrator would set the machine's. Other clocks are passed on.
#include "tests/support/clock.hpp"

#include <dlfcn.h>
#include <sys/time.h>
#include <ctime>

#include <atomic>

namespace {

std::atomic<time_t> off_by{0};

using getter = int (*)(clockid_t, timespec*);
int passed_on(clockid_t which, timespec* t) {
  static const auto next = reinterpret_cast<getter>(dlsym(RTLD_NEXT, "clock_gettime"));
  return next(which, t);
}

}  // namespace

namespace test {

void set_clock(std::chrono::seconds off) { off_by = off.count(); }

}  // namespace test

extern "C" {

[[gnu::visibility("default")]] void troupe_test_set_clock(long seconds) {
  test::set_clock(std::chrono::seconds(seconds));
}

[[gnu::visibility("default")]] int clock_gettime(clockid_t which, timespec* t) noexcept {
  const int done = passed_on(which, t);
  if (done == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) t->tv_sec += off_by;
  return done;
}

[[gnu::visibility("default")]] int gettimeofday(timeval* t, void*) noexcept {
  timespec now{};
  const int done = clock_gettime(CLOCK_REALTIME, &now);
  *t = {now.tv_sec, now.tv_nsec / 1000};
  return done;
}

[[gnu::visibility("default")]] time_t time(time_t* t) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}
}
