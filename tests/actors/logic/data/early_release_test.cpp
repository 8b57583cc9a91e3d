// What this file is for: successors are released once each, whoever does it, while others are added.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/successors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <latch>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "graph_world.hpp"

namespace {

using troupe::access_mode;
using troupe::detail::add_successor;
using troupe::detail::array_core;
using troupe::detail::each_unreleased;
using troupe::detail::is_added;
using troupe::detail::is_sealed;
using troupe::detail::is_sealed_whole;
using troupe::detail::release_early;
using troupe::detail::share;
using troupe::detail::successor;
using troupe::detail::successor_block;
using troupe::detail::successor_blocks;
using troupe::detail::task_record;

// Tasks of which each waits for one other, or for so many.
std::deque<task_record> waiting_tasks(std::size_t n, std::int32_t pending = 1) {
  std::deque<task_record> all(n);
  for (task_record& t : all) t.pending = pending;
  return all;
}

TEST(successors, come_in_the_order_in_which_they_were_added_whatever_their_number) {
  for (const std::size_t n : {0u, 1u, 3u, 4u, 9u, 10u, 15u, 16u, 100u}) {
    successor_blocks blocks;
    task_record of;
    std::deque<task_record> next = waiting_tasks(n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(add_successor(of, {.task = &next[i], .data = i % 2 != 0, .early = i % 3 != 0}, blocks), i);
    }
    std::size_t i = 0;
    each_unreleased(of, [&](const successor& s) {
      EXPECT_EQ(s.task, &next[i]);
      EXPECT_EQ(s.data, i % 2 != 0);
      EXPECT_EQ(s.early, i % 3 != 0);
      ++i;
    });
    EXPECT_EQ(i, n);
    blocks.give(of.more_successors);
  }
}

TEST(successors, of_a_sealed_list_are_those_that_are_left_to_the_turn) {
  successor_blocks blocks;
  task_record of;
  std::deque<task_record> next = waiting_tasks(20);
  for (std::size_t i = 0; i < next.size(); ++i)
    add_successor(of, {.task = &next[i], .data = true, .early = i % 4 != 0}, blocks);
  std::vector<task_record*> ready, left;
  EXPECT_FALSE(is_sealed(of));
  EXPECT_TRUE(release_early(of, [&](task_record& t) { ready.push_back(&t); }));
  EXPECT_TRUE(is_sealed(of));
  EXPECT_EQ(ready.size(), 15u);
  each_unreleased(of, [&](const successor& s) { left.push_back(s.task); });
  EXPECT_EQ(left, (std::vector<task_record*>{&next[0], &next[4], &next[8], &next[12], &next[16]}));
  task_record late;
  const std::uint32_t place = add_successor(of, {.task = &late, .data = true, .early = true}, blocks);
  EXPECT_FALSE(is_added(of, place)) << "need not wait";
  left.clear();
  each_unreleased(of, [&](const successor& s) { left.push_back(s.task); });
  EXPECT_EQ(left.size(), 5u) << "what came too late is no successor";
  blocks.give(of.more_successors);
}

TEST(successors, become_ready_with_their_last_predecessor_only) {
  successor_blocks blocks;
  std::deque<task_record> before(3);
  std::deque<task_record> next = waiting_tasks(1, 3);
  for (task_record& b : before) add_successor(b, {.task = &next[0], .data = false, .early = true}, blocks);
  int ready = 0;
  for (task_record& b : before) {
    EXPECT_EQ(ready, 0);
    EXPECT_FALSE(release_early(b, [&](task_record&) { ++ready; })) << "none is left to the turn";
  }
  EXPECT_EQ(ready, 1);
}

TEST(successors, of_a_shared_list_leave_nothing_to_the_turn_if_all_were_early) {
  for (const std::size_t n : {0u, 1u, 3u, 4u, 40u}) {
    successor_blocks blocks;
    task_record of, other;
    share(of);
    share(other);
    std::deque<task_record> next = waiting_tasks(n);
    for (task_record& t : next) add_successor(of, {.task = &t, .data = true, .early = true}, blocks);
    EXPECT_FALSE(release_early(of, [](task_record&) {}));
    EXPECT_TRUE(is_sealed(of));
    EXPECT_TRUE(is_sealed_whole(of));
    EXPECT_EQ(troupe::detail::sealed_count(of.pending), n);
    each_unreleased(of, [](const successor&) { FAIL() << "all of them have been released"; });
    task_record late;
    EXPECT_FALSE(is_added(of, add_successor(of, {.task = &late, .data = true, .early = true}, blocks)));
    if (n > troupe::detail::successors_inside) blocks.give_outside(of.more_successors);
    task_record waits;
    waits.pending = 1;
    add_successor(other, {.task = &waits, .data = true, .early = false}, blocks);
    EXPECT_TRUE(release_early(other, [](task_record&) {}));
    EXPECT_TRUE(is_sealed(other));
    EXPECT_FALSE(is_sealed_whole(other));
  }
}

TEST(successors, blocks_that_are_given_back_without_the_turn_are_used_again) {
  successor_blocks blocks;
  std::set<successor_block*> known;
  for (int round = 0; round < 100; ++round) {
    std::deque<task_record> of(8), next = waiting_tasks(40);
    for (task_record& o : of)
      for (task_record& t : next) add_successor(o, {.task = &t, .data = false, .early = true}, blocks);
    for (task_record& o : of)
      for (successor_block* b = o.more_successors; b; b = b->next) known.insert(b);
    for (task_record& o : of) blocks.give_outside(o.more_successors);
  }
  EXPECT_LE(known.size(), 128u) << "the first round needs 56";
}

TEST(successors, of_a_task_without_any_leave_the_list_open) {
  successor_blocks blocks;
  task_record of, next;
  EXPECT_FALSE(release_early(of, [](task_record&) { FAIL(); }));
  EXPECT_TRUE(is_added(of, add_successor(of, {.task = &next, .data = true, .early = true}, blocks)))
      << "the turn in which the task retires releases what comes later";
}

TEST(successors, blocks_are_used_again) {
  successor_blocks blocks;
  successor_block* first = nullptr;
  for (int round = 0; round < 100; ++round) {
    task_record of;
    std::deque<task_record> next = waiting_tasks(40);
    for (task_record& t : next) add_successor(of, {.task = &t, .data = false, .early = false}, blocks);
    if (round == 0) first = of.more_successors;
    EXPECT_EQ(of.more_successors, first);
    blocks.give(of.more_successors);
  }
}

// One thread adds, as the turn does, while another one releases: each successor is released, or was refused.
TEST(successors, added_while_the_list_is_sealed_are_released_or_refused_and_never_both) {
  constexpr int rounds = 4000;
  constexpr std::size_t each = 40;
  successor_blocks blocks;
  struct round {
    task_record of;
    std::deque<task_record> next = waiting_tasks(each);
    std::array<bool, each> added{};
  };
  std::deque<round> all(rounds);
  std::atomic<int> waits{-1};
  std::vector<std::vector<task_record*>> ready(rounds);
  // Each list is sealed when it has a few successors, in the middle of the other thread's work.
  const auto sealed_at = [](int r) { return static_cast<std::uint32_t>(r % 30) + 1; };
  std::thread releases([&] {
    for (int r = 0; r < rounds; ++r) {
      task_record& of = all[static_cast<std::size_t>(r)].of;
      waits.store(r, std::memory_order_release);
      while ((of.successor_count.load(std::memory_order_acquire) & ~troupe::detail::shared_bit) < sealed_at(r))
        std::this_thread::yield();
      release_early(of, [&](task_record& t) { ready[static_cast<std::size_t>(r)].push_back(&t); });
    }
  });
  for (int r = 0; r < rounds; ++r) {
    round& now = all[static_cast<std::size_t>(r)];
    while (waits.load(std::memory_order_acquire) < r) std::this_thread::yield();
    for (std::size_t i = 0; i < each; ++i) {
      if (r % 8 == 0 && i == sealed_at(r))  // certain to meet, also on one core
        while (!is_sealed(now.of)) std::this_thread::yield();
      const std::uint32_t place = add_successor(now.of, {.task = &now.next[i], .data = true, .early = true}, blocks);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      now.added[i] = is_added(now.of, place);
    }
  }
  releases.join();
  int refused = 0;
  for (int r = 0; r < rounds; ++r) {
    const round& now = all[static_cast<std::size_t>(r)];
    std::vector<const task_record*> expected;
    for (std::size_t i = 0; i < each; ++i) {
      if (now.added[i])
        expected.push_back(&now.next[i]);
      else
        ++refused;
    }
    ASSERT_EQ(expected.size(), ready[static_cast<std::size_t>(r)].size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), ready[static_cast<std::size_t>(r)].begin()));
  }
  EXPECT_GE(refused, rounds / 8) << "the two never met";
}

