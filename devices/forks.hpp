// What this file is for: whether this process is the one that something was made in, or a child forked from it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A child has the memory of its parent and none of its threads but the one that forked: a wait for another one, or for
// a lock that one held, never ends. Any thread may ask.
#pragma once

#include <atomic>

namespace troupe::devices {

/// How often this process, or one before it, was forked on the way here. A number and not the process', which the
/// system has to be asked for.
extern std::atomic<unsigned> forks;

/// Remembers in which process it was made.
class birthplace {
 public:
  bool is_here() const noexcept { return made_ == forks.load(std::memory_order_relaxed); }

 private:
  unsigned made_ = forks.load(std::memory_order_relaxed);
};

}  // namespace troupe::devices
