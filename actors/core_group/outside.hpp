// What this file is for: threads that look for work also look for what comes from other nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "net/transport.hpp"

namespace troupe::detail {

/// Polls the network on behalf of a core group's threads. A thread that polls handles what has come, and goes on with
/// the task that this made ready; else the network's own thread, which sleeps, and then the group's would have to be
/// woken. Where so much comes that tasks are there in batches, two threads do more than one: the network's own thread
/// keeps its part. Any thread; each has a visit of its own. Times are ticks.
class outside {
 public:
  /// Returns for how long a thread that polls looks away, where a wake-up takes so long. To call the network's own
  /// thread and to ask it for its part again takes several, in which nobody computes on a core that both share; whoever
  /// waits for an answer of this node waits for so long, or for two leases (net/tcp/loop.cpp) if a body takes longer
  /// than it was thought to. Where no core is idle the network's own thread would have to share one, before the body
  /// and after it.
  static constexpr float moment_ns(float wake_up_ns, bool has_idle_core) {
    return std::clamp(16 * wake_up_ns, has_idle_core ? 50'000.0f : 250'000.0f, 1'000'000.0f);
  }

  /// The state of one thread's polling.
  struct visit {
    bool polls = false;            // since it last slept or did something longer
    std::uint64_t not_before = 0;  // it asks for the part again from then on
    std::uint64_t turns = 0;       // of the network's own thread, when this one last had nothing to do
    float away_ns = 0;             // predicted time of the bodies since it last looked
  };

  /// `patience`: a thread asks for the part when it has had nothing to do for so long, or if something has come since
  /// it last had nothing to do: that was probably for it. `pause`: after batches it does not for so long.
  outside(std::uint64_t patience, std::uint64_t pause) : patience_(patience), pause_(pause) {}

  /// Once.
  void use(std::shared_ptr<net::control_poller> p) {
    kept_ = std::move(p);
    poller_.store(kept_.get(), std::memory_order_release);
  }
  /// Handles what has come; true if there was something. The thread has looked for work since `since`. A thread that
  /// polls and gets nothing is to give its core away now and then: the network's own thread may need it.
  bool poll(visit& v, std::uint64_t now, std::uint64_t since) {
    net::control_poller* const p = poller_.load(std::memory_order_acquire);
    if (!p) return false;
    bool hurries = false;
    if (!v.polls) {
      const std::uint64_t turns = p->turns();
      const bool has_heard = std::exchange(v.turns, turns) != turns;
      if ((now - since < patience_ && !has_heard) || now < v.not_before) return false;
      v.polls = true;
      pollers_.fetch_add(1, std::memory_order_relaxed);
      hurries = has_heard;
    }
    v.away_ns = 0;
    if (p->poll()) return true;
    if (hurries) p->hurry();
    return false;
  }
  /// Notes that the thread is about to run `n` tasks, the first of which is predicted to take so long (0: unknown). It
  /// keeps the part for what is no longer than `moment_ns`, together with what it has run since it last looked.
  void begins(visit& v, std::size_t n, float predicted_ns, float moment_ns, std::uint64_t now) {
    if (!v.polls) return;
    v.away_ns += predicted_ns;
    if (n == 1 && predicted_ns >= 1 && v.away_ns <= moment_ns) return;
    if (n > 1) v.not_before = now + pause_;
    rest(v);
  }
  /// Notes that the thread sleeps now, or begins what takes longer than a moment. The network's own thread goes on when
  /// the last one rests.
  void rest(visit& v) {
    if (!std::exchange(v.polls, false)) return;
    if (pollers_.fetch_sub(1, std::memory_order_relaxed) == 1) poller_.load(std::memory_order_acquire)->rest();
  }

 private:
  const std::uint64_t patience_, pause_;
  std::shared_ptr<net::control_poller> kept_;
  std::atomic<net::control_poller*> poller_{nullptr};
  std::atomic<int> pollers_{0};  // threads that have polled and do not rest
};

}  // namespace troupe::detail
