// What this file is for: steps of a few tiny tasks that depend on each other use more than one thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>

#include <troupe/troupe.hpp>

namespace {

using clock_type = std::chrono::steady_clock;

// Which threads ran bodies, and how many each.
class attendance {
 public:
  void note() {
    static std::atomic<int> threads{0};
    thread_local const int mine = threads++;
    ran_[static_cast<std::size_t>(mine) % ran_.size()].fetch_add(1, std::memory_order_relaxed);
  }
  // The share of all that did not run on the thread that ran the most.
  double shared() const {
    int all = 0, most = 0;
    for (const auto& r : ran_) {
      all += r.load();
      most = std::max(most, r.load());
    }
    return all == 0 ? 0 : 1 - static_cast<double>(most) / all;
  }
  int all() const {
    int n = 0;
    for (const auto& r : ran_) n += r.load();
    return n;
  }

 private:
  std::array<std::atomic<int>, 64> ran_{};
};

void compute(double us) {
  const auto end = clock_type::now() + std::chrono::nanoseconds(static_cast<int>(1000 * us));
  while (clock_type::now() < end) {
  }
}

// Steps of two tasks that each need both of the step before. No step has work that is worth a wake-up.
double shared_of_steps(troupe::runtime& rt, int steps, double body_us) {
  attendance who;
  const auto body = [&who, body_us] {
    compute(body_us);
    who.note();
  };
  std::array<std::array<troupe::array<int, 1>, 2>, 2> cells;
  for (auto& row : cells)
    for (auto& c : row) c = rt.filled<int>({1}, troupe::tiles(1), 0);
  for (int s = 0; s < steps; ++s)
    for (const auto& mine : cells[static_cast<std::size_t>(s % 2)]) {
      const auto& before = cells[static_cast<std::size_t>((s + 1) % 2)];
      rt.spawn(body, troupe::read(before[0]), troupe::read(before[1]), troupe::write(mine));
    }
  rt.wait_all();
  EXPECT_EQ(who.all(), 2 * steps);
  return who.shared();
}

// True as soon as five of nine runs in a row have been shared; other processes may have the second core for a while.
template <class Run>
bool is_mostly_shared(Run&& run) {
  std::deque<bool> latest;
  for (const auto end = clock_type::now() + std::chrono::seconds(30); clock_type::now() < end;) {
    latest.push_back(run() >= 0.2);
    if (latest.size() > 9) latest.pop_front();
    if (std::ranges::count(latest, true) >= 5) return true;
  }
  return false;
}

// Cores that a runtime uses by itself: affinity and quota count.
int usable_cores() {
  troupe::runtime rt;
  int cores = 0;
  for (const auto& e : rt.executors())
    if (e.kind == troupe::device_kind::cpu) cores += e.slots;
  return cores;
}

TEST(small_steps, are_shared_by_two_threads_though_none_is_worth_a_wake_up) {
  if (usable_cores() < 2) GTEST_SKIP() << "one core";
  troupe::runtime rt({.threads = 2});
  EXPECT_TRUE(is_mostly_shared([&] { return shared_of_steps(rt, 5'000, 0.8); })) << "one thread ran nearly all";
}

}  // namespace
