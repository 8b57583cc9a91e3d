// What this file is for: what is to be done when a time has come: deadlines of tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "actors/protocol/clock.hpp"

namespace troupe::detail {

/// Actions to do at a time. Thread-safe. It has no thread: the owner calls `look` when the alarm rings.
class deadlines {
 public:
  using action = std::function<void()>;
  using entry = std::pair<std::uint64_t, std::uint64_t>;  // time in ticks, and a number

  explicit deadlines(runtime_clock c) : clock_(std::move(c)) {}
  /// Sets the function that has `look` called after a time.
  void use_alarm(std::function<void(std::chrono::milliseconds)>);

  entry add(std::chrono::milliseconds after, action);
  /// Removes an action that is not to be done any more, if it has not begun.
  void drop(const entry&);
  /// Does the actions that are due, on this thread.
  void look();
  /// Drops all actions; none is done any more.
  void close();

 private:
  void set_alarm();  // with the lock

  const runtime_clock clock_;
  std::mutex lock_;
  std::function<void(std::chrono::milliseconds)> alarm_;
  std::map<entry, action> all_;
  std::uint64_t last_ = 0, rings_ = 0;  // rings_: the next alarm that was asked for, in ticks; 0: none
  bool closed_ = false;
};

}  // namespace troupe::detail
