// What this file is for: tasks that retire without a turn are in order with those that turns order meanwhile, and their
// records are used again when no turn can see them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/turnless_ends.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <troupe/detail/engine.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/dependencies.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/in_flight.hpp"
#include "actors/protocol/successors.hpp"
#include "actors/protocol/task_name.hpp"

namespace {

using namespace troupe::detail;
using troupe::access_mode;

constexpr task_ops nothing{[](task_record&, troupe::task_context&) {}, [](task_record&) {},
                           [](task_record&) noexcept {}, [](task_record&) noexcept -> void* { return nullptr; }};

// The parts of placement that order and retire tasks, without the rest of it.
struct small_placement : private troupe::logic::dependencies::callbacks {
  small_placement() { rt->the_engine.store(reinterpret_cast<engine*>(this)); }  // it is asked for only
  ~small_placement() { rt->release(); }
  small_placement(const small_placement&) = delete;
  small_placement& operator=(const small_placement&) = delete;

  // Returns an early task that is in order, and has begun.
  task_record* early_task() {
    task_record* const t = take_record(*rt);
    t->ops = &nothing;
    t->marks = mark_early;
    std::vector<task_record*> made;
    order.order(*t, made);
    t->pending = 0;
    return t;
  }
  static bool seal(task_record& t) {
    return !release_early(t, [](task_record&) {});
  }
  void leave_turn() {
    turn.leave();
    ends.turn_left();
  }

  runtime_state* rt = new runtime_state;
  turns turn{100};
  troupe::logic::dependencies order{*this};
  in_flight count{1000};
  turnless_ends ends{*rt, order.graph(), turn, count};
  std::atomic<int> failed{0};

