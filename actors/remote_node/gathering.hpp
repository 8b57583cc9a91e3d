// What this file is for: what is queued for a node waits a moment, so that more of it goes at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <utility>

namespace troupe::detail {

/// At most one call is due at a time: whatever is queued until it comes is sent with it.
///
/// A part of a node's actor, under the actor's lock.
class gathering {
 public:
  using function = std::function<void()>;

  /// `soon` runs what it is given a moment later, on another thread or later on this one: it must not call at once.
  explicit gathering(std::function<void(function)> soon) : soon_(std::move(soon)) {}

  /// Has `send` called in a moment, unless a call is due. It calls `begin` first, with the lock.
  void ask(function send) {
    if (std::exchange(is_due_, true)) return;
    soon_(std::move(send));
  }
  /// Notes that the call has come: what is queued from now on needs another one.
  void begin() { is_due_ = false; }

 private:
  const std::function<void(function)> soon_;
  bool is_due_ = false;
};

}  // namespace troupe::detail
