// What this file is for: a thread that ends the process, with all that can be said, when nothing moves for too long.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace mixed {

/// Looks at a counter, in steady time. If it stands still for as long as `patience`, says so on stderr: the headline,
/// what `describe` adds, and the threads' stacks if gdb is there; then what `ask` says, which may itself hang; then
/// aborts.
class watchdog {
 public:
  watchdog(std::chrono::seconds patience, const std::atomic<std::uint64_t>& steps, std::string headline,
           std::function<void()> describe, std::function<void()> ask);
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

 private:
  void watch();
  [[noreturn]] void bark();

  const std::chrono::seconds patience_;
  const std::atomic<std::uint64_t>& steps_;
  const std::string headline_;
  const std::function<void()> describe_, ask_;
  std::mutex lock_{};
  std::condition_variable changed_{};
  bool over_ = false;
  std::thread thread_{};
};

}  // namespace mixed
