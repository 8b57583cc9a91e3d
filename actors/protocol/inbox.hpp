// What this file is for: the high-rate half of placement's mailbox: submissions, completions, dropped handles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// From | message | may repeat | may be lost
// client, task | submitted: order this task | no | no
// executor     | done: this task's body has returned, thrown or was never run | no | no
// executor     | returned: could not run this task, another one may | no | no
// executor     | ready: this task's last predecessor has ended; it is to be placed | no | no
// host view    | done: the host's access has ended | no | no
// last handle  | dropped: free this array once no task uses it | no | no
#pragma once

#include <cstdint>

#include "actors/protocol/laned_mailbox.hpp"

namespace troupe::detail {

struct array_core;
struct task_record;

/// An item of an inbox: a pointer and its verb in the lowest bits.
class mail {
 public:
  enum verb : std::uintptr_t { submitted = 0, done = 1, dropped = 2, returned = 3, ready = 4 };
  mail(task_record* t, verb v) : bits_(reinterpret_cast<std::uintptr_t>(t) | v) {}
  explicit mail(array_core* a) : bits_(reinterpret_cast<std::uintptr_t>(a) | dropped) {}
  verb what() const { return static_cast<verb>(bits_ & verbs); }
  task_record* task() const { return reinterpret_cast<task_record*>(bits_ & ~verbs); }
  array_core* array() const { return reinterpret_cast<array_core*>(bits_ & ~verbs); }

 private:
  static constexpr std::uintptr_t verbs = 7;  // records and arrays lie at multiples of 64

  std::uintptr_t bits_;
};

using inbox = laned_mailbox<mail>;

}  // namespace troupe::detail
