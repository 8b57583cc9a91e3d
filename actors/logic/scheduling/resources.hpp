// What this file is for: named quantities: what exists, what is held, what a task asks for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <troupe/detail/task.hpp>
#include <troupe/options.hpp>

#include "actors/logic/scheduling/reservation.hpp"

namespace troupe::logic {

/// Exact accounting of named amounts, and who may have them while somebody waits for more; see reservation. Pure; owned by
/// placement.
class resources {
 public:
  using time = reservation::time;

  /// `guess`: of who may pass although nobody knows how long it will take.
  explicit resources(const std::vector<resource>& configured, time guess = reservation::unknown);

  /// Throws `error(no_resource)` if the request could never be met. "cpu" and "gpu" are not counted here.
  void check(const std::vector<resource>& request) const;
  /// Whether so much exists; of names that are counted.
  bool exists(const std::vector<resource>& request) const;
  /// Whether both requests together ask for more of some name than there is.
  bool exceeds(const std::vector<resource>& a, const std::vector<resource>& b) const;
  /// What part of the scarcest of what is asked would be left; below 0: it cannot be had now.
  double left_after(const std::vector<resource>& request) const;
  /// Takes all or nothing. `who` is predicted to have it for so long.
  bool take(const std::vector<resource>& request, const void* who = nullptr, time now = 0,
            time lasts = reservation::unknown);
  void give(const std::vector<resource>& request, const void* who = nullptr);
  const std::vector<resource>& free() const { return free_; }

  // Requests are looked at in rounds, in their order.
  void begin_round();
  /// False: it is free, but kept for somebody who will have begun before this one would end.
  bool lets_pass(const std::vector<resource>& request, time now, time lasts) const;
  /// When so much will be free, as predicted.
  time begins(const std::vector<resource>& request, time now) const;
  /// Who comes later in this round gets only what `who` does not need from `at` on. Nothing is kept where some of it is
  /// kept for another one already, who is earlier in the order: his turn has to come first.
  void keep(const std::vector<resource>& request, const void* who, time at, time now);
  /// When to look again, if somebody could not pass; at least `step` from now.
  time look_at(const std::vector<resource>& request, time now, time step) const;

 private:
  template <class F>
  void each_asked(const std::vector<resource>& request, F&& f) const;

  std::vector<resource> total_, free_;
  std::vector<reservation> lines_;  // of each name
};

/// Whether it asks for more than slots and devices, which are counted elsewhere.
bool asks_for_quantities(const std::vector<resource>& request);
/// How many slots of a core group the request says; the call's word comes before the kernel's.
int slots_of(const std::vector<resource>& request);
/// The same of a task.
inline int slots_needed(const detail::task_record& t) { return t.extra ? slots_of(t.extra->options.resources) : 1; }

}  // namespace troupe::logic
