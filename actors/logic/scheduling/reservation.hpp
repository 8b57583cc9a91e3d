// What this file is for: a scarce quantity: its holders, what is kept for the next request, and which may pass.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by the part that gives the quantity out. Requests are looked at in rounds, in their order. The first of a
// round that wants more than is free has a reservation: it begins when holders are predicted to have given enough back.
// A later request passes if it is predicted to have ended by then, or if it fits beside (backfill, as EASY does with
// jobs of a cluster: Lifka 1995).
//
// Predictions fail, and two rules follow. A holder that is over its time is expected to take as long again as it has
// taken; so if a reservation waits for a body which waits for a task behind the reservation, that task passes in time,
// and there is no deadlock. And where a reservation waits only for tasks that have passed it, each of them that did not
// end in time halves the time that later ones may take; so a reservation is not put off for ever by tasks that could
// not be predicted. Rejected: a reservation that no task passes, which idles what it keeps and deadlocks with nested
// requests; a reservation that lapses after a fixed time, which tasks longer than that starve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::logic {

class reservation {
 public:
  /// Time in any unit; one object uses the same unit throughout.
  using time = std::uint64_t;
  /// Duration of a request that is not known.
  static constexpr time unknown = 0;
  static constexpr time never = ~time{0};

  /// `guess`: the duration assumed for a request of unknown duration that tries to pass, one such at a time; `unknown`:
  /// none may.
  explicit reservation(time guess = unknown) : guess_(guess) {}
  reservation(reservation&&) = default;  // iterators in of_ stay valid
  reservation& operator=(reservation&&) = default;

  // ---- holders ------------------------------------------------------------------------------------------------------
  /// Notes that `who` has so much from now on, predicted for so long; null: an unknown holder, from which nothing is
  /// expected back.
  void hold(const void* who, double amount, time now, time lasts);
  void end(const void* who);
  struct opening {
    time at = never;
    bool sure = false;  ///< all holders that it relies on are within their predicted times
  };
  /// Returns when holders will have given so much back.
  opening when_back(double lacks, time now) const;

  // ---- a round ------------------------------------------------------------------------------------------------------
  void begin_round() { kept_ = false; }
  bool is_kept() const { return kept_; }
  /// Reserves `asks` for `who` from `at` on, of which `free` are there; `who` is the first of a round that has to wait.
  void keep(const void* who, double asks, double free, time at, time now);
  /// True if so much of what is free may be taken for so long.
  bool lets_pass(double amount, time now, time lasts) const {
    return !kept_ || amount <= beside_ || ends_in_time(now, lasts);
  }
  /// Returns the time to look again although no holder has ended, if a request could not pass. At least `step` from
  /// now.
  time look_at(time now, time step) const;

 private:
  struct holder {
    const void* who;
    double amount;
    time since;
    bool passed, late, guessed;
  };
  using holders = std::multimap<time, holder>;  // by predicted end

  bool ends_in_time(time now, time lasts) const;
  static time end_of(const holders::value_type& h, time now) {
    return h.first > now ? h.first : now + (now - h.second.since);
  }
  double back_by(time at, time now) const;
  bool is_put_off(double asks, double free) const;

  time guess_;
  holders holders_;
  std::unordered_map<const void*, holders::iterator> of_;
  bool kept_ = false;
  const void* next_ = nullptr;  // the last one it was kept for
  time at_ = 0;
  double beside_ = 0;  // free both now and beside what is kept then
  int late_ = 0;       // how many passed this one and put it off
  int guessed_ = 0;    // how many of them hold some now
};

}  // namespace troupe::logic
