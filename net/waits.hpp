// What this file is for: waiting for a time or for a descriptor without a thread for each: one thread for all.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace troupe::net {

/// A thread that waits for others. Any thread may call. The destructor ends the thread and forgets what it waited for;
/// it may run on that thread.
class waits {
 public:
  waits();
  /// Returns the one that the process has, while somebody keeps it.
  static std::shared_ptr<waits> shared();
  ~waits();
  waits(const waits&) = delete;
  waits& operator=(const waits&) = delete;

  /// Calls `f` on the thread once the time has come. `f` must not throw or block.
  void at(std::chrono::steady_clock::time_point, std::function<void()> f);
  /// The same once a read (or a write) of the descriptor would not block, or it has an error or a hang-up; at once for
  /// a regular file. The descriptor must stay open until then. Throws error(io_failed) for what is no open descriptor.
  ///
  /// A copy of the descriptor is kept until then, or until what is returned goes, soon after which it is closed; `f` is
  /// not called any more then.
  class watch;
  std::shared_ptr<watch> when(int descriptor, bool writable, std::function<void()> f);

 private:
  struct state;
  const std::shared_ptr<state> state_;
};

}  // namespace troupe::net
