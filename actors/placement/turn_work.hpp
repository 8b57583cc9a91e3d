// What this file is for: tasks that a turn has yet to deal with before it is left.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

namespace troupe::detail {

struct task_record;

/// Two lists that are empty between turns, and keep their memory: tasks that are to retire, and tasks that were made
/// while another one was ordered. With placement's turn only.
class turn_work {
 public:
  /// Has a task retire in this turn: it has ended, or will never run.
  void to_retire(task_record& t) { retiring_.push_back(&t); }
  bool any_to_retire() const { return !retiring_.empty(); }
  /// Calls `retire` with each task that is to retire, also with those that are added meanwhile, and forgets them. What
  /// `retire` throws passes through; nothing is forgotten then.
  template <class F>
  void retire_all(F&& retire) {
    for (std::size_t i = 0; i < retiring_.size(); ++i) retire(*retiring_[i]);
    retiring_.clear();
  }

  /// The list to which ordering a task adds those that it makes; see logic::dependencies::order.
  std::vector<task_record*>& made() { return made_; }
  /// Calls `f` with each task that was made, and forgets them. None is made meanwhile.
  template <class F>
  void each_made(F&& f) {
    for (task_record* t : made_) f(*t);
    made_.clear();
  }

 private:
  std::vector<task_record*> made_, retiring_;
};

}  // namespace troupe::detail
