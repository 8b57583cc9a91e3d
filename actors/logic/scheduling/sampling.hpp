// What this file is for: which of many tasks are looked at where looking at all would cost too much.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::logic {

/// Selects one in eight, in no pattern: tasks of one kind may be every second one, or every eighth, so their numbers
/// will not do. Pure; the sequence is always the same (a linear congruence with Knuth's constants, of which the highest
/// bits are used).
class sampling {
 public:
  /// Notes that tasks seem to have taken far longer than is known of them: the next ones are selected, all of them. That
  /// may have had another cause; where it is not confirmed, it takes twice as many notes the next time.
  void suspect() {
    if (++suspicions_ < needed_) return;
    suspicions_ = 0;
    needed_ = std::min(2 * needed_, needed_max);
    all_ = all_of_next;
  }
  /// Notes that one that was looked at did take far longer.
  void confirm() { needed_ = 1; }
  bool next() {
    if (all_ != 0) {
      --all_;
      return true;
    }
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 61 == 0;
  }

  /// As many as are selected in a row: more than it takes to replace a median.
  static constexpr int all_of_next = 16;

 private:
  static constexpr int needed_max = 256;

  std::uint64_t state_ = 0;
  int all_ = 0, suspicions_ = 0, needed_ = 1;
};

}  // namespace troupe::logic
