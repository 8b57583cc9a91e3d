// What this file is for: waits inside yield_core: a body that has given its core away has nothing more to give.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;

// Bodies that say when they use their core, and the most that did so at once.
class core_users {
 public:
  void work() {
    const int now = ++using_;
    int seen = most_.load();
    while (seen < now && !most_.compare_exchange_weak(seen, now)) {
    }
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    --using_;
  }
  int most() const { return most_; }

 private:
  std::atomic<int> using_{0}, most_{0};
};

void expect_one_at_a_time(int (*wait)(runtime&, core_users&, int)) {
  runtime rt(options{.threads = 1});
  core_users users;
  std::vector<future<int>> tasks;
  for (int i = 0; i < 200; ++i)
    tasks.push_back(rt.spawn([&, i] {
      users.work();
      const int value = wait(rt, users, i);
      users.work();
      return value;
    }));
  for (int i = 0; i < 200; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_TRUE(tasks[at].wait_for(test::patience)) << i;
    EXPECT_EQ(tasks[at].get(), i);
  }
  EXPECT_EQ(users.most(), 1);
}

TEST(yielded_waits, for_a_task_never_let_more_bodies_run_than_there_are_workers) {
  expect_one_at_a_time([](runtime& rt, core_users& users, int i) {
    auto child = rt.spawn([&users, i] {
      users.work();
      return i;
    });
    return yield_core([&] { return child.get(); });
  });
}

TEST(yielded_waits, for_an_array_never_let_more_bodies_run_than_there_are_workers) {
  expect_one_at_a_time([](runtime& rt, core_users& users, int i) {
    auto a = rt.array<int>({1}, "a");
    rt.spawn(
        [&users, i](view<int, 1> v) {
          users.work();
          v(0) = i;
        },
        write(a));
    return yield_core([&] { return a.read()(0); });
  });
}

TEST(yielded_waits, of_a_core_that_is_yielded_already_give_nothing_more) {
  expect_one_at_a_time([](runtime& rt, core_users& users, int i) {
    auto child = rt.spawn([&users, i] {
      users.work();
      return i;
    });
    return yield_core([&] { return yield_core([&] { return child.get(); }); });
  });
}

}  // namespace
