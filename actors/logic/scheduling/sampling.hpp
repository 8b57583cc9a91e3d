// What this file is for: which of many tasks are looked at where looking at all would cost too much.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe::logic {

/// Selects one in eight, in no pattern: tasks of one kind may be every second one, or every eighth, so their numbers
/// will not do. Pure; the sequence is always the same (a linear congruence with Knuth's constants, of which the highest
/// bits are used).
class sampling {
 public:
  /// Selects all of the next tasks, so many: what is known of them has proved wrong.
  void all_of_next(int n) { all_ = n; }
  bool next() {
    if (all_ != 0) {
      --all_;
      return true;
    }
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 61 == 0;
  }

 private:
  std::uint64_t state_ = 0;
  int all_ = 0;
};

}  // namespace troupe::logic
