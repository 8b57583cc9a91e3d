// What this file is for: when threads that submit are to order their tasks themselves, and when no more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure. Several threads that submit at the same time wait for one turn: side turns (side_turns.hpp) are worth trying.
// Side turns are not worth it if many tasks need the turn all the same, as each turn ends all side turns for a while:
// then they are tried again only after more mail, twice as much each time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace troupe::detail {

class side_policy {
 public:
  /// Mail that is fetched from several lanes of the mailbox, with little other mail between, before side turns begin.
  static constexpr std::uint64_t begin_after = 2'048;
  /// Turns with mail after which the tasks ordered aside are counted; so many for each turn pay for it.
  static constexpr std::uint64_t turns_counted = 64, worth_a_turn = 16;

  /// Notes that so much mail was fetched, from so many lanes; mail that is no submission counts, too. True: side turns
  /// are to begin, if there are none.
  bool is_to_begin(std::size_t tasks, std::size_t lanes) {
    if (tasks == 0) return false;
    fetched_ = lanes > 1 && tasks >= 2 * lanes ? fetched_ + tasks : fetched_ / 2;
    if (fetched_ < begin_after * patience_) return false;
    fetched_ = turns_ = 0;
    return true;
  }
  /// Notes a turn with mail; `aside`: tasks that have ever been ordered in side turns. True: there are to be no more.
  bool is_to_stop(std::uint64_t aside) {
    if (turns_++ == 0) aside_ = aside;
    if (turns_ < turns_counted) return false;
    turns_ = 0;
    if (insists_ || aside - aside_ >= turns_counted * worth_a_turn) {
      patience_ = 1;
      return false;
    }
    patience_ = std::min(patience_ * 2, patience_max);
    return true;
  }
  /// Never stops from now on.
  void insist() { insists_ = true; }

 private:
  static constexpr std::uint64_t patience_max = 1'024;

  std::uint64_t fetched_ = 0, turns_ = 0, aside_ = 0, patience_ = 1;
  bool insists_ = false;
};

}  // namespace troupe::detail
