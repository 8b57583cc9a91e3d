// What this file is for: whether the calling thread destroys what a task has captured or returned.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/protocol/late_wakes.hpp"

namespace troupe::detail {

/// Marks the calling thread while it destroys a caller's objects in the name of a task. Their destructors may submit
/// tasks, and are never held back then: the thread may be the only one that runs tasks, or hold the turn. They may wait
/// for threads, of another runtime as well, so nobody's wake-up waits for the end of the turn meanwhile.
class destruction {
 public:
  destruction() noexcept { ++depth; }
  destruction(const destruction&) = delete;
  destruction& operator=(const destruction&) = delete;
  ~destruction() { --depth; }
  /// True if the calling thread is marked.
  static bool is_here() noexcept { return depth != 0; }

 private:
  static inline thread_local int depth = 0;
  late_wakes::pause pause_;
};

}  // namespace troupe::detail
