// What this file is for: whether threads that have nothing to do are to take part in work on tiny tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A task whose body takes some nanoseconds costs some hundred around it. Where its record and its data were in the
// caches of the thread that has it, another thread pays more to fetch them than it saves, and slows down the first.
// Where they were not, as thousands of tasks wait or other threads have submitted them, several threads are several
// times as fast. Nothing that is known in advance tells one from the other, so both are tried: in turn, seldom, and for
// as long as it takes to see how many tasks end meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::logic {

/// Finds out whether more tiny tasks end in the same time if threads share them. Pure; times are ticks.
class sharing_trial {
 public:
  /// Tasks that end between two comparisons.
  static constexpr std::uint64_t window = 2'048;

  /// `tiny`: mean time of the bodies from which on it makes no difference.
  explicit sharing_trial(std::uint64_t tiny) : tiny_(tiny) {}

  /// What has happened until now.
  struct moment {
    std::uint64_t now = 0;
    std::uint64_t tasks = 0;   ///< that have ended
    std::uint64_t bodies = 0;  ///< time in bodies, of all threads together
    std::uint64_t pauses = 0;  ///< times that all threads were asleep: time without work says nothing
  };
  /// Compares, where enough tasks have ended since it last did. Returns whether tiny tasks are to be shared from now
  /// on.
  bool note(const moment& m) {
    const std::uint64_t ended = m.tasks - since_.tasks;
    if (ended < window) {
      if (tries_ && static_cast<double>(m.now - since_.now) > cost_ * static_cast<double>(window)) {
        since_ = m;  // it is slower, whatever comes; to see by how much would take as long again
        end_trial(false);
      }
      return shares_;
    }
    const double cost = static_cast<double>(m.now - since_.now) / static_cast<double>(ended);
    are_tiny_ = m.bodies - since_.bodies < tiny_ * ended;
    const bool says_something = are_tiny_ && since_.now != 0 && m.pauses == since_.pauses;
    since_ = m;
    if (says_something) {
      tries_ ? compare(cost) : go_on(cost);
    } else {  // the next window is compared with nothing from before this one
      cost_ = 0;
      if (tries_) end_trial(false);
    }
    if (!are_tiny_) shares_ = false;
    return shares_;
  }
  /// True if the tasks that ended last were tiny.
  bool are_tiny() const { return are_tiny_; }

 private:
  // Windows between two trials: the first, and most. How much better the other way must be, and how much worse the
  // present one must have become for another trial to come soon.
  static constexpr int wait_min = 4, wait_max = 256;
  static constexpr double better = 0.85, worse = 1.3;
  static constexpr double weight = 0.25;  // of the latest window in the mean

  void go_on(double cost) {
    if (shares_ != found_) {  // the bodies were not tiny until now
      shares_ = found_;
      return;
    }
    jumps_ = cost_ != 0 && cost > worse * cost_ ? jumps_ + 1 : 0;
    if (jumps_ == 2) wait_ = left_ = wait_min;  // once may be chance
    cost_ = cost_ == 0 ? cost : cost_ + weight * (cost - cost_);
    if (--left_ > 0) return;
    tries_ = true;
    shares_ = !found_;
  }
  void compare(double cost) {
    const bool pays = cost < better * cost_;
    if (pays) {
      found_ = shares_;
      cost_ = cost;
    }
    end_trial(pays);
  }
  void end_trial(bool pays) {
    tries_ = false;
    shares_ = found_;
    wait_ = left_ = pays ? wait_min : std::min(2 * wait_, wait_max);
  }

  std::uint64_t tiny_;
  moment since_;
  double cost_ = 0;                 // of a task, in the mean of the windows since the last trial; 0: there was none
  int left_ = 2, wait_ = wait_min;  // windows until the next trial; between two
  int jumps_ = 0;                   // windows in a row in which tasks cost far more
  bool found_ = false, shares_ = false, tries_ = false, are_tiny_ = false;
};

}  // namespace troupe::logic