// ---- a program on tiles, run by several threads ---------------------------------------------------------------------

// Orders and retires tasks with a turn, and releases early successors without it. A tile's bytes are a number: a task
// that writes adds a digit of its own to what it reads, so that each value tells its whole history. `lists`: some tasks
// read one of so many lists of tiles, and may wait for gates.
class small_runtime final : public troupe::logic::dependencies::callbacks {
 public:
  small_runtime(std::size_t tiles, std::size_t lists, std::mt19937& random)
      : arrays_(tiles), values_(tiles), serial_(tiles), lists_(lists) {
    for (std::vector<std::size_t>& list : lists_)
      for (std::size_t n = 8 + random() % 4; n != 0; --n) list.push_back(random() % tiles);
    order_.allow_gates(lists != 0);
    for (array_core& a : arrays_) {
      a.spec.rank = 1;
      a.spec.size[0] = a.spec.tile[0] = 4;
      a.states = &a.single;
      a.single.valid = true;
    }
  }

  void add(std::mt19937& random) {
    job& j = jobs_.emplace_back();
    j.record.pending = 1;
    if (random() % 4 != 0) j.record.marks |= troupe::detail::mark_early;
    j.id = jobs_.size();
    const auto use = [&](std::size_t tile, access_mode mode) {
      auto& x = j.accesses.emplace_back();
      x.array = &arrays_[tile];
      x.mode = mode;
    };
    const auto mode = [&] { return random() % 2 != 0 ? access_mode::read : access_mode::update; };
    const bool reads_list = !lists_.empty() && random() % 8 != 0;
    const bool writes_first = random() % 8 == 0;
    const std::size_t written = random() % arrays_.size();
    if (reads_list) {
      if (random() % 32 == 0) list_ = random() % lists_.size();
      if (writes_first) use(written, access_mode::update);
      for (const std::size_t tile : lists_[list_])
        if (!writes_first || tile != written) use(tile, access_mode::read);
    }
    const std::size_t n = reads_list ? random() % 2 : 1 + random() % 3;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t tile = random() % arrays_.size();
      if (std::ranges::none_of(j.accesses, [&](const auto& x) { return x.array == &arrays_[tile]; }))
        use(tile, reads_list ? access_mode::update : mode());
    }
    j.record.accesses = j.accesses.data();
    j.record.access_count = static_cast<std::uint16_t>(j.accesses.size());
    std::uint64_t seen = j.id;
    for (std::uint16_t i = 0; i < j.record.access_count; ++i) seen = seen * 31 + serial_[tile_of(j.record, i)];
    j.expected = seen;
    for (std::uint16_t i = 0; i < j.record.access_count; ++i)
      if (j.record.accesses[i].mode == access_mode::update) serial_[tile_of(j.record, i)] = seen;
    ++unfinished_;
  }

  // Runs the jobs on so many threads, each of which orders some, runs some and retires some, in turn.
  void run(int threads, unsigned seed) {
    std::latch start(threads);
    std::vector<std::thread> all;
    for (int n = 0; n < threads; ++n)
      all.emplace_back([&, n] {
        std::mt19937 random(seed + static_cast<unsigned>(n));
        std::vector<task_record*> ended;
        start.arrive_and_wait();
        while (unfinished_.load() != 0) {
          if (random() % 2 == 0 || ended.size() > 8) take_turn(ended, random() % 20);
          if (job* j = next_ready()) {
            do_job(*j, ended);
            ended.push_back(&j->record);
          } else {
            take_turn(ended, 20);
          }
        }
      });
    for (std::thread& t : all) t.join();
  }

  std::size_t wrong() const { return wrong_; }
  std::size_t early() const { return early_; }
  std::size_t gates() const { return gates_.size(); }
  std::size_t gates_passed_early() const { return passed_; }
  bool ends_as_in_order() const { return values_ == serial_; }

 private:
  struct job {
    task_record record;
    std::vector<troupe::detail::access> accesses{};
    std::size_t id = 0;
    std::uint64_t expected = 0;
  };

  std::size_t tile_of(const task_record& t, int i) const {
    return static_cast<std::size_t>(t.accesses[i].array - arrays_.data());
  }

  void take_turn(std::vector<task_record*>& ended, std::size_t how_many) {
    std::lock_guard hold(turn_);
    for (task_record* t : ended) {
      retire(*t);
      if (t->kind != troupe::detail::task_kind::gate) --unfinished_;
    }
    ended.clear();
    std::vector<task_record*> made;
    for (; how_many != 0 && ordered_ < jobs_.size(); --how_many) {
      task_record& t = jobs_[ordered_++].record;
      order_.order(t, made);
      for (task_record* gate : made)
        if (gate->pending.fetch_sub(1) == 1) make_ready_in_turn(*gate);
      made.clear();
      if (t.pending.fetch_sub(1) == 1) make_ready(t);
    }
  }

  void retire(task_record& t) {
    order_.retire(t, [&](task_record& next) { make_ready_in_turn(next); });
  }
  void make_ready_in_turn(task_record& t) { t.kind == troupe::detail::task_kind::gate ? retire(t) : make_ready(t); }

  void do_job(job& j, std::vector<task_record*>& ended) {
    std::uint64_t seen = j.id;
    for (int i = 0; i < j.record.access_count; ++i) seen = seen * 31 + values_[tile_of(j.record, i)];
    if (seen != j.expected) ++wrong_;
    for (int i = 0; i < j.record.access_count; ++i)
      if (j.record.accesses[i].mode == access_mode::update) values_[tile_of(j.record, i)] = seen;
    const auto take = [&](task_record& next) {
      ++early_;
      make_ready(next);
    };
    release_early(j.record, [&](task_record& next) {
      if (next.kind != troupe::detail::task_kind::gate) return take(next);
      ++passed_;
      release_early(next, take);
      ended.push_back(&next);
    });
  }

  void make_ready(task_record& t) {
    std::lock_guard hold(queue_);
    ready_.push_back(&t);
  }
  job* next_ready() {
    std::lock_guard hold(queue_);
    if (ready_.empty()) return nullptr;
    task_record* const t = ready_.front();
    ready_.pop_front();
    return reinterpret_cast<job*>(t);  // its first member
  }

  task_record* make_combine(array_core&, troupe::detail::reduction&) override { return nullptr; }
  task_record* make_gate() noexcept override {
    task_record& t = gates_.emplace_back();
    t.kind = troupe::detail::task_kind::gate;
    t.pending = 1;
    return &t;
  }
  void fail(task_record&, std::exception_ptr, bool) override { ++wrong_; }

  std::vector<array_core> arrays_;
  std::vector<std::uint64_t> values_, serial_;
  std::vector<std::vector<std::size_t>> lists_;
  std::size_t list_ = 0;  // the one that is read by the jobs added now
  std::deque<job> jobs_;
  std::deque<task_record> gates_;
  std::mutex turn_, queue_;
  troupe::logic::dependencies order_{*this};
  std::size_t ordered_ = 0;
  std::deque<task_record*> ready_;
  std::atomic<std::size_t> unfinished_{0}, wrong_{0}, early_{0}, passed_{0};
};

