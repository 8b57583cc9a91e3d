// What this file is for: whether a stream should have one thread more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

namespace troupe::logic {

/// Weighs what a thread more costs against what it saves. It costs the time until it runs, which is measured: a
/// sleeping worker is woken for it, and items change cores. It saves the time for which what is ready would wait.
class hands {
 public:
  /// Notes the time from when a runner was asked for to when it ran.
  void note_start(double ns) { start_ns_ += (std::clamp(ns, least_ns, most_ns) - start_ns_) / 8; }
  /// `soonest_ns`: until one of those that run looks for what is next; `waiting_ns`: the work that is ready.
  bool wants_more(double soonest_ns, double waiting_ns) const { return soonest_ns + waiting_ns > worth * start_ns_; }
  double start_ns() const { return start_ns_; }
  /// Work of a strand that has never run.
  static constexpr double unknown_ns = 10'000;

 private:
  // A runner that starts in no time still moves items to another core's cache; one that starts late, because the
  // machine is busy, says little about the next.
  static constexpr double least_ns = 5'000, most_ns = 100'000, worth = 1.5;
  double start_ns_ = 20'000;
};

}  // namespace troupe::logic
