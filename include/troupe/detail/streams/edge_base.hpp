// What this file is for: what edges of all types have: bounds, marks, counts, and who waits.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <troupe/detail/spin_lock.hpp>
#include <troupe/detail/streams/lanes.hpp>
#include <troupe/detail/streams/strand.hpp>
#include <troupe/stream/distribution.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/report.hpp>

namespace troupe::detail::streams {

/// Whether whoever has pushed an item may push another one.
enum class demand : std::uint8_t {
  more,
  pause,  ///< yes, but those behind have enough to do: their strands should run first
  none    ///< not before `resume` says so
};
inline demand least(demand a, demand b) { return std::max(a, b); }

/// An item outside an edge, on its way.
template <class T>
struct held {
  T value;
  origin from;
  std::size_t bytes;
};

/// A strand that waits for room in an edge; entered once.
struct waiter {
  strand* who = nullptr;
  bool waits = false;
};

/// What edges of all types have: bounds, counts, who waits. An item is in the edge from when it has been pushed until
/// the strand behind has worked on it, so the bounds hold what is in that strand's hands, too.
class edge_base {
 public:
  edge_base(std::string to, const troupe::stream::edge_options& o) : to_(std::move(to)), bounds_(o) {}
  virtual ~edge_base() = default;
  edge_base(const edge_base&) = delete;
  edge_base& operator=(const edge_base&) = delete;

  const std::string& to() const { return to_; }
  std::size_t bound() const { return bounds_.items; }
  const troupe::stream::edge_options& options() const { return bounds_; }

  /// Adds somebody who pushes, and returns its number; the edge is closed when all have closed it. Before it is used.
  std::size_t open() {
    ++open_;
    return said_.open();
  }
  void close(std::size_t way) {
    std::vector<strand*> wake;
    {
      std::lock_guard hold(lock_);
      const std::uint64_t barrier = said_.all().barrier;
      if (said_.close(way)) place_mark();
      if (said_.all().barrier != barrier) lift_bar(wake);
      if (--open_ == 0 || !marks_.empty()) takers_.take_all(wake);
    }
    for (strand* s : wake) s->home->ready(*s);
  }
  /// Takes a mark from one of those who push. Behind the edge goes what holds for all of them.
  void put(std::size_t way, const mark& m) {
    std::vector<strand*> wake;
    {
      std::lock_guard hold(lock_);
      const std::uint64_t barrier = said_.all().barrier;
      if (!said_.note(way, m)) return;
      place_mark();
      if (said_.all().barrier != barrier) lift_bar(wake);
      takers_.take_all(wake);
    }
    for (strand* s : wake) s->home->ready(*s);
  }
  /// Puts a barrier behind what has come by the only way in.
  void put_barrier(std::uint64_t number) {
    mark m;
    {
      std::lock_guard hold(lock_);
      m = said_.last(0);
    }
    m.barrier = number;
    put(0, m);
  }
  /// True if somebody may push one item more by that way; else the waiter is told when that is so.
  bool has_room(waiter& w, std::size_t way) {
    std::lock_guard hold(lock_);
    if (has_bars_ && said_.is_barred(way)) {
      wait_for_room(w);
      return false;
    }
    if (is_open() || bounds_.full != troupe::stream::when_full::block) return true;
    wait_for_room(w);
    return false;
  }
  /// True if a barrier has come by that way and not by all; then the waiter is told when it has.
  bool is_barred(waiter& w, std::size_t way) {
    std::lock_guard hold(lock_);
    if (!has_bars_ || !said_.is_barred(way)) return false;
    wait_for_room(w);
    return true;
  }
  /// The strand behind has worked on items that it had taken.
  void release(std::size_t items, std::size_t bytes) {
    if (items == 0) return;
    std::vector<strand*> wake;
    bool outside = false;
    {
      std::lock_guard hold(lock_);
      in_hands_ -= items;
      bytes_ -= bytes;
      taken_ += items;
      outside = wake_waiters(wake);
    }
    tell(wake, outside);
  }

