// What this file is for: threads do not look for work with time that the quota of their cgroup counts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include <troupe/troupe.hpp>

#include "open_runtime.hpp"
#include "tests/support/comes_true.hpp"
#include "tests/support/system_threads.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

// The only worker.
test::system_thread worker() { return test::system_threads("cpu:0/").at(0); }

options looking_for_an_hour() {
  options o{.threads = 1};
  o.spin = 1h;
  return o;
}

TEST(quota, a_thread_beyond_it_sleeps_at_once) {
  test::open_runtime rt(looking_for_an_hour(), {.core_quota = [] { return 0.5; }});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rt.spawn([i] { return i; }).get(), i);
    EXPECT_TRUE(test::comes_true([] { return worker().state == 'S'; }));
  }
}

TEST(quota, a_thread_within_it_looks_for_work_as_long_as_is_asked) {
  for (const double quota : {0.0, 1.0}) {
    test::open_runtime rt(looking_for_an_hour(), {.core_quota = [quota] { return quota; }});
    EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
    const std::uint64_t before = worker().ticks;
    EXPECT_TRUE(test::comes_true([&] { return worker().ticks > before + 5; })) << quota;
  }
}

}  // namespace
