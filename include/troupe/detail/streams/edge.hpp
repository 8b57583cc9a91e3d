// What this file is for: edges, the bounded queues between the strands of a stream.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/streams/edge_base.hpp>
#include <troupe/detail/streams/strand.hpp>
#include <troupe/stream/options.hpp>

namespace troupe::detail::streams {

/// How an item was received by an edge.
enum class received : std::uint8_t {
  yes,      ///< also if it, or another one, was dropped
  no,       ///< there is no room; the caller keeps it
  overrun,  ///< there is no room, and the edge is to fail then
  failed,   ///< the key of what is kept as the latest has thrown; the item is dropped
  closed
};

/// An edge of items of one type. Those who push and those who take may be different threads.
template <class T>
class edge final : public edge_base {
 public:
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "troupe::stream: items must be movable without throwing: their move constructor must be noexcept");

  edge(std::string to, const troupe::stream::edge_options& o)
      : edge_base(std::move(to), o), mask_(std::bit_ceil(o.items) - 1), ring_(new slot[mask_ + 1]) {}
  ~edge() override {
    for (; head_ != tail_; ++head_)
      if (slot& s = at(head_); s.what == slot::filled) std::destroy_at(s.value());
  }

  /// Takes an item if there is room. `was_parked`: it was refused before, with the same waiter. Sets `next` to what may
  /// come after it; if that is `none`, or the item is refused, the waiter is told of room.
  received offer(T& item, const origin& from, std::size_t bytes, waiter* w, bool was_parked, demand& next) {
    return offer(item, from, bytes, w, was_parked, next, nullptr);
  }
  /// The same for whoever is no strand: `call` is called once there may be room, by any thread; it must not block.
  received offer(T& item, const origin& from, std::size_t bytes, const std::function<void()>& call) {
    demand next;
    return offer(item, from, bytes, nullptr, false, next, &call);
  }
  /// The same for a thread outside all strands, which waits for room until the deadline.
  received offer_until(T& item, const origin& from, std::size_t bytes, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
      std::uint64_t made;
      {
        std::lock_guard hold(outside_lock_);
        made = room_made_;
      }
      enter_outside(1);
      demand next;
      const received r = offer(item, from, bytes, nullptr, false, next);
      if (r == received::no && std::chrono::steady_clock::now() < deadline) {
        std::unique_lock hold(outside_lock_);
        const auto changed = [&] { return room_made_ != made; };
        if (deadline == std::chrono::steady_clock::time_point::max())
          room_.wait(hold, changed);
        else
          room_.wait_until(hold, deadline, changed);
        hold.unlock();
        enter_outside(-1);
        continue;
      }
      enter_outside(-1);
      return r;
    }
  }
  /// Where there is no room, an item takes the place of one that waits and is the same in that sense. Before it is
  /// used.
  void keep_latest(std::function<bool(const T&, const T&)> same) { same_ = std::move(same); }
  /// Closes it for good, whoever else may push: threads that wait are told.
  void shut() {
    std::vector<strand*> wake;
    {
      std::lock_guard hold(lock_);
      open_ = 0;
      takers_.take_all(wake);
    }
    tell(wake, true);
  }

  /// Moves items that wait to `hand`, `most` at most, and says the mark before them. If there are none, the strand is
  /// told when an item or a mark comes; `ended`: none will. `stops_at_mark`: takes nothing where one has
  /// come since the mark that `before` was.
  void take(std::vector<held<T>>& hand, std::size_t most, strand& me, mark& before, bool& ended, int lane = 0,
            bool stops_at_mark = false) {
    strand* wake = nullptr;
    std::vector<strand*> room;
    bool outside = false;
    {
      std::lock_guard hold(lock_);
      const std::uint64_t begin = head_;
      skip_over();
      tell_reached(room);
      const std::uint64_t end = pass_marks();
      const bool is_mark = stops_at_mark && passed_ != before;  // first it goes on
      before = passed_;
      const bool is_used = lane < lanes_used();
      while (is_used && !is_mark && most != 0 && head_ != tail_ && head_ < end && at(head_).what != slot::reserved) {
        if (at(head_).what == slot::filled) {
          move_front(hand);
          --most;
        } else {
          ++head_;
        }
      }
      if (hand.empty() && !is_mark) {
        skip_over();
        ended = open_ == 0 && head_ == tail_ && marks_.empty();
        if (!ended && (marks_.empty() || marks_.front().place > head_)) wait_for_items(me, lane);
        if (!is_used && filled_ != 0) wake = taker();  // it was told of an item that is for another one
      } else if (!hand.empty()) {
        waits_no_more(me);
        note_load(&me);
        moved_ns_ = now_ns();
        if (filled_ != 0) wake = taker();
        for (held<T>& h : hand)
          if (h.from.due_ns != 0) queue_.record(moved_ns_ - h.from.since_ns);
      }
      waiting_.store(filled_, std::memory_order_relaxed);
      if (head_ != begin + hand.size()) outside = wake_waiters(room);  // places that were left out are free
      tell_reached(room);
    }
    if (wake) wake->home->ready(*wake);
    tell(room, outside);
  }

  /// What the key has thrown.
  std::exception_ptr fault() const {
    std::lock_guard hold(lock_);
    return fault_;
  }

  // ---- reserved places: of stages that run in parallel and keep the order
  /// Moves one item that waits to `hand` and reserves its place in another edge, of any type. False: there is no item,
  /// as for `take`, or no room there, of which the waiter is told.
  template <class U>
  bool take(std::vector<held<T>>& hand, edge<U>& to, waiter& w, std::uint64_t& place, strand& me, mark& before,
            bool& ended, int lane) {
    std::vector<strand*> wake;
    bool outside = false, is_taken = false;
    {
      std::lock_guard hold(lock_);
      const std::uint64_t begin = head_;
      skip_over();
      if (head_ != begin) outside = wake_waiters(wake);  // places that were left out are free
      tell_reached(wake);
      pass_marks();
      const bool is_mark = passed_ != before;  // first it goes on
      before = passed_;
      const bool is_used = lane < lanes_used();
      const bool is_there = is_used && head_ != tail_ && at(head_).what != slot::reserved;
      if (!is_there && !is_mark) {
        ended = open_ == 0 && head_ == tail_;
        if (!ended) wait_for_items(me, lane);
        if (!is_used && filled_ != 0)  // it was told of an item that is for another one
          if (strand* const next = taker()) wake.push_back(next);
      } else if (!is_mark && to.reserve(place, w)) {
        is_taken = true;
        waits_no_more(me);
        move_front(hand);
        note_load(&me);
        moved_ns_ = now_ns();
        if (hand.back().from.due_ns != 0) queue_.record(moved_ns_ - hand.back().from.since_ns);
        if (filled_ != 0)
          if (strand* const next = taker()) wake.push_back(next);
        waiting_.store(filled_, std::memory_order_relaxed);
        tell_reached(wake);
      }
    }
    tell(wake, outside);
    return is_taken;
  }
  /// Reserves the next place; false: there is no room, of which the waiter is told.
  bool reserve(std::uint64_t& place, waiter& w) {
    std::lock_guard hold(lock_);
    if (!is_open()) {
      wait_for_room(w);
      return false;
    }
    place = tail_++;
    at(place).what = slot::reserved;
    return true;
  }
  /// Puts an item into its place. False: its bytes do not fit yet; the caller keeps it, and the waiter is told.
  bool fill(std::uint64_t place, T& item, const origin& from, std::size_t bytes, waiter& w, bool was_parked) {
    strand* wake = nullptr;
    {
      std::lock_guard hold(lock_);
      // The first one is let in if nothing else is there: what comes after it waits for it.
      const bool first = place == head_ && in_hands_ == 0;
      if (!first && bytes > bounds_.bytes - std::min(bytes_, bounds_.bytes)) {
        if (!was_parked) ++parked_;
        wait_for_room(w);
        return false;
      }
      if (was_parked) --parked_;
      at(place).put(std::move(item), from, bytes);
      note_put(bytes);
      if (place == head_) wake = taker();
    }
    if (wake) wake->home->ready(*wake);
    return true;
  }
  /// Gives a place back whose item has gone elsewhere.
  void skip(std::uint64_t place) {
    strand* wake = nullptr;
    std::vector<strand*> room;
    bool outside = false;
    {
      std::lock_guard hold(lock_);
      at(place).what = slot::skipped;
      if (place == head_) {
        skip_over();
        outside = wake_waiters(room);
        tell_reached(room);
        if (head_ != tail_) wake = taker();
      }
    }
    if (wake) wake->home->ready(*wake);
    tell(room, outside);
  }

 private:
  received offer(T& item, const origin& from, std::size_t bytes, waiter* w, bool was_parked, demand& next,
                 const std::function<void()>* call) {
    strand* wake = nullptr;
    std::vector<strand*> reached;
    bool is_dropped = false;
    next = demand::more;
    {
      std::lock_guard hold(lock_);
      if (open_ == 0) return received::closed;
      if (!fits(bytes)) {
        if (bounds_.full == troupe::stream::when_full::fail) {
          if (w) {  // of a strand; a thread outside keeps its item
            ++pushed_;
            ++dropped_;
          }
          return received::overrun;
        }
        if (bounds_.full == troupe::stream::when_full::block) {
          if (w) {
            if (!was_parked) ++parked_;
            wait_for_room(*w);
          } else if (call) {
            if (waiters_.empty() && !waits_outside()) blocked_since_ = now_ns();
            calls_.push_back(*call);
          }
          return received::no;
        }
        try {
          if (same_ && replace(item, from, bytes)) {
            next = demand::pause;
            return received::yes;
          }
        } catch (...) {
          ++pushed_;
          ++dropped_;
          fault_ = std::current_exception();
          return received::failed;
        }
        if (bounds_.full == troupe::stream::when_full::drop_oldest)
          while (head_ != tail_ && at(head_).what != slot::reserved && !fits(bytes)) drop_oldest();
        tell_reached(reached);
        if (!fits(bytes)) {  // the newest is dropped; all others are in the hands of the strand behind
          ++pushed_;
          ++dropped_;
          is_dropped = true;
        }
      }
      if (!is_dropped) {
        if (was_parked) --parked_;
        at(tail_++).put(std::move(item), from, bytes);
        note_put(bytes);
        wake = taker();
        next = after_put();
        if (next == demand::none) {
          if (bounds_.full != troupe::stream::when_full::block)
            next = demand::pause;
          else if (w)
            wait_for_room(*w);
        }
      }
    }
    for (strand* s : reached) s->home->ready(*s);
    if (wake) wake->home->ready(*wake);
    return received::yes;
  }
  struct slot {
    enum state : std::uint8_t { empty, reserved, filled, skipped };
    origin from;
    std::size_t bytes = 0;
    state what = empty;
    alignas(T) std::byte place[sizeof(T)];
    T* value() { return std::launder(reinterpret_cast<T*>(place)); }
    void put(T&& item, const origin& o, std::size_t b) {
      ::new (static_cast<void*>(place)) T(std::move(item));
      from = o;
      if (o.due_ns != 0) from.since_ns = now_ns();
      bytes = b;
      what = filled;
    }
  };
  slot& at(std::uint64_t place) { return ring_[place & mask_]; }
  void move_front(std::vector<held<T>>& hand) {
    slot& s = at(head_++);
    hand.push_back({std::move(*s.value()), s.from, s.bytes});
    std::destroy_at(s.value());
    s.what = slot::empty;
    --filled_;
    ++in_hands_;
  }
  void skip_over() {
    while (head_ != tail_ && at(head_).what == slot::skipped) at(head_++).what = slot::empty;
  }
  void drop_oldest() {
    slot& s = at(head_++);
    if (std::exchange(s.what, slot::empty) == slot::skipped) return;
    bytes_ -= s.bytes;
    std::destroy_at(s.value());
    --filled_;
    ++dropped_;
  }
  // Under the lock. The last one that is the same, if the bytes fit then; it is dropped. None before a barrier: what
  // has come behind it stays there.
  bool replace(T& item, const origin& from, std::size_t bytes) {
    for (std::uint64_t at_place = tail_; at_place-- > std::max(head_, barrier_place_);) {
      slot& s = at(at_place);
      if (s.what != slot::filled || !same_(std::as_const(*s.value()), std::as_const(item))) continue;
      if (bytes > s.bytes && bytes - s.bytes > bounds_.bytes - std::min(bytes_, bounds_.bytes)) return false;
      bytes_ = bytes_ - s.bytes + bytes;
      bytes_max_ = std::max<std::uint64_t>(bytes_max_, bytes_);
      std::destroy_at(s.value());
      s.put(std::move(item), from, bytes);
      ++pushed_;
      ++dropped_;
      return true;
    }
    return false;
  }
  void enter_outside(int by) {
    std::lock_guard hold(lock_);
    if (by > 0 && waiters_.empty() && !waits_outside()) blocked_since_ = now_ns();
    outside_ += by;
  }

  const std::uint64_t mask_;
  std::unique_ptr<slot[]> ring_;
  std::function<bool(const T&, const T&)> same_;
  std::exception_ptr fault_;
};

}  // namespace troupe::detail::streams
