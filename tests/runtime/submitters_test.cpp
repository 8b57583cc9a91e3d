// What this file is for: several threads submit at once, to arrays of their own and to each other's, and all is as if one
// thread had run everything in order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <ostream>
#include <random>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <troupe/troupe.hpp>

#include "actors/placement/placement.hpp"
#include "tests/runtime/open_runtime.hpp"

namespace {

using value = std::uint64_t;
using number = troupe::array<value, 1>;

// What the tasks of one program do to numbers, and what the same does in order, one after the other.
class program {
 public:
  program(test::open_runtime& rt, std::size_t arrays) : rt_(rt), serial_(arrays) {
    for (std::size_t i = 0; i < arrays; ++i) arrays_.push_back(rt.filled<value>({1}, troupe::tiles(1), 0));
  }

  // Submits a step on some of these arrays, which nobody else uses meanwhile.
  void step(std::span<const std::size_t> mine, std::mt19937& random) {
    const std::size_t to = pick(mine, random), from = pick(mine, random);
    const value k = random();
    number &target = arrays_[to], &source = arrays_[from];
    cell &t = serial_[to], &s = serial_[from];
    switch (random() % 16) {
      case 0:  // overwrites
        rt_.spawn([k](troupe::view<value, 1> v) { v(0) = k; }, troupe::write(target));
        t = {k, false};
        return;
      case 1:  // fails, as all do that read it
        rt_.spawn([](troupe::view<value, 1>) { throw std::runtime_error("planted"); }, troupe::update(target));
        t.failed = true;
        return;
      case 2: {  // waits for what it gives
        auto f = rt_.spawn([](troupe::view<const value, 1> v) { return v(0); }, troupe::read(target));
        if (t.failed)
          EXPECT_THROW(f.get(), troupe::error);
        else
          EXPECT_EQ(f.get(), t.v);
        return;
      }
      case 3:  // reads it from outside
        if (t.failed)
          EXPECT_THROW(target.read(), troupe::error);
        else
          EXPECT_EQ(target.read()(0), t.v);
        return;
      case 4: {  // a value of one task is an argument of the next
        auto f = rt_.spawn([](troupe::view<const value, 1> v) { return v(0); }, troupe::read(source));
        rt_.spawn([](troupe::view<value, 1> v, value x) { v(0) = v(0) * 31 + x; }, troupe::update(target), f);
        t = {t.v * 31 + s.v, t.failed || s.failed};
        return;
      }
      case 5:  // with a name
        rt_.spawn(
            {.name = "named"}, [k](troupe::view<value, 1> v) { v(0) = v(0) * 31 + k; }, troupe::update(target));
        break;
      default:
        if (to == from || random() % 2 == 0) {
          rt_.spawn([k](troupe::view<value, 1> v) { v(0) = v(0) * 31 + k; }, troupe::update(target));
          break;
        }
        rt_.spawn([](troupe::view<const value, 1> in, troupe::view<value, 1> v) { v(0) = v(0) * 31 + in(0); },
                  troupe::read(source), troupe::update(target));
        t = {t.v * 31 + s.v, t.failed || s.failed};
        return;
    }
    t.v = t.v * 31 + k;
  }
  // Sees to it that nothing is in error, without waiting.
  void heal() {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      rt_.spawn([i](troupe::view<value, 1> v) { v(0) = i; }, troupe::write(arrays_[i]));
      serial_[i] = {i, false};
    }
  }
  void check() {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (serial_[i].failed)
        EXPECT_THROW(arrays_[i].read(), troupe::error) << i;
      else
        EXPECT_EQ(arrays_[i].read()(0), serial_[i].v) << i;
    }
  }

 private:
  struct cell {
    value v = 0;
    bool failed = false;
  };
  static std::size_t pick(std::span<const std::size_t> mine, std::mt19937& random) {
    return mine[random() % mine.size()];
  }

  test::open_runtime& rt_;
  std::vector<number> arrays_;
  std::vector<cell> serial_;
};

struct setting {
  int workers;
  std::size_t submitters;
  std::size_t in_flight;
  friend void PrintTo(const setting& s, std::ostream* to) {
    *to << s.submitters << " to " << s.workers << ", at most " << s.in_flight;
  }
};

class submitters : public testing::TestWithParam<setting> {};

