// What this file is for: the mail that waits for a turn, and when a turn should leave it for the next one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/protocol/inbox.hpp"

namespace troupe::detail {

/// An inbox, and what has been taken out of it in this turn. Posting and counting: any thread; the rest with the turn.
class mail_queue {
 public:
  /// Mail below this number may wait for an executor's thread that has something to do.
  static constexpr std::size_t gather = 64;

  /// `look_ticks`: interval at which a thread that has a next task looks for mail. `late_ticks`: mail is fetched at
  /// least that often while such a thread comes by.
  mail_queue(std::uint64_t look_ticks, std::uint64_t late_ticks) : look_ticks_(look_ticks), late_ticks_(late_ticks) {}

  std::size_t post(mail m) { return inbox_.post(m); }
  /// As above, and increments `counter`, which is changed by this function only. Returns how many items wait now.
  std::size_t post(mail m, std::atomic<std::uint64_t>& counter) { return inbox_.post(m, counter); }
  std::size_t post(std::span<const mail> many, std::atomic<std::uint64_t>& counter) {
    return inbox_.post(many, counter);
  }
  std::size_t count() const { return inbox_.count(); }
  bool maybe() const { return inbox_.maybe(); }

  /// True if a thread with a next task should leave the mail for now: fetching it piece by piece costs both sides. The
  /// inbox' counter is on a cache line that submitters write: it is not looked at with each tiny task.
  bool can_wait(std::uint64_t now) {
    if (now - last_look_ < look_ticks_) return true;
    last_look_ = now;
    return inbox_.roughly() < gather && now - last_fetch_ < late_ticks_;
  }
  /// Moves what has been posted to `work`, which is empty.
  void fetch(std::uint64_t now) {
    inbox_.drain(work_);
    last_fetch_ = now;
  }
  std::vector<mail>& work() { return work_; }

 private:
  inbox inbox_;
  std::vector<mail> work_;
  const std::uint64_t look_ticks_, late_ticks_;
  std::uint64_t last_fetch_ = 0, last_look_ = 0;  // ticks
};

}  // namespace troupe::detail
