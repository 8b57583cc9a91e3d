// What this file is for: taking, giving and trimming task records, also across threads.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/memory/shard_pool.hpp"

namespace {

using namespace troupe::detail;
using pool = shard_pool<region>;

TEST(record_pool, never_gives_one_record_to_two_owners) {
  pool p;
  std::set<region*> out;
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(out.insert(p.take()).second);
  EXPECT_EQ(p.in_use(), 5000u);
  for (region* r : out) p.give(r);
  EXPECT_EQ(p.in_use(), 0u);
}

TEST(record_pool, uses_given_records_again_before_it_asks_for_memory) {
  pool p;
  std::vector<region*> out;
  for (int i = 0; i < 3000; ++i) out.push_back(p.take());
  const std::size_t bytes = p.bytes();
  for (int round = 0; round < 20; ++round) {
    for (region* r : out) p.give(r);
    for (region*& r : out) r = p.take();
  }
  EXPECT_EQ(p.bytes(), bytes);
  for (region* r : out) p.give(r);
}

TEST(record_pool, takes_a_chain_back_at_once) {
  pool p;
  region* first = p.take();
  region* middle = p.take();
  region* last = p.take();
  first->next = middle;
  middle->next = last;
  p.give_chain(first, last, 3);
  EXPECT_EQ(p.in_use(), 0u);
  std::set<region*> again{p.take(), p.take(), p.take()};
  EXPECT_EQ(again, (std::set<region*>{first, middle, last}));
  for (region* r : again) p.give(r);
}

TEST(record_pool, trims_nothing_while_a_record_is_in_use) {
  pool p;
  region* kept = p.take();
  const std::size_t bytes = p.bytes();
  EXPECT_FALSE(p.trim(0));
  EXPECT_EQ(p.bytes(), bytes);
  kept->edge = troupe::border::wrap;  // its memory is still there
  p.give(kept);
}

TEST(record_pool, trims_all_of_its_memory_once_nothing_is_in_use_and_goes_on) {
  pool p;
  std::vector<region*> out;
  for (int i = 0; i < 10'000; ++i) out.push_back(p.take());
  for (region* r : out) p.give(r);
  EXPECT_TRUE(p.trim(0));
  EXPECT_EQ(p.bytes(), 0u);
  region* r = p.take();
  EXPECT_EQ(p.in_use(), 1u);
  p.give(r);
}

TEST(record_pool, keeps_as_much_as_trim_is_told_to) {
  pool p;
  p.give(p.take());
  const std::size_t bytes = p.bytes();
  EXPECT_FALSE(p.trim(bytes));
  EXPECT_EQ(p.bytes(), bytes);
}

TEST(record_pool, hands_out_what_it_kept_after_trimming_the_rest) {
  pool p;
  region* first = p.take();
  const std::size_t slab = p.bytes();
  std::vector<region*> out{first};
  for (int i = 0; i < 10'000; ++i) out.push_back(p.take());
  for (region* r : out) p.give(r);
  EXPECT_TRUE(p.trim(2 * slab + 1));
  EXPECT_EQ(p.bytes(), 2 * slab);
  std::set<region*> again;
  const std::size_t kept = 2 * slab / sizeof(region);
  for (std::size_t i = 0; i < kept; ++i) ASSERT_TRUE(again.insert(p.take()).second);
  EXPECT_EQ(p.bytes(), 2 * slab) << "what was kept is used first";
  for (region* r : again) p.give(r);
  EXPECT_EQ(p.in_use(), 0u);
}

// Records flow from clients, which take, to placement, which gives: memory must not grow with the traffic.
TEST(record_pool, lets_records_flow_from_one_thread_to_another_without_growing) {
  pool p;
  std::mutex lock;
  std::vector<region*> belt;
  std::atomic<bool> over{false};
  constexpr int traffic = 200'000;
  constexpr std::size_t belt_max = 1000;
  std::thread giver([&] {
    std::vector<region*> mine;
    for (;;) {
      const bool last = over.load();
      {
        std::lock_guard hold(lock);
        mine.swap(belt);
      }
      for (region* r : mine) p.give(r);
      if (mine.empty()) {
        if (last) return;
        std::this_thread::yield();
      }
      mine.clear();
    }
  });
  for (int i = 0; i < traffic; ++i) {
    region* r = p.take();
    for (;;) {
      std::unique_lock hold(lock);
      if (belt.size() < belt_max) {
        belt.push_back(r);
        break;
      }
      hold.unlock();
      std::this_thread::yield();
    }
  }
  over = true;
  giver.join();
  EXPECT_EQ(p.in_use(), 0u);
  EXPECT_LE(p.bytes(), 16u * 1024 * sizeof(region));
}

TEST(record_pool, survives_many_threads_that_take_give_and_trim_at_once) {
  pool p;
  constexpr int threads = 8, rounds = 300;
  std::latch start(threads + 1);
  std::atomic<int> wrong{0}, running{threads};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      start.arrive_and_wait();
      std::vector<region*> mine;
      for (int i = 0; i < rounds; ++i) {
        for (int k = 0; k < 50 + t; ++k) {
          mine.push_back(p.take());
          mine.back()->lo[0] = t;  // an owner's mark
        }
        for (region* r : mine) {
          if (r->lo[0] != t) ++wrong;
          p.give(r);
        }
        mine.clear();
      }
      --running;
    });
  start.arrive_and_wait();
  while (running != 0) {
    p.trim(0);
    std::this_thread::yield();
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(p.in_use(), 0u);
  p.trim(0);
  EXPECT_EQ(p.bytes(), 0u);
}

TEST(take_record, gives_a_clean_record_whatever_its_last_owner_left) {
  auto* home = new runtime_state;
  task_record* t = take_record(*home);
  t->successor_count = 9;
  t->marks = 3;
  t->measured_ns = 5;
  t->phase.store(phase_done);
  home->records.give(t);
  task_record* again = take_record(*home);
  ASSERT_EQ(again, t);
  EXPECT_EQ(again->pending, 1);
  EXPECT_EQ(again->successor_count, 0u);
  EXPECT_EQ(again->marks, 0);
  EXPECT_EQ(again->measured_ns, 0);
  EXPECT_EQ(again->phase.load(), phase_waiting);
  EXPECT_EQ(again->references.load(), 1u);
  EXPECT_EQ(again->access_count, 0);
  home->records.give(again);
  home->release();
}

}  // namespace
