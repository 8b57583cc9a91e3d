// What this file is for: the order and completeness of placement's mail.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/protocol/inbox.hpp"

namespace {

using namespace troupe::detail;

TEST(mail, carries_pointer_and_verb_unchanged) {
  task_record t;
  array_core a;
  EXPECT_EQ(mail(&t, mail::submitted).task(), &t);
  EXPECT_EQ(mail(&t, mail::submitted).what(), mail::submitted);
  EXPECT_EQ(mail(&t, mail::done).task(), &t);
  EXPECT_EQ(mail(&t, mail::done).what(), mail::done);
  EXPECT_EQ(mail(&a).array(), &a);
  EXPECT_EQ(mail(&a).what(), mail::dropped);
}

TEST(inbox, gives_mail_in_the_order_it_came_and_is_empty_afterwards) {
  inbox box;
  std::array<task_record, 3> t;
  box.post(mail(&t[0], mail::submitted));
  const std::array more{mail(&t[1], mail::done), mail(&t[2], mail::submitted)};
  box.post(more.size(), [&](std::size_t i) { return more[i]; });
  EXPECT_EQ(box.count(), 3u);
  EXPECT_TRUE(box.maybe());
  std::vector<mail> got;
  box.drain(got);
  ASSERT_EQ(got.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(got[i].task(), &t[i]);
  EXPECT_EQ(got[1].what(), mail::done);
  EXPECT_EQ(box.count(), 0u);
  EXPECT_FALSE(box.maybe());
}

TEST(inbox, swaps_buffers_so_that_draining_again_and_again_allocates_nothing_new) {
  inbox box;
  task_record t;
  std::vector<mail> got;
  const void *first = nullptr, *second = nullptr;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i) box.post(mail(&t, mail::submitted));
    got.clear();
    box.drain(got);
    ASSERT_EQ(got.size(), 100u);
    const void* buffer = got.data();
    if (round == 2) first = buffer;
    if (round == 3) second = buffer;
    if (round > 3) {
      ASSERT_EQ(buffer, round % 2 == 0 ? first : second) << round;
    }
  }
}

TEST(inbox, keeps_each_producers_order_and_loses_nothing_among_many) {
  constexpr std::size_t producers = 8, each = 20'000;
  inbox box;
  std::vector<task_record> tasks(producers);
  // A producer has one record; its verb alternates, so that a swap of two neighbours shows.
  std::latch start(producers);
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < producers; ++p)
    threads.emplace_back([&, p] {
      start.arrive_and_wait();
      for (std::size_t i = 0; i < each;) {
        if (i % 7 == 0 && i + 2 <= each) {
          const std::array two{mail(&tasks[p], i % 2 ? mail::done : mail::submitted),
                               mail(&tasks[p], i % 2 ? mail::submitted : mail::done)};
          box.post(
              2, [&](std::size_t k) { return two[k]; }, nullptr, p % inbox::lanes);
          i += 2;
        } else {
          box.post(
              1, [&](std::size_t) { return mail(&tasks[p], i % 2 ? mail::done : mail::submitted); }, nullptr,
              p % inbox::lanes);
          ++i;
        }
      }
    });
  std::vector<std::size_t> seen(producers, 0);
  std::size_t total = 0, wrong = 0;
  std::vector<mail> got;
  while (total < producers * each) {
    got.clear();
    box.drain(got);
    if (got.empty()) std::this_thread::yield();
    for (const mail& m : got) {
      const auto p = static_cast<std::size_t>(m.task() - tasks.data());
      if (m.what() != (seen[p] % 2 ? mail::done : mail::submitted)) ++wrong;
      ++seen[p];
    }
    total += got.size();
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0u);
  for (const std::size_t n : seen) EXPECT_EQ(n, each);
  EXPECT_EQ(box.count(), 0u);
}

// Two threads hand a token to and fro, each posts when it has it: whatever the lanes, their items alternate.
TEST(inbox, takes_nothing_before_what_was_posted_before_it_on_another_lane) {
  constexpr std::size_t each = 20'000;
  inbox box;
  std::array<task_record, 2> tasks;
  std::atomic<std::size_t> turn{0};
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < 2; ++p)
    threads.emplace_back([&, p] {
      for (std::size_t i = 0; i < each; ++i) {
        while (turn.load(std::memory_order_relaxed) % 2 != p) std::this_thread::yield();
        box.post(
            1, [&](std::size_t) { return mail(&tasks[p], mail::done); }, nullptr, (p * 5 + i) % inbox::lanes);
        turn.fetch_add(1, std::memory_order_relaxed);
      }
    });
  std::vector<mail> got;
  std::size_t total = 0, wrong = 0;
  while (total < 2 * each) {
    got.clear();
    box.drain(got);
    if (got.empty()) std::this_thread::yield();
    for (const mail& m : got) wrong += m.task() != &tasks[total++ % 2];
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(inbox, counts_what_waits_and_what_is_submitted_on_all_lanes) {
  inbox box;
  std::array<task_record, 3> t;
  std::atomic<std::uint64_t> submitted{7};
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t on = 0; on < inbox::lanes; ++on)
      EXPECT_EQ(box.post(
                    3, [&](std::size_t i) { return mail(&t[i], mail::submitted); }, &submitted, inbox::lanes - 1 - on),
                3 * (on + 1));
    EXPECT_EQ(box.count(), 3 * inbox::lanes);
    std::vector<mail> got;
    box.drain(got);
    ASSERT_EQ(got.size(), 3 * inbox::lanes);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].task(), &t[i % 3]);
    EXPECT_FALSE(box.maybe());
    EXPECT_EQ(box.post(mail(&t[0], mail::done)), 1u);
    got.clear();
    box.drain(got);
    EXPECT_EQ(got.size(), 1u);
    EXPECT_EQ(box.count(), 0u);
  }
  EXPECT_EQ(submitted, 7 + 3 * 3 * inbox::lanes);
}

// A turn that failed leaves mail that it has taken.
TEST(inbox, takes_more_to_what_has_not_been_handled) {
  inbox box;
  std::array<task_record, 6> t;
  const auto one = [&](std::size_t i) { return [&t, i](std::size_t) { return mail(&t[i], mail::done); }; };
  std::vector<mail> got{mail(&t[0], mail::done)};
  box.post(1, one(1));
  box.drain(got);
  box.post(1, one(2));
  box.post(1, one(3), nullptr, 3);
  box.drain(got);
  box.post(1, one(4));
  box.drain(got);
  box.post(1, one(5), nullptr, 3);
  box.drain(got);
  ASSERT_EQ(got.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(got[i].task(), &t[i]);
  EXPECT_EQ(box.count(), 0u);
}

}  // namespace
