// What this file is for: threads that look for work also look for what comes from other nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "net/transport.hpp"

namespace troupe::detail {

/// Polls the network on behalf of a core group's threads. A thread that polls handles what has come, and goes on with the
/// task that this made ready; else the network's own thread, which sleeps, and then the group's would have to be woken.
/// Any thread; each has a flag of its own that says whether it has polled since it last did something else.
class outside {
 public:
  /// Bodies that are predicted to take longer are no moment to look away for.
  static constexpr float moment_ns = 50'000.0f;

  /// Once.
  void use(std::shared_ptr<net::control_poller> p) {
    kept_ = std::move(p);
    poller_.store(kept_.get(), std::memory_order_release);
  }
  /// Handles what has come; true if there was something.
  bool poll(bool& has_polled) {
    net::control_poller* const p = poller_.load(std::memory_order_acquire);
    if (!p) return false;
    if (!std::exchange(has_polled, true)) pollers_.fetch_add(1, std::memory_order_relaxed);
    return p->poll();
  }
  /// Notes that the thread sleeps now, or begins what takes longer than a moment. The network's own thread goes on when
  /// the last one rests.
  void rest(bool& has_polled) {
    if (!std::exchange(has_polled, false)) return;
    if (pollers_.fetch_sub(1, std::memory_order_relaxed) == 1) poller_.load(std::memory_order_acquire)->rest();
  }

 private:
  std::shared_ptr<net::control_poller> kept_;
  std::atomic<net::control_poller*> poller_{nullptr};
  std::atomic<int> pollers_{0};  // threads that have polled and do not rest
};

}  // namespace troupe::detail
