// What this file is for: what any thread lets placement know in a word, which the next turn looks at.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "actors/protocol/executor.hpp"
#include "actors/protocol/transfer_reports.hpp"

namespace troupe::detail {

/// Notes that need no mail: a newer one says all that an older one did, or one that is lost does no harm. Any thread
/// writes them, whatever locks it holds; the holder of the turn takes them.
class incoming_notes {
 public:
  /// Notes that bodies have begun to wait, or go on. Sequentially consistent, as is the look at it.
  void note_waits() { waits_changed_.store(true, std::memory_order_seq_cst); }
  bool has_waits() const { return waits_changed_.load(std::memory_order_seq_cst); }
  /// Notes that a copy took `ns`.
  void add_transfer(memory_space from, memory_space to, std::uint64_t bytes, float ns) {
    transfers_.add(from, to, bytes, ns);
  }

  /// Forgets the note on waits, then calls know(number of the executor, slots, ns) with what waits now at each of the
  /// executors that run bodies on cores; see executor::waiting. With the turn.
  template <class F>
  void take_waits(std::span<executor* const> near, F&& know) {
    waits_changed_.exchange(false, std::memory_order_seq_cst);
    for (const executor* e : near) {
      if (e->facts().space != host_space) continue;
      const waiting_load w = e->waiting();
      know(e->facts().id, w.slots, w.ns);
    }
  }
  /// Calls f(from, to, bytes, ns) for each copy, and forgets them. With the turn.
  template <class F>
  void take_transfers(F&& f) {
    transfers_.take(std::forward<F>(f));
  }

 private:
  std::atomic<bool> waits_changed_{false};
  transfer_reports transfers_;
};

}  // namespace troupe::detail