  void report(troupe::stream::edge_report& r) const {
    std::lock_guard hold(lock_);
    r.to = to_;
    r.pushed = pushed_;
    r.taken = taken_;
    r.dropped = dropped_;
    r.items = filled_ + in_hands_;
    r.items_max = items_max_;
    r.items_bound = bounds_.items;
    r.bytes = bytes_;
    r.bytes_max = bytes_max_;
    r.bytes_bound = bounds_.bytes;
    r.waiting = parked_;
    r.blocked = std::chrono::nanoseconds(blocked_ns_);
    r.queue = queue_.read();
  }
  /// The time since which items wait and nobody has taken one; 0: none wait.
  std::int64_t waits_since() const {
    std::lock_guard hold(lock_);
    return filled_ + in_hands_ == 0 ? 0 : moved_ns_;
  }
  std::size_t waiting_items() const noexcept { return waiting_.load(std::memory_order_relaxed); }

  /// Nobody waits here for a barrier to come by all ways. Before it is used.
  void leave_bars_out() { has_bars_ = false; }
  /// Of the lanes behind not all are used at all times. Before it is used.
  void scale(int least, int most) {
    if (least != most) scaling_.emplace(least, most);
  }
  /// Lanes behind that are used at the moment.
  int lanes_in_use() const {
    std::lock_guard hold(lock_);
    return lanes_used();
  }

  /// The strand behind, for the time that its items take.
  const strand* behind = nullptr;

