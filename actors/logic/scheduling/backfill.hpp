// What this file is for: which task may run with a slot that is kept for a body that needs several.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Slots of a core group are given out without counting the bodies that hold one: most tasks take microseconds. Only
// where a task is in line for slots, the running bodies are looked at; from then on it is a reservation like that of
// names and devices.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "actors/logic/scheduling/reservation.hpp"

namespace troupe::logic {

/// Pure; owned by a core group, under a lock of its own.
class backfill {
 public:
  /// Time in any unit; one object uses the same unit throughout.
  using time = reservation::time;

  /// A running body: its slots, when it began, and its predicted duration; 0: unknown.
  struct holding {
    const void* who = nullptr;
    int slots = 1;
    time since = 0, lasts = reservation::unknown;
  };
  /// The first in line, and the number of slots that are free.
  struct request {
    const void* who = nullptr;
    int slots = 1, free = 0;
  };

  /// `guess`: the duration assumed for tasks of unknown duration that may pass.
  explicit backfill(time guess) : line_(guess) {}

  /// Takes in which bodies run and which request is first, before a task is let pass. One `who` runs one body at once.
  void look(std::span<const holding> running, const request& first, time now);
  /// True if a task that takes so long may have a free slot.
  bool lets_pass(time now, time lasts) const { return line_.lets_pass(1, now, lasts); }
  /// Notes that `who` runs a task that passed, from now on; look() leaves it alone until it has ended.
  void passes(const void* who, time now, time lasts);
  void ended(const void* who);
  /// Returns the time to look again where no task could pass; at least `step` from now.
  time look_at(time now, time step) const { return line_.look_at(now, step); }

 private:
  struct known {
    time since = reservation::never;
    bool passes = false;
    unsigned seen = 0;
  };

  reservation line_;
  std::unordered_map<const void*, known> known_;
  unsigned looks_ = 0;
};

}  // namespace troupe::logic
