// What this file is for: the fast door of an actor that many threads post to at once: a mailbox in lanes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Producers on different lanes share one number that each of them increments, and no lock. The consumer holds the locks
// of all lanes that have items at the same time, so what it takes is all that had been posted by then: an item is never
// taken before one whose posting had ended when its own began, whatever the lanes of the two.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/detail/spin_lock.hpp>

namespace troupe::detail {

/// Many producers, one consumer at a time, which takes all items at once, in the order in which they were posted. The
/// rows of items, those that are filled and the one that is worked off, change places: nothing is allocated once they
/// are large enough. Hand-over is by locks, which tools that look for races see. Throws std::bad_alloc.
template <class Item>
class laned_mailbox {
 public:
  static constexpr std::size_t lanes = 8;

  /// Any thread, on any lane: producers that do not meet on one do not wait for each other. Sequentially consistent
  /// with `count`, so that a sleeper that looks after announcing itself sees it. Returns how many items wait now, this
  /// one included; exactly one of them is told 1, or the consumer has not yet returned from the call that took the
  /// others.
  std::size_t post(Item m) {
    return post(1, [&](std::size_t) { return m; });
  }
  /// As above, for the items make(0) to make(n - 1), n > 0, between which no other producer's come. Their number is
  /// added to `counter`, if there is one, before the consumer can have them.
  template <class Make>
  std::size_t post(std::size_t n, Make make, std::atomic<std::uint64_t>* counter = nullptr, std::size_t on = 0) {
    lane& l = lanes_[on];
    const std::lock_guard hold(l.lock);
    l.make_room(n);
    if (l.items.empty()) occupied_.fetch_or(1U << on, std::memory_order_seq_cst);
    if (counter) counter->fetch_add(n, std::memory_order_seq_cst);
    const std::uint64_t first = posted_.fetch_add(n, std::memory_order_seq_cst);
    for (std::size_t i = 0; i < n; ++i) {
      l.items.push_back(make(i));
      l.numbers.push_back(first + i);
    }
    return static_cast<std::size_t>(first + n - taken_.load(std::memory_order_seq_cst));
  }
  std::size_t count() const { return difference(std::memory_order_seq_cst); }
  std::size_t roughly() const { return difference(std::memory_order_relaxed); }
  bool maybe() const { return roughly() != 0; }
  /// Waits until all calls of `post` have ended that are making items. Any thread, but not inside of `make`.
  void await_posting() {
    for (lane& l : lanes_) const std::lock_guard hold(l.lock);
  }
  /// Moves all items to the end of `out`; quickest where it is empty. Returns the number of lanes that had any. Only
  /// the consumer. If it throws nothing has been taken.
  std::size_t drain(std::vector<Item>& out) {
    held_lanes held(*this);
    std::size_t n = 0;
    held.each([&](lane& l, row&) { n += l.items.size(); });
    const bool as_they_are = held.are_one() && out.empty();
    if (as_they_are) {
      held.each([&](lane& l, row&) {
        out.swap(l.items);
        l.numbers.clear();
      });
    } else {
      out.reserve(out.size() + n);
      held.each([](lane& l, row& r) { l.swap(r); });
    }
    taken_.store(taken_.load(std::memory_order_relaxed) + n, std::memory_order_seq_cst);
    held.let_go();
    if (!as_they_are) merge(held, out);
    return held.count();
  }

 private:
  struct row {
    std::vector<Item> items;
    std::vector<std::uint64_t> numbers;  // the items' places in the order of all
    std::size_t next = 0;                // while merging
  };
  struct alignas(64) lane {
    spin_lock lock;
    std::vector<Item> items;
    std::vector<std::uint64_t> numbers;

    // Before the items are numbered: a number that is given is not taken back.
    void make_room(std::size_t more) {
      if (const std::size_t n = items.size() + more; n > items.capacity() || n > numbers.capacity()) {
        items.reserve(2 * n);
        numbers.reserve(2 * n);
      }
    }
    void swap(row& r) {
      items.swap(r.items);
      numbers.swap(r.numbers);
    }
  };

  // Sequentially consistent, and read in this order, it is never negative.
  std::size_t difference(std::memory_order order) const {
    const std::uint64_t taken = taken_.load(order);
    return static_cast<std::size_t>(posted_.load(order) - taken);
  }

  // The lanes that have items, all locked at the same time.
  class held_lanes {
   public:
    // A producer marks its lane before it numbers its item, so the last look sees every lane with an item that was
    // numbered before one that is taken now.
    explicit held_lanes(laned_mailbox& of) : of_(of) {
      while (const std::uint32_t more = of.occupied_.load(std::memory_order_seq_cst) & ~bits_) {
        each_in(more, [](lane& l, row&) { l.lock.lock(); });
        bits_ |= more;
      }
      locked_ = bits_;
    }
    held_lanes(const held_lanes&) = delete;
    held_lanes& operator=(const held_lanes&) = delete;
    ~held_lanes() { unlock(); }

    bool are_one() const { return std::has_single_bit(bits_); }
    std::size_t count() const { return static_cast<std::size_t>(std::popcount(bits_)); }
    template <class F>
    void each(F f) const {
      each_in(bits_, f);
    }
    // Unlocks the lanes, which are empty by now.
    void let_go() {
      of_.occupied_.fetch_and(~bits_, std::memory_order_seq_cst);
      unlock();
    }

   private:
    void unlock() {
      each_in(std::exchange(locked_, 0), [](lane& l, row&) { l.lock.unlock(); });
    }
    template <class F>
    void each_in(std::uint32_t bits, F f) const {
      for (; bits != 0; bits &= bits - 1) {
        const auto at = static_cast<std::size_t>(std::countr_zero(bits));
        f(of_.lanes_[at], of_.rows_[at]);
      }
    }

    laned_mailbox& of_;
    std::uint32_t bits_ = 0, locked_ = 0;
  };

  // Runs of one lane are copied as such: numbers are looked at where lanes alternate.
  void merge(const held_lanes& held, std::vector<Item>& out) {
    std::array<row*, lanes> left{};
    std::size_t count = 0;
    held.each([&](lane&, row& r) {
      if (!r.items.empty()) left[count++] = &r;
    });
    while (count != 0) {
      std::size_t least = 0;
      std::uint64_t until = UINT64_MAX;  // the next number of any other row
      for (std::size_t i = 1; i < count; ++i) {
        const std::uint64_t here = left[i]->numbers[left[i]->next], best = left[least]->numbers[left[least]->next];
        if (here < best) {
          until = best;
          least = i;
        } else if (here < until) {
          until = here;
        }
      }
      row& r = *left[least];
      while (r.next < r.items.size() && r.numbers[r.next] < until) out.push_back(r.items[r.next++]);
      if (r.next < r.items.size()) continue;
      r.items.clear();
      r.numbers.clear();
      r.next = 0;
      left[least] = left[--count];
    }
  }

  std::array<lane, lanes> lanes_;
  std::atomic<std::uint32_t> occupied_{0};            // lanes that have items; a bit is cleared with its lane's lock
  alignas(64) std::atomic<std::uint64_t> posted_{0};  // items numbered so far
  std::atomic<std::uint64_t> taken_{0};               // changed by the consumer
  alignas(64) std::array<row, lanes> rows_;           // the consumer's
};

}  // namespace troupe::detail
