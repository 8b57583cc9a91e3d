// What this file is for: the fast door of an actor: a mailbox of items.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/detail/spin_lock.hpp>

namespace troupe::detail {

/// Many producers, one consumer at a time, which takes all items at once. Keeps the order of each producer. The two
/// rows of items, one that is filled and one that is worked off, change places: nothing is allocated once they are
/// large enough. Hand-over is by a lock, which tools that look for races see.
template <class Item>
class mailbox {
 public:
  /// Any thread. Sequentially consistent with `count`, so that a sleeper that looks after announcing itself sees it.
  /// Returns how many items wait now.
  std::size_t post(Item m) {
    std::lock_guard hold(lock_);
    return add(m);
  }
  /// As `post`, if nobody has closed the mailbox; 0 otherwise.
  std::size_t post_if_open(Item m) {
    std::lock_guard hold(lock_);
    return closed_ ? 0 : add(m);
  }
  std::size_t count() const { return count_.load(std::memory_order_seq_cst); }
  /// Moves all items to `out`, which must be empty. Only the consumer.
  void drain(std::vector<Item>& out) {
    std::lock_guard hold(lock_);
    out.swap(items_);
    count_.store(0, std::memory_order_seq_cst);
  }
  /// Closes the mailbox for `post_if_open`, and returns what is left in it.
  std::vector<Item> close() {
    std::lock_guard hold(lock_);
    closed_ = true;
    count_.store(0, std::memory_order_seq_cst);
    return std::exchange(items_, {});
  }

 private:
  std::size_t add(Item m) {
    items_.push_back(m);
    return count_.fetch_add(1, std::memory_order_seq_cst) + 1;
  }

  spin_lock lock_;
  bool closed_ = false;
  std::vector<Item> items_;
  alignas(64) std::atomic<std::size_t> count_{0};
};

}  // namespace troupe::detail