class successors_of_programs : public testing::TestWithParam<unsigned> {};

TEST_P(successors_of_programs, run_in_the_order_of_the_program_on_any_number_of_threads) {
  std::mt19937 random(GetParam());
  for (const int threads : {1, 2, 3, 5}) {
    small_runtime rt(1 + random() % 12, 0, random);
    for (int i = 0; i < 2000; ++i) rt.add(random);
    rt.run(threads, random());
    EXPECT_EQ(rt.wrong(), 0u);
    EXPECT_TRUE(rt.ends_as_in_order());
    EXPECT_GT(rt.early(), 0u);
  }
}

TEST_P(successors_of_programs, run_in_the_order_of_the_program_where_they_read_the_same_lists_of_tiles) {
  std::mt19937 random(GetParam());
  std::size_t early = 0;
  for (const int threads : {1, 2, 3, 5}) {
    small_runtime rt(12 + random() % 40, 1 + random() % 3, random);
    for (int i = 0; i < 2000; ++i) rt.add(random);
    rt.run(threads, random());
    EXPECT_EQ(rt.wrong(), 0u);
    EXPECT_TRUE(rt.ends_as_in_order());
    EXPECT_GT(rt.gates(), 10u);
    early += rt.gates_passed_early();
  }
  EXPECT_GT(early, 0u);
}

INSTANTIATE_TEST_SUITE_P(seeds, successors_of_programs, testing::Range(1u, 11u));

}  // namespace
