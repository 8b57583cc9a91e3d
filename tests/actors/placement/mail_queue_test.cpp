// What this file is for: mail is left for a thread that has something to do, but never for long.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/placement/mail_queue.hpp"

namespace {

using troupe::detail::mail;
using troupe::detail::mail_queue;
using troupe::detail::task_record;

struct mail_test : testing::Test {
  void post(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) queue.post(mail(&task, mail::done));
  }
  task_record task;
  mail_queue queue{10, 1'000};  // looked at every 10 ticks, fetched every 1,000
};

TEST_F(mail_test, is_fetched_in_the_order_in_which_it_was_posted) {
  task_record other;
  std::atomic<std::uint64_t> counter{5};
  EXPECT_FALSE(queue.maybe());
  task_record* const first = &other;
  std::vector<const task_record*> noted;
  const auto note = [&](const task_record& t) { noted.push_back(&t); };
  EXPECT_EQ(queue.submit({&first, 1}, counter, false, note), 1u);
  EXPECT_EQ(noted, std::vector<const task_record*>{&other});
  EXPECT_EQ(queue.post(mail(&task, mail::returned)), 2u);
  EXPECT_EQ(counter, 6u);
  EXPECT_TRUE(queue.maybe());
  EXPECT_TRUE(queue.work().empty());
  EXPECT_GE(queue.fetch(1), 1u);
  EXPECT_EQ(queue.count(), 0u);
  ASSERT_EQ(queue.work().size(), 2u);
  EXPECT_EQ(queue.work()[0].what(), mail::submitted);
  EXPECT_EQ(queue.work()[0].task(), &other);
  EXPECT_EQ(queue.work()[1].what(), mail::returned);
}

TEST_F(mail_test, tells_after_which_fetch_it_has_been_taken) {
  std::atomic<std::uint64_t> counter{0};
  std::uint64_t told = 0;
  const auto submit = [&] {
    task_record* const one = &task;
    queue.submit({&one, 1}, counter, false, [&](const task_record&) { told = queue.next_fetch(); });
  };
  submit();
  EXPECT_EQ(told, 1u);
  EXPECT_EQ(queue.fetched(), 0u);
  queue.fetch_nothing();
  EXPECT_EQ(queue.fetched(), 0u) << "there was mail";
  submit();
  EXPECT_EQ(told, 2u);
  queue.fetch(1);
  EXPECT_EQ(queue.work().size(), 2u);
  EXPECT_EQ(queue.fetched(), 2u);
  queue.fetch_nothing();
  EXPECT_EQ(queue.fetched(), 3u);
  submit();
  EXPECT_EQ(told, 4u) << "it was posted after that one had begun";
}

// Mail that is posted while other mail is fetched has been taken once the fetch is over whose number was told.
TEST_F(mail_test, has_been_taken_when_the_fetch_is_over_that_it_was_told_of) {
  constexpr std::size_t threads = 3, each = 20'000;
  std::atomic<std::uint64_t> counter{0};
  struct alignas(64) mine {
    std::vector<std::uint64_t> told;
    std::vector<task_record> tasks = std::vector<task_record>(each);
  };
  std::vector<mine> all(threads);
  for (mine& m : all) m.told.resize(each);
  std::atomic<std::size_t> running{threads};
  std::vector<std::thread> posting;
  for (mine& m : all)
    posting.emplace_back([&] {
      for (std::size_t i = 0; i < each; ++i) {
        task_record* const one = &m.tasks[i];
        one->id = i;
        queue.submit({&one, 1}, counter, false, [&](const task_record&) { m.told[i] = queue.next_fetch(); });
      }
      --running;
    });
  std::size_t taken = 0, late = 0;
  for (bool last = false; !last;) {
    last = running.load() == 0;
    const std::uint64_t before = queue.fetched();
    queue.fetch(1);
    for (const mail& m : queue.work()) {
      const mine& of = *std::find_if(all.begin(), all.end(), [&](const mine& x) {
        return !std::less<>()(m.task(), x.tasks.data()) && std::less<>()(m.task(), x.tasks.data() + each);
      });
      if (of.told[m.task()->id] <= before || of.told[m.task()->id] > queue.fetched() + 1) ++late;
    }
    taken += queue.work().size();
    queue.work().clear();
    queue.fetch_nothing();
  }
  for (std::thread& t : posting) t.join();
  EXPECT_EQ(taken, threads * each);
  EXPECT_EQ(late, 0u);
}

TEST_F(mail_test, that_is_little_can_wait_until_it_is_late) {
  queue.fetch(10'000);
  post(mail_queue::gather - 1);
  EXPECT_TRUE(queue.can_wait(10'500));
  EXPECT_TRUE(queue.can_wait(10'999));
  EXPECT_FALSE(queue.can_wait(11'010));
}

TEST_F(mail_test, that_is_much_cannot_wait) {
  queue.fetch(10'000);
  post(mail_queue::gather);
  EXPECT_FALSE(queue.can_wait(10'500));
}

TEST_F(mail_test, is_not_looked_at_with_each_tiny_task) {
  queue.fetch(10'000);
  EXPECT_TRUE(queue.can_wait(10'100));
  post(mail_queue::gather);
  EXPECT_TRUE(queue.can_wait(10'109)) << "it was looked at just now";
  EXPECT_FALSE(queue.can_wait(10'110));
}

}  // namespace
