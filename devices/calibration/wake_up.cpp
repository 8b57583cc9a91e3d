// What this file is for: measuring what it takes to wake a thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>

#include "devices/threads.hpp"

namespace troupe::devices {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t trials = 5;
// Time that the sleeper gets between its last word and the call: it has to be off its core by then.
constexpr auto time_to_sleep = std::chrono::microseconds(30);
constexpr std::chrono::nanoseconds usual = std::chrono::microseconds(30);

std::chrono::nanoseconds measured() {
  std::mutex lock;
  std::condition_variable call;
  std::size_t calls = 0;               // with the lock
  std::atomic<std::size_t> sleeps{0};  // so many times, or it is about to
  std::array<clock::time_point, trials> called, came;
  std::thread sleeper([&] {
    std::unique_lock hold(lock);
    for (std::size_t i = 0; i < trials; ++i) {
      sleeps.store(i + 1, std::memory_order_relaxed);
      call.wait(hold, [&] { return calls > i; });
      came[i] = clock::now();
    }
  });
  for (std::size_t i = 0; i < trials; ++i) {
    while (sleeps.load(std::memory_order_relaxed) <= i) std::this_thread::yield();
    { const std::lock_guard it_waits(lock); }
    for (const auto until = clock::now() + time_to_sleep; clock::now() < until;) std::this_thread::yield();
    {
      const std::lock_guard hold(lock);
      ++calls;
    }
    called[i] = clock::now();
    call.notify_one();
  }
  sleeper.join();
  std::array<std::chrono::nanoseconds, trials> took;
  for (std::size_t i = 0; i < trials; ++i) took[i] = std::max(came[i] - called[i], clock::duration(1));
  std::ranges::sort(took);
  return took[trials / 2];
}

}  // namespace

std::chrono::nanoseconds wake_up_time() noexcept {
  static const std::chrono::nanoseconds once = [] {
    try {
      return measured();
    } catch (const std::exception&) {  // no thread, or no lock
      return usual;
    }
  }();
  return once;
}

}  // namespace troupe::devices
