// What this file is for: a lock for sections of a few instructions, where a mutex would cost more than the work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <thread>

namespace troupe::detail {

/// Meets BasicLockable. Spins briefly, then yields, so that a holder that lost its core can go on.
class spin_lock {
 public:
  void lock() noexcept {
    int tries = 0;
    while (held_.exchange(true, std::memory_order_acquire)) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++tries < 64)
          pause();
        else
          std::this_thread::yield();
      }
    }
  }
  bool try_lock() noexcept {
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace troupe::detail
