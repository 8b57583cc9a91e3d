// What this file is for: the mail that waits for a turn, and when a turn should leave it for the next one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
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

  /// Posts mail of an executor, or from inside a task.
  std::size_t post(mail m) { return inbox_.post(m); }
  void post(std::span<task_record* const> tasks, mail::verb v) {
    if (!tasks.empty()) inbox_.post(tasks.size(), [&](std::size_t i) { return mail(tasks[i], v); });
  }
  /// Posts submissions, at least one, and adds their number to `counter`. `inside`: by a thread of the runtime's own.
  /// Calls `note(task)` for each, with a lock of the inbox held: none of them can have been fetched. Returns how many
  /// items wait now.
  template <class Note>
  std::size_t submit(std::span<task_record* const> tasks, std::atomic<std::uint64_t>& counter, bool inside,
                     Note&& note) {
    const auto make = [&](std::size_t i) {
      note(*tasks[i]);
      return mail(tasks[i], mail::submitted);
    };
    return inbox_.post(tasks.size(), make, &counter, inside ? 0 : lane_of_thread());
  }
  /// Waits until all calls that are posting submissions have called `note` for all of these.
  void await_posting() { inbox_.await_posting(); }
  std::size_t count() const { return inbox_.count(); }
  bool maybe() const { return inbox_.maybe(); }

  /// True if a thread with a next task should leave the mail for now: fetching it piece by piece costs both sides. The
  /// inbox' counter is on a cache line that submitters write: it is not looked at with each tiny task.
  bool can_wait(std::uint64_t now) {
    if (now - last_look_ < look_ticks_) return true;
    last_look_ = now;
    return inbox_.roughly() < gather && now - last_fetch_ < late_ticks_;
  }
  /// Moves what has been posted to `work`, which is empty. Returns from how many lanes of the inbox. Fetches are
  /// numbered from 1.
  std::size_t fetch(std::uint64_t now) {
    last_fetch_ = now;
    begin_fetch();
    const std::size_t lanes = inbox_.drain(work_);
    fetched_ = fetches_.load(std::memory_order_relaxed);
    return lanes;
  }
  /// Counts as a fetch if there is no mail.
  void fetch_nothing() {
    begin_fetch();
    if (inbox_.count() == 0) fetched_ = fetches_.load(std::memory_order_relaxed);
  }
  /// Returns the number of the last fetch that took all that there was.
  std::uint64_t fetched() const { return fetched_; }
  /// Returns the number of the next fetch. For any thread inside of `note`: once `fetched` has come so far, that task
  /// has been taken.
  std::uint64_t next_fetch() const { return fetches_.load(std::memory_order_seq_cst) + 1; }
  std::vector<mail>& work() { return work_; }

 private:
  // Threads that submit from outside meet with each other as little as lanes allow. The first is on the lane of the
  // executors: where it is the only one, mail need not be put together from two lanes.
  static std::size_t lane_of_thread() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % inbox::lanes;
    return mine;
  }

  // A fetch is counted before it looks for mail: a thread that posts, and then reads an older number, is seen by it.
  void begin_fetch() { fetches_.store(fetches_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst); }

  inbox inbox_;
  std::vector<mail> work_;
  const std::uint64_t look_ticks_, late_ticks_;
  std::uint64_t last_fetch_ = 0, last_look_ = 0;       // ticks
  alignas(64) std::atomic<std::uint64_t> fetches_{0};  // that have begun
  alignas(64) std::uint64_t fetched_ = 0;
};

}  // namespace troupe::detail