// In each phase every thread has arrays of its own; in the next one they are others'. Between two phases some tasks use
// those of several threads, and nobody waits for them.
TEST_P(submitters, leave_what_one_thread_would_have_left) {
  constexpr std::size_t of_each = 7, phases = 12;
  const std::size_t threads = GetParam().submitters;
  for (unsigned seed = 0; seed < 3; ++seed) {
    troupe::options o;
    o.threads = GetParam().workers;
    o.tasks_in_flight_max = GetParam().in_flight;
    test::open_runtime rt(o);
    if (seed != 0) rt.inside().placement_actor().insist_on_sides();  // else if it is worth it
    program p(rt, threads * of_each);
    std::vector<std::size_t> places(threads * of_each);
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::mt19937 shuffling(seed);
    const auto between = [&]() noexcept {
      for (int i = 0; i < 20; ++i) p.step(places, shuffling);
      if (shuffling() % 2 == 0) p.heal();
      std::ranges::shuffle(places, shuffling);
    };
    std::barrier phase(static_cast<std::ptrdiff_t>(threads), between);
    std::vector<std::thread> all;
    for (std::size_t n = 0; n < threads; ++n)
      all.emplace_back([&, n] {
        std::mt19937 random(seed * 100 + static_cast<unsigned>(n));
        for (std::size_t i = 0; i < phases; ++i) {
          const std::size_t steps = i % 3 == 0 ? 50 : 1'000;
          const std::span<const std::size_t> mine(places.data() + n * of_each, of_each);
          for (std::size_t k = 0; k < steps; ++k) p.step(mine, random);
          phase.arrive_and_wait();
        }
      });
    for (std::thread& t : all) t.join();
    p.check();
    EXPECT_TRUE(rt.inside().placement_actor().wait_quiet(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
    if (seed != 0) {
      EXPECT_GT(rt.inside().placement_actor().ordered_aside(), 0u);
    }
    const troupe::runtime_report r = rt.inside().report();
    EXPECT_EQ(r.finished, r.spawned);
  }
}

INSTANTIATE_TEST_SUITE_P(few_and_many, submitters,
                         testing::Values(setting{2, 2, 100'000}, setting{1, 4, 100'000}, setting{2, 4, 300},
                                         setting{4, 3, 5'000}, setting{3, 12, 100'000}));

// Plain floods, which order most of their tasks without a turn.
TEST(submitters, that_flood_lose_no_task_and_leave_no_record) {
  constexpr std::size_t threads = 4, arrays = 16, tasks = 20'000;
  test::open_runtime rt({.threads = 2});
  troupe::detail::placement& inside = rt.inside().placement_actor();
  inside.insist_on_sides();
  const auto quiet = [&] { return inside.wait_quiet(std::chrono::steady_clock::now() + std::chrono::seconds(60)); };
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<number>> all(threads);
    for (auto& some : all)
      for (std::size_t i = 0; i < arrays; ++i) some.push_back(rt.filled<value>({1}, troupe::tiles(1), 0));
    std::vector<std::thread> submit;
    for (std::size_t n = 0; n < threads; ++n)
      submit.emplace_back([&, n] {
        for (std::size_t i = 0; i < tasks; ++i)
          rt.spawn([i](troupe::view<value, 1> v) { v(0) = v(0) * 3 + i; }, troupe::update(all[n][i % arrays]));
      });
    for (std::thread& t : submit) t.join();
    for (const auto& some : all)
      for (std::size_t i = 0; i < arrays; ++i) {
        value expected = 0;
        for (std::size_t k = i; k < tasks; k += arrays) expected = expected * 3 + k;
        EXPECT_EQ(some[i].read()(0), expected);
      }
    EXPECT_TRUE(quiet());
  }
  EXPECT_GT(inside.ordered_aside(), 0u);
  const troupe::runtime_report r = rt.inside().report();
  EXPECT_EQ(r.records, 0u);
  EXPECT_EQ(r.arrays, 0u);
}

// The runtime ends while threads submit: each future is either done or says that the runtime was stopped.
TEST(submitters, are_told_when_the_runtime_ends_meanwhile) {
  for (int round = 0; round < 20; ++round) {
    auto rt = std::make_unique<test::open_runtime>(troupe::options{.threads = 2});
    if (round % 2 == 0) rt->inside().placement_actor().insist_on_sides();
    std::vector<number> arrays;
    for (int i = 0; i < 4; ++i) arrays.push_back(rt->filled<value>({1}, troupe::tiles(1), 0));
    std::atomic<int> going{0};
    std::vector<std::thread> all;
    for (std::size_t n = 0; n < 4; ++n)
      all.emplace_back([&, n] {
        std::vector<troupe::future<value>> futures;
        try {
          for (int i = 0;; ++i) {
            if (i == 2'000) ++going;
            auto f = rt->spawn([](troupe::view<value, 1> v) { return ++v(0); }, troupe::update(arrays[n]));
            if (i % 16 == 0) futures.push_back(std::move(f));
          }
        } catch (const troupe::error& e) {
          EXPECT_EQ(e.code(), troupe::errc::runtime_stopped);
        }
        value last = 0;
        bool stopped = false;
        for (auto& f : futures) try {
            const value v = f.get();
            EXPECT_FALSE(stopped) << "a later one has run";
            EXPECT_GT(v, last);
            last = v;
          } catch (const troupe::error& e) {
            EXPECT_EQ(e.code(), troupe::errc::runtime_stopped);
            stopped = true;
          }
      });
    while (going.load() < 4) std::this_thread::yield();
    rt->inside().shutdown(std::chrono::steady_clock::now() + std::chrono::milliseconds(round));
    for (std::thread& t : all) t.join();
  }
}

}  // namespace
