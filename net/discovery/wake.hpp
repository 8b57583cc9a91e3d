// What this file is for: ending a thread that waits in poll().
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <span>

namespace troupe::net {

/// Once called it stays so.
class wake_up {
 public:
  wake_up();
  wake_up(const wake_up&) = delete;
  wake_up& operator=(const wake_up&) = delete;
  ~wake_up();

  void call() noexcept;
  /// Waits until one of the descriptors, two at most, can be read from, or it is called, or the time is over. True:
  /// called.
  bool wait(std::span<const int> descriptors, std::chrono::nanoseconds) const;

 private:
  int event_;
};

}  // namespace troupe::net