 protected:
  // All under the lock.
  std::size_t used() const { return static_cast<std::size_t>(tail_ - head_) + in_hands_; }
  bool is_open() const { return used() < bounds_.items && (bytes_ < bounds_.bytes || used() == 0); }
  bool fits(std::size_t bytes) const {
    return used() < bounds_.items && (bytes <= bounds_.bytes - std::min(bytes_, bounds_.bytes) || used() == 0);
  }
  void wait_for_room(waiter& w) {
    if (w.waits) return;
    w.waits = true;
    if (waiters_.empty() && !waits_outside()) blocked_since_ = now_ns();
    waiters_.push_back(&w);
  }
  // A barrier has come by all ways.
  void lift_bar(std::vector<strand*>& wake) {
    for (waiter* w : waiters_) {
      w->waits = false;
      wake.push_back(w->who);
    }
    if (!waiters_.empty() && !waits_outside()) blocked_ns_ += now_ns() - blocked_since_;
    waiters_.clear();
  }
  // Those who wait are woken when half of the edge is free, or when the strand behind has worked off what it had taken:
  // an item's worth of room at a time would cost two changes of strands for each.
  bool wake_waiters(std::vector<strand*>& wake) {
    if (waiters_.empty() && !waits_outside()) return false;
    if (in_hands_ != 0 && (used() > bounds_.items / 2 || bytes_ > bounds_.bytes / 2)) return false;
    const std::int64_t now = now_ns();
    blocked_ns_ += now - std::exchange(blocked_since_, now);
    for (waiter* w : waiters_) {
      w->waits = false;
      wake.push_back(w->who);
    }
    waiters_.clear();
    return waits_outside();
  }
  bool waits_outside() const { return outside_ != 0 || !calls_.empty(); }
  void tell(const std::vector<strand*>& wake, bool outside) {
    for (strand* s : wake) s->home->ready(*s);
    if (!outside) return;
    {
      std::lock_guard hold(outside_lock_);
      ++room_made_;
      room_.notify_all();
    }
    std::vector<std::function<void()>> calls;
    {
      std::lock_guard hold(lock_);
      calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }
  void note_put(std::size_t bytes) {
    ++pushed_;
    ++filled_;
    bytes_ += bytes;
    items_max_ = std::max<std::uint64_t>(items_max_, filled_ + in_hands_);
    bytes_max_ = std::max<std::uint64_t>(bytes_max_, bytes_);
    if (filled_ + in_hands_ == 1) moved_ns_ = now_ns();
    note_load(nullptr);
    waiting_.store(filled_, std::memory_order_relaxed);
  }
  // What all ways in say together has its place behind all items that are in the edge now; where no item has come since
  // the last one, it takes that one's place.
  void place_mark() {
    if (said_.all().barrier != barrier_) {
      barrier_ = said_.all().barrier;
      barrier_place_ = tail_;
    }
    if (!marks_.empty() && marks_.back().place == tail_)
      marks_.back().what = said_.all();
    else
      marks_.push_back({tail_, said_.all()});
  }
  // Before items are taken: what marks stand before them, and how many items stand before the next one.
  std::uint64_t pass_marks() {
    while (!marks_.empty() && marks_.front().place <= head_) {
      passed_ = marks_.front().what;
      marks_.pop_front();
    }
    return marks_.empty() ? std::numeric_limits<std::uint64_t>::max() : marks_.front().place;
  }
  // Wherever the front has moved: all who wait for items are told of a mark or the end that has been reached.
  void tell_reached(std::vector<strand*>& wake) {
    if ((!marks_.empty() && marks_.front().place <= head_) || (open_ == 0 && head_ == tail_)) takers_.take_all(wake);
  }
  // One that was told of room, or of a time, has taken items though it waits for them: what comes next is for another.
  void waits_no_more(const strand& s) { takers_.wait_no_more(s); }
  void wait_for_items(strand& s, int lane) { takers_.wait(s, lane); }
  strand* taker() { return takers_.next(lanes_used()); }
  int lanes_used() const { return scaling_ ? scaling_->active() : std::numeric_limits<int>::max(); }
  // `taker`: the lane that has taken an item; null: one has come.
  void note_load(const strand* taker) {
    if (!scaling_) return;
    if (taker) lane_item_ns_ = taker->item_ns();
    scaling_->note(now_ns(), taker != nullptr, lane_item_ns_, filled_, !is_open());
  }
  double item_ns() const { return scaling_ ? lane_item_ns_ : behind ? behind->item_ns() : 0; }
  // What is told to whoever has pushed.
  demand after_put() const {
    if (!is_open()) return demand::none;
    return item_ns() * static_cast<double>(filled_) > enough_ns ? demand::pause : demand::more;
  }

  // Work for the strand behind from which on it should run before more is pushed: enough to pay for the change.
  static constexpr double enough_ns = 20'000;

  const std::string to_;
  const troupe::stream::edge_options bounds_;
  mutable spin_lock lock_;
  std::uint64_t head_ = 0, tail_ = 0;  // numbers of places: [head, tail) are filled or reserved
  std::size_t filled_ = 0, in_hands_ = 0, bytes_ = 0;
  std::uint64_t pushed_ = 0, taken_ = 0, dropped_ = 0, parked_ = 0, items_max_ = 0, bytes_max_ = 0;
  std::int64_t blocked_ns_ = 0, blocked_since_ = 0, moved_ns_ = 0;
  int open_ = 0;
  struct placed_mark {
    std::uint64_t place;
    mark what;
  };
  bool has_bars_ = true;
  merged_marks said_;                              // by those who push; what it comes to has been put behind the items
  mark passed_;                                    // the last that has been reached
  std::deque<placed_mark> marks_;                  // between the two
  std::uint64_t barrier_ = 0, barrier_place_ = 0;  // the last that was put, and before which item
  takers takers_;
  std::optional<lane_scaling> scaling_;  // of the lanes behind; empty: all are used
  double lane_item_ns_ = 0;              // that the last one needed for an item
  std::vector<waiter*> waiters_;
  troupe::stream::recorder queue_;
  std::atomic<std::size_t> waiting_{0};

  // Threads outside all strands that wait for room, and what is called when there is some; under lock_.
  int outside_ = 0;
  std::vector<std::function<void()>> calls_;
  std::mutex outside_lock_;
  std::condition_variable room_;
  std::uint64_t room_made_ = 0;
};

}  // namespace troupe::detail::streams
