// What this file is for: the high-rate half of placement's mailbox: submissions, completions, dropped handles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// From | message | may repeat | may be lost
// client, task | submitted: order this task | no | no
// executor     | done: this task's body has returned, thrown or was never run | no | no
// executor     | returned: could not run this task, another one may | no | no
// host view    | done: the host's access has ended | no | no
// last handle  | dropped: free this array once no task uses it | no | no
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/protocol/spin_lock.hpp"

namespace troupe::detail {

struct array_core;
struct task_record;

/// One item: a pointer and its verb in the lowest bits.
class mail {
 public:
  enum verb : std::uintptr_t { submitted = 0, done = 1, dropped = 2, returned = 3 };
  mail(task_record* t, verb v) : bits_(reinterpret_cast<std::uintptr_t>(t) | v) {}
  explicit mail(array_core* a) : bits_(reinterpret_cast<std::uintptr_t>(a) | dropped) {}
  verb what() const { return static_cast<verb>(bits_ & 3); }
  task_record* task() const { return reinterpret_cast<task_record*>(bits_ & ~std::uintptr_t{3}); }
  array_core* array() const { return reinterpret_cast<array_core*>(bits_ & ~std::uintptr_t{3}); }

 private:
  std::uintptr_t bits_;
};

/// Many producers, one consumer at a time. Keeps the order of each producer.
class inbox {
 public:
  /// Any thread. Sequentially consistent with `count`, so that a sleeper that looks after announcing itself sees it.
  /// Returns how many items wait now.
  std::size_t post(mail m) {
    std::lock_guard hold(lock_);
    return add(m);
  }
  /// As above, and increments `counter`, which is changed under this inbox' lock only.
  std::size_t post(mail m, std::atomic<std::uint64_t>& counter) {
    std::lock_guard hold(lock_);
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return add(m);
  }
  void post(std::span<const mail> many) {
    std::lock_guard hold(lock_);
    items_.insert(items_.end(), many.begin(), many.end());
    count_.fetch_add(many.size(), std::memory_order_seq_cst);
  }
  std::size_t count() const { return count_.load(std::memory_order_seq_cst); }
  std::size_t roughly() const { return count_.load(std::memory_order_relaxed); }
  bool maybe() const { return count_.load(std::memory_order_relaxed) != 0; }
  /// Moves all items to `out`, which must be empty. Only the holder of the turn.
  void drain(std::vector<mail>& out) {
    std::lock_guard hold(lock_);
    out.swap(items_);
    count_.store(0, std::memory_order_seq_cst);
  }

 private:
  std::size_t add(mail m) {
    items_.push_back(m);
    return count_.fetch_add(1, std::memory_order_seq_cst) + 1;
  }

  spin_lock lock_;
  std::vector<mail> items_;
  alignas(64) std::atomic<std::size_t> count_{0};
};

}  // namespace troupe::detail
