// What this file is for: one scarce quantity: who holds how much of it until when, what is kept for who is next, who may pass.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by who gives the quantity out. Requests are looked at in rounds, in their order. The first of a round that
// wants more than is free has a reservation: it begins when holders are predicted to have given enough back. Whoever comes
// later in the order passes if it is predicted to have ended by then, or if it fits beside (backfill, as EASY does with
// jobs of a cluster: Lifka 1995).
//
// Predictions fail, and two things follow. A holder that is over its time is expected to take as long again as it has
// taken; so a reservation that waits for a body which waits for somebody behind the reservation lets that one pass in
// time, and is no deadlock. And each one that did not end in time, where those that passed are all that is waited for, doubles
// what those after it must be shorter than; so a reservation is not put off for ever by what nobody could predict. Rejected: a reservation that nobody
// passes, which idles what it keeps and deadlocks with nested requests; a reservation that lapses after a fixed time, which
// tasks longer than that starve.
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
  /// In any unit; all of one object are in the same.
  using time = std::uint64_t;
  /// As the time that a request will take: nobody knows.
  static constexpr time unknown = 0;
  static constexpr time never = ~time{0};

  /// Where one of unknown time may try to pass, it is taken for `guess`, one such at a time; `unknown`: none may.
  explicit reservation(time guess = unknown) : guess_(guess) {}
  reservation(reservation&&) = default;  // its books name places in each other
  reservation& operator=(reservation&&) = default;

  // ---- holders ------------------------------------------------------------------------------------------------------
  /// `who` has so much from now on, predicted to take so long; null: nobody knows who, and nothing is expected back.
  void hold(const void* who, double amount, time now, time lasts);
  void end(const void* who);
  struct opening {
    time at = never;
    bool sure = false;  ///< all it relies on are within their predicted times
  };
  /// When holders will have given so much back.
  opening when_back(double lacks, time now) const;

  // ---- a round ------------------------------------------------------------------------------------------------------
  void begin_round() { kept_ = false; }
  bool is_kept() const { return kept_; }
  /// From `at` on `who` is to have `asks`, of which `free` are there; the first of a round that has to wait.
  void keep(const void* who, double asks, double free, time at, time now);
  /// Whether so much that is free may be taken for so long.
  bool lets_pass(double amount, time now, time lasts) const {
    return !kept_ || amount <= beside_ || ends_in_time(now, lasts);
  }
  /// When to look again although nobody has ended: to be asked if somebody could not pass. At least `step` from now.
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
  const void* next_ = nullptr;  // for whom it was kept last
  time at_ = 0;
  double beside_ = 0;  // free then beside what is kept, and now
  int late_ = 0;       // that passed this one and put it off
  int guessed_ = 0;    // that hold it now
};

}  // namespace troupe::logic
