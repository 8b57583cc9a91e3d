// What this file is for: ending a thread that waits in poll().
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace troupe::net {

/// Once called it stays so.
class wake_up {
 public:
  wake_up();
  wake_up(const wake_up&) = delete;
  wake_up& operator=(const wake_up&) = delete;
  ~wake_up();

  void call() noexcept;
  /// Waits until the descriptor can be read from, or it is called, or the time is over; a descriptor of -1 cannot be read
  /// from. True: called.
  bool wait(int descriptor, std::chrono::nanoseconds) const;

 private:
  int event_;
};

}  // namespace troupe::net
