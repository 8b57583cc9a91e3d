// What this file is for: a tile that one device lets others copy from its memory, and when it may have the memory back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --make_lend--> lender       the lender says where the tile is, or calls the loan back: end of the task
//   placement --task with loans--> borrower
//   borrower  --begin, end--> loan        for the time of the task: meanwhile the lender keeps the memory as it is
//   lender    --call_back--> loan         when it wants the memory and nobody uses it: later borrowers are refused
//
// No device waits for another: a borrower that is refused gives its task back, and placement has the tile brought home
// instead. A lender that finds its memory in use waits for work that has been enqueued and needs nothing more to end.
// Only a tile whose writers have all ended is lent, so that no device has to wait for what is enqueued on another.
#pragma once

#include <atomic>
#include <cstdint>

#include "actors/protocol/memory_space.hpp"

namespace troupe::detail {

struct array_core;

class peer_loan {
 public:
  peer_loan(array_core& a, std::uint32_t t, std::uint32_t v, memory_space s)
      : array(&a), tile(t), version(v), from(s) {}

  array_core* const array;
  const std::uint32_t tile, version;  // of the bytes
  const memory_space from;            // the lender's

  // ---- the lender
  void open(void* memory) {
    memory_ = memory;
    state_.store(0, std::memory_order_release);
  }
  /// Ends the loan if no borrower uses the memory; true if it has ended: later borrowers are refused.
  bool call_back() {
    for (int s = state_.load(std::memory_order_acquire); s <= 0;)
      if (s == over || state_.compare_exchange_weak(s, over, std::memory_order_acq_rel)) return true;
    return false;
  }
  /// Marks the memory as lost. Borrowers that use it have read nothing of use and see it by `is_broken` when they are
  /// done. `replace` fails from then on.
  void break_off() {
    fate_.fetch_or(broken, std::memory_order_seq_cst);
    call_back();
  }
  bool is_used() const { return state_.load(std::memory_order_acquire) > 0; }
  /// True if a borrower has written the tile anew: the lender's copy is worth nothing.
  bool is_replaced() const { return (fate_.load(std::memory_order_seq_cst) & replaced) != 0; }

  // ---- placement
  bool is_open() const { return state_.load(std::memory_order_acquire) >= 0 && !is_broken(); }

  // ---- borrowers
  /// Begins to use the memory; false if the loan was called back or is broken.
  bool begin() {
    for (int s = state_.load(std::memory_order_acquire); s >= 0 && !is_broken();)
      if (state_.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  void end() { state_.fetch_sub(1, std::memory_order_acq_rel); }
  void* memory() const { return memory_; }
  bool is_broken() const { return (fate_.load(std::memory_order_seq_cst) & broken) != 0; }
  /// Makes the copy that the borrower has written the tile's value; false if the loan is broken. Before `end`.
  bool replace() {
    unsigned none = 0;
    return fate_.compare_exchange_strong(none, replaced, std::memory_order_seq_cst) || none == replaced;
  }
  /// Undoes `replace`. Before `end`.
  void withdraw() { fate_.fetch_and(~replaced, std::memory_order_seq_cst); }

 private:
  static constexpr int asked = -1, over = -2;
  static constexpr unsigned replaced = 1, broken = 2;

  void* memory_ = nullptr;
  std::atomic<int> state_{asked};  // asked, over, or how many borrowers use the memory
  std::atomic<unsigned> fate_{0};
};

}  // namespace troupe::detail
