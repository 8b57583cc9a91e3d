// What this file is for: by which mark other threads see that a thread that looks for work does not run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A kernel may put a thread that is woken on the core of another one, if all cores are in use at that moment, and leave
// it there for milliseconds after another core has become idle: each of them would run alone. A thread that looks says
// so again and again; where it no longer does, it waits for its core, and the thread that has this core can see that.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::logic {

class look_mark {
 public:
  /// Notes that the thread looks for work now, or is woken to do so, on that core; -1: on one that is
  /// not known. Times are ticks.
  void set(std::uint64_t now, int core) {
    core_.store(core, std::memory_order_relaxed);
    at_.store(now, std::memory_order_release);
  }
  /// Notes that the thread runs and does not look any more.
  void clear() {
    if (at_.load(std::memory_order_relaxed) != 0) at_.store(0, std::memory_order_relaxed);
  }
  /// True if the thread has looked and has not run for `late` ticks, and maybe waits for the core `core`.
  bool is_stuck(std::uint64_t now, std::uint64_t late, int core) const {
    const std::uint64_t at = at_.load(std::memory_order_acquire);
    if (at == 0 || now <= at || now - at <= late) return false;
    const int where = core_.load(std::memory_order_relaxed);
    return where == core || where < 0;
  }
  /// True if the caller is to move the thread: at most once in `pause` ticks, and one caller only.
  bool begin_move(std::uint64_t now, std::uint64_t pause) {
    std::uint64_t last = moved_.load(std::memory_order_relaxed);
    return now - last > pause && moved_.compare_exchange_strong(last, now, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> at_{0}, moved_{0};
  std::atomic<int> core_{-1};
};

}  // namespace troupe::logic
