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

/// Exact accounting of named amounts, and of the requests that may have them while another waits for more; see
/// reservation. Pure; owned by placement.
class resources {
 public:
  using time = reservation::time;

  /// `guess`: the duration assumed for requests of unknown duration that may pass.
  explicit resources(const std::vector<resource>& configured, time guess = reservation::unknown);

  /// Throws `error(no_resource)` if the request could never be met. "cpu" and "gpu" are not counted here.
  void check(const std::vector<resource>& request) const;
  /// True if so much exists, of all names that are counted.
  bool exists(const std::vector<resource>& request) const;
  /// True if both requests together ask for more of some name of `b` than exists.
  bool exceeds(const std::vector<resource>& a, const std::vector<resource>& b) const;
  /// Returns the part of the scarcest quantity asked for that would be left; below 0: the request cannot be met now.
  double left_after(const std::vector<resource>& request) const;
  /// Takes all or nothing. `who` is predicted to hold it for so long.
  bool take(const std::vector<resource>& request, const void* who = nullptr, time now = 0,
            time lasts = reservation::unknown);
  void give(const std::vector<resource>& request, const void* who = nullptr);
  const std::vector<resource>& free() const { return free_; }

  /// Begins a round; requests are looked at in rounds, in their order.
  void begin_round();
  /// False if it is free, but kept for a request that will begin before this one would end.
  bool lets_pass(const std::vector<resource>& request, time now, time lasts) const;
  /// Returns the predicted time when so much will be free.
  time begins(const std::vector<resource>& request, time now) const;
  /// Keeps the request for `who`: later ones in this round get only what `who` does not need from `at` on. Nothing is
  /// kept if some of the names are kept already: that request is earlier in the order, and has to come first.
  void keep(const std::vector<resource>& request, const void* who, time at, time now);
  /// Returns the time to look again if a request could not pass; at least `step` from now.
  time look_at(const std::vector<resource>& request, time now, time step) const;

 private:
  template <class F>
  void each_asked(const std::vector<resource>& request, F&& f) const;

  std::vector<resource> total_, free_;
  std::vector<reservation> lines_;  // one for each name
};

/// True if the request asks for more than slots and devices, which are counted elsewhere.
bool asks_for_quantities(const std::vector<resource>& request);
/// Returns the number of core group slots that the request asks for; the call's request overrides the kernel's.
int slots_of(const std::vector<resource>& request);
/// Returns the same of a task.
inline int slots_needed(const detail::task_record& t) { return t.extra ? slots_of(t.extra->options.resources) : 1; }

}  // namespace troupe::logic
