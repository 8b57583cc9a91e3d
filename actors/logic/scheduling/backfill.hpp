// What this file is for: which task may run with a slot that is kept for a body that needs several.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The slots of a core group are given out without anybody who counts the bodies that have one: most tasks take microseconds.
// Only where somebody is in line for slots, a look is taken at the bodies that run; from then on it is a reservation like
// that of names and devices.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "actors/logic/scheduling/reservation.hpp"

namespace troupe::logic {

/// Pure; owned by a core group, under a lock of its own.
class backfill {
 public:
  /// In any unit; all of one object are in the same.
  using time = reservation::time;

  /// A body that runs: its slots, when it has begun, and how long it is predicted to take; 0: nobody knows.
  struct holding {
    const void* who = nullptr;
    int slots = 1;
    time since = 0, lasts = reservation::unknown;
  };
  /// The first in line, and the number of slots that nobody has.
  struct claim {
    const void* who = nullptr;
    int slots = 1, free = 0;
  };

  /// `guess`: of who may pass although nobody knows how long it will take.
  explicit backfill(time guess) : line_(guess) {}

  /// Takes in which bodies run and which claim is first, before anybody is let pass. Of one `who` one body runs at a time.
  void look(std::span<const holding> running, const claim& first, time now);
  /// Whether a task that takes so long may have a free slot.
  bool lets_pass(time now, time lasts) const { return line_.lets_pass(1, now, lasts); }
  /// `who` runs such a task from now on, and is not looked at among those that run until it has ended.
  void passes(const void* who, time now, time lasts);
  void ended(const void* who);
  /// When to look again where nobody could pass; at least `step` from now.
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