 private:
  task_record* make_combine(array_core&, reduction&) override { return nullptr; }
  void fail(task_record&, std::exception_ptr, bool) override { ++failed; }
};

TEST(turnless_ends, take_early_tasks_whose_list_was_sealed_whole_and_leave_the_others) {
  small_placement p;
  task_record* const whole = p.early_task();
  ASSERT_TRUE(p.seal(*whole));
  task_record* const open = p.early_task();
  task_record* const with_others = p.early_task();
  task_record* const next = take_record(*p.rt);
  successor_blocks blocks;
  add_successor(*with_others, {.task = next, .data = true, .early = false}, blocks);
  ASSERT_FALSE(p.seal(*with_others));
  task_record* const counted = p.early_task();
  counted->marks = mark_sent;
  ASSERT_TRUE(p.seal(*counted));
  task_record* const all[]{open, whole, with_others, counted};
  task_record* left[4];
  ASSERT_EQ(p.ends.retire(all, left), 3u);
  EXPECT_EQ(std::vector(left, left + 3), (std::vector{open, with_others, counted}));
  EXPECT_EQ(whole->sequence, 0u);
  EXPECT_NE(open->sequence, 0u);
  EXPECT_EQ(p.count.finished(), 1u);
  p.ends.give_back();
  EXPECT_EQ(p.rt->records.in_use(), 4u);
  for (task_record* t : {open, with_others, counted, next}) recycle(t);
  EXPECT_EQ(p.rt->records.in_use(), 0u);
}

TEST(turnless_ends, refer_to_a_task_with_a_future_until_no_turn_is_held_that_was_held_then) {
  small_placement p;
  task_record* left[1];
  const auto retire_one = [&] {
    task_record* const t = p.early_task();
    t->references = 2;
    t->id = t->sequence;
    EXPECT_TRUE(p.seal(*t));
    EXPECT_EQ(p.ends.retire({&t, 1}, left), 0u);
    return t;
  };
  p.turn.take();
  task_record* const first = retire_one();
  task_record* const second = retire_one();
  EXPECT_EQ(first->sequence, 0u);
  EXPECT_EQ(first->references, 2u) << "the holder of the turn may look at it";
  EXPECT_EQ(p.count.finished(), 0u);
  const std::uint64_t number = first->id;
  p.leave_turn();
  EXPECT_EQ(first->references, 1u);
  EXPECT_EQ(first->id, number) << "a future may be asked for it";
  EXPECT_NE(number, 0u);
  EXPECT_EQ(p.count.finished(), 2u);
  task_record* const third = retire_one();
  EXPECT_EQ(third->references, 1u) << "no turn was held";
  EXPECT_EQ(p.count.finished(), 3u);
  for (task_record* t : {first, second, third}) recycle(t);
  EXPECT_EQ(p.rt->records.in_use(), 0u);
}

TEST(turnless_ends, keep_the_name_of_a_task_for_the_holder_of_a_turn_and_not_its_result) {
  static std::atomic<int> destroyed{0};
  constexpr task_ops counts{[](task_record&, troupe::task_context&) {}, [](task_record&) {},
                            [](task_record&) noexcept { ++destroyed; },
                            [](task_record&) noexcept -> void* { return nullptr; }};
  small_placement p;
  task_record* left[1];
  for (const bool has_future : {false, true}) {
    destroyed = 0;
    task_record* const t = p.early_task();
    t->ops = &counts;
    extra_of(*t).options.name = "named";
    t->references = has_future ? 2 : 1;
    ASSERT_TRUE(p.seal(*t));
    p.turn.take();
    ASSERT_EQ(p.ends.retire({&t, 1}, left), 0u);
    EXPECT_EQ(name_of(*t), "named");
    EXPECT_EQ(destroyed, has_future ? 0 : 1);
    p.leave_turn();
    EXPECT_EQ(p.rt->records.in_use(), has_future ? 1u : 0u);
    if (has_future) release(t);
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(p.rt->records.in_use(), 0u);
    EXPECT_EQ(p.rt->extras.in_use(), 0u);
  }
}

TEST(turnless_ends, keep_records_until_no_turn_is_held_that_was_held_then) {
  small_placement p;
  constexpr std::size_t many = turnless_ends::fresh_max;  // as many as are gathered
  const auto retire = [&](std::size_t n) {
    task_record* left[1];
    for (std::size_t i = 0; i < n; ++i) {
      task_record* const t = p.early_task();
      ASSERT_TRUE(p.seal(*t));
      ASSERT_EQ(p.ends.retire({&t, 1}, left), 0u);
    }
  };
  p.turn.take();
  retire(2 * many);
  EXPECT_EQ(p.rt->records.in_use(), 2 * many) << "the holder of the turn may look at the first";
  p.turn.leave();
  p.turn.take();
  retire(many);
  EXPECT_EQ(p.rt->records.in_use(), many) << "this holder took the turn afterwards";
  p.turn.leave();
  retire(many);
  EXPECT_EQ(p.rt->records.in_use(), many) << "no turn was held";
  retire(many - 1);
  EXPECT_EQ(p.rt->records.in_use(), 2 * many - 1) << "they are gathered";
  p.ends.give_back();
  EXPECT_EQ(p.rt->records.in_use(), 0u);
}

TEST(turnless_ends, destroy_a_result_at_once) {
  static std::atomic<int> destroyed{0};
  constexpr task_ops counts{[](task_record&, troupe::task_context&) {}, [](task_record&) {},
                            [](task_record&) noexcept { ++destroyed; },
                            [](task_record&) noexcept -> void* { return nullptr; }};
  small_placement p;
  task_record* const t = p.early_task();
  t->ops = &counts;
  ASSERT_TRUE(p.seal(*t));
  task_record* left[1];
  p.turn.take();
  ASSERT_EQ(p.ends.retire({&t, 1}, left), 0u);
  EXPECT_EQ(destroyed, 1) << "only the record waits for the turn";
  p.turn.leave();
}

TEST(turnless_ends, add_up_what_was_predicted_and_measured) {
  small_placement p;
  task_record* left[1];
  for (int i = 0; i < 100; ++i) {
    task_record* const t = p.early_task();
    t->predicted_ns = 1'000;
    t->measured_ns = 900;
    ASSERT_TRUE(p.seal(*t));
    ASSERT_EQ(p.ends.retire({&t, 1}, left), 0u);
  }
  EXPECT_EQ(p.ends.sum(0).measured_ns, 90'000);
  EXPECT_EQ(p.ends.sum(0).predicted_ns, 100'000);
}

TEST(turnless_ends, add_up_what_each_core_group_has_measured) {
  small_placement p;
  p.ends.know_groups(3);
  task_record *left[4], *all[4];
  for (std::uint16_t i = 0; i < 4; ++i) {
    all[i] = p.early_task();
    all[i]->executor = std::array<std::uint16_t, 4>{2, 0, 0, 2}[i];
    all[i]->predicted_ns = 1'000;
    all[i]->measured_ns = 100.0f * static_cast<float>(i + 1);
    ASSERT_TRUE(p.seal(*all[i]));
  }
  ASSERT_EQ(p.ends.retire(all, left), 0u);
  EXPECT_EQ(p.ends.sum(0).measured_ns, 200 + 300);
  EXPECT_EQ(p.ends.sum(1).measured_ns, 0);
  EXPECT_EQ(p.ends.sum(2).measured_ns, 100 + 400);
  EXPECT_EQ(p.ends.sum(2).predicted_ns, 2'000);
}

TEST(turnless_ends, have_some_of_the_times_learned_and_all_that_were_far_off) {
  small_placement p;
  const auto learned_of = [&](float predicted, float measured) {
    task_record* const t = p.early_task();
    t->kernel = &nothing.closure;
    t->predicted_ns = predicted;
    t->measured_ns = measured;
    int n = 0;
    for (int i = 0; i < 32; ++i) p.ends.note_time(*t);
    p.ends.take_times([&](const timed_call& c) {
      EXPECT_EQ(c.kernel, t->kernel);
      EXPECT_EQ(c.measured_ns, measured);
      ++n;
    });
    recycle(t);
    return n;
  };
  EXPECT_EQ(learned_of(0, 0), 0) << "it was not timed";
  EXPECT_LT(learned_of(1'000, 1'100), 20);
  EXPECT_EQ(learned_of(1'000, 3'000), 32);
  EXPECT_EQ(learned_of(3'000, 1'000), 32);
  EXPECT_EQ(learned_of(50'000, 50'000), 32) << "each long task is learned from";
  EXPECT_LT(learned_of(20, 900), 20) << "a miss of a cache takes as long as the shortest";
  EXPECT_FALSE(p.ends.has_urgent_times());
  task_record* const t = p.early_task();
  t->kernel = &nothing.closure;
  t->predicted_ns = 1'000;
  t->measured_ns = 3'000;
  p.ends.note_time(*t);
  EXPECT_FALSE(p.ends.has_urgent_times());
  t->measured_ns = 5'000;
  p.ends.note_time(*t);
  EXPECT_TRUE(p.ends.has_urgent_times()) << "tasks that wait have the same prediction";
  p.ends.take_times([](const timed_call&) {});
  EXPECT_FALSE(p.ends.has_urgent_times());
  recycle(t);
}

// ---- a program on tiles, run by several threads ---------------------------------------------------------------------

// Tasks on tiles of which each is a number: a task that writes makes a new one from all that it sees, so that each
// value tells its whole history. Records are used again and again.
class small_program {
 public:
  explicit small_program(std::size_t tiles) : arrays_(tiles), values_(tiles), serial_(tiles) {
    for (array_core& a : arrays_) {
      a.spec.rank = 1;
      a.spec.size[0] = a.spec.tile[0] = 4;
      a.states = &a.single;
      a.single.valid = true;
    }
  }

  void add(std::mt19937& random) {
    job& j = jobs_.emplace_back();
    j.early = random() % 8 != 0;
    j.kept = random() % 4 == 0;
    j.named = random() % 4 == 0;
    std::uint64_t seen = jobs_.size();
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
      const std::size_t tile = random() % arrays_.size();
      if (std::ranges::find(j.uses, tile, &use::tile) != j.uses.end()) continue;
      j.uses.push_back({tile, random() % 4 == 0});
      seen = seen * 31 + serial_[tile];
    }
    j.seed = jobs_.size();
    j.expected = seen;
    for (const use& u : j.uses)
      if (u.writes) serial_[u.tile] = seen;
    ++unfinished_;
  }

  // Runs the jobs on so many threads, each of which orders some and runs some, in turn.
  void run(int threads, unsigned seed) {
    std::latch start(threads);
    std::vector<std::thread> all;
    for (int n = 0; n < threads; ++n)
      all.emplace_back([&, n] {
        std::mt19937 random(seed + static_cast<unsigned>(n));
        std::vector<task_record*> ended;
        start.arrive_and_wait();
        while (unfinished_.load() != 0) {
          if (random() % 2 == 0 || ended.size() > 8) report(ended, random() % 20);
          if (random() % 4 == 0) drop_some_kept();
          if (task_record* t = next_ready()) {
            do_job(*t);
            ended.push_back(t);
          } else {
            report(ended, 20);
          }
        }
      });
    for (std::thread& t : all) t.join();
    EXPECT_EQ(p_.count.finished(), turnless_) << "no turn is held";
    p_.turn.take();
    p_.ends.give_back();
    p_.leave_turn();
  }

  std::size_t wrong() const { return wrong_ + static_cast<std::size_t>(p_.failed); }
  std::size_t turnless() const { return turnless_; }
  bool ends_as_in_order() const { return values_ == serial_; }
  std::size_t records() const { return p_.rt->records.in_use(); }
  void drop_kept() {
    for (task_record* t : kept_) release(t);
    kept_.clear();
  }
  std::size_t kept() const { return kept_.size(); }

 private:
  struct use {
    std::size_t tile;
    bool writes;
  };
  struct job {
    std::vector<use> uses;
    std::uint64_t seed = 0, expected = 0;
    bool early = false, kept = false, named = false;
  };
  static job& job_of(const task_record& t) {
    job* j = nullptr;
    std::memcpy(&j, t.storage, sizeof j);
    return *j;
  }

  task_record* record_of(job& j) {
    task_record* const t = take_record(*p_.rt);
    t->ops = &nothing;
    job* const p = &j;
    std::memcpy(t->storage, &p, sizeof p);
    if (j.early) t->marks |= mark_early;
    for (const use& u : j.uses) {
      troupe::detail::access& x = t->accesses[t->access_count++];
      x = {};
      x.array = &arrays_[u.tile];
      x.mode = u.writes ? access_mode::update : access_mode::read;
    }
    if (j.named) extra_of(*t).options.name = "named";
    if (!j.kept) return t;
    t->references = 2;
    const std::lock_guard hold(kept_lock_);
    kept_.push_back(t);
    return t;
  }

  void report(std::vector<task_record*>& ended, std::size_t to_order) {
    task_record* left[turnless_ends::at_once];
    const std::size_t n = p_.ends.retire(ended, left);
    turnless_ += ended.size() - n;
    unfinished_ -= ended.size() - n;
    p_.turn.take();
    std::for_each(left, left + n, [&](task_record* t) {
      p_.order.retire(*t, [&](task_record& next) { make_ready(next); });
      --unfinished_;
      release(t);
    });
    std::vector<task_record*> made;
    for (; to_order != 0 && ordered_ < jobs_.size(); --to_order) {
      task_record& t = *record_of(jobs_[ordered_++]);
      p_.order.order(t, made);
      if (t.pending.fetch_sub(1) == 1) make_ready(t);
    }
    p_.leave_turn();
    ended.clear();
  }

  // Futures go at any time, before and after their tasks.
  void drop_some_kept() {
    std::vector<task_record*> some;
    {
      const std::lock_guard hold(kept_lock_);
      some.assign(kept_.begin() + static_cast<std::ptrdiff_t>(kept_.size() / 2), kept_.end());
      kept_.resize(kept_.size() / 2);
    }
    for (task_record* t : some) release(t);
  }

  void do_job(task_record& t) {
    const job& j = job_of(t);
    std::uint64_t seen = j.seed;
    for (const use& u : j.uses) seen = seen * 31 + values_[u.tile];
    if (seen != j.expected) ++wrong_;
    for (const use& u : j.uses)
      if (u.writes) values_[u.tile] = seen;
    release_early(t, [&](task_record& next) { make_ready(next); });
  }

  void make_ready(task_record& t) {
    const std::lock_guard hold(queue_);
    ready_.push_back(&t);
  }
  task_record* next_ready() {
    const std::lock_guard hold(queue_);
    if (ready_.empty()) return nullptr;
    task_record* const t = ready_.front();
    ready_.pop_front();
    return t;
  }

  std::vector<array_core> arrays_;
  std::vector<std::uint64_t> values_, serial_;
  std::deque<job> jobs_;
  std::mutex queue_;
  small_placement p_;
  std::size_t ordered_ = 0;
  std::mutex kept_lock_;
  std::vector<task_record*> kept_;
  std::deque<task_record*> ready_;
  std::atomic<std::size_t> unfinished_{0}, wrong_{0}, turnless_{0};
};

class turnless_programs : public testing::TestWithParam<unsigned> {};

TEST_P(turnless_programs, run_in_their_order_on_any_number_of_threads) {
  std::mt19937 random(GetParam());
  for (const int threads : {1, 2, 3, 5}) {
    small_program program(1 + random() % 6);
    for (int i = 0; i < 3000; ++i) program.add(random);
    program.run(threads, random());
    EXPECT_EQ(program.wrong(), 0u);
    EXPECT_TRUE(program.ends_as_in_order());
    EXPECT_GT(program.turnless(), 0u);
    EXPECT_EQ(program.records(), program.kept());
    program.drop_kept();
    EXPECT_EQ(program.records(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, turnless_programs, testing::Range(1u, 9u));

}  // namespace
