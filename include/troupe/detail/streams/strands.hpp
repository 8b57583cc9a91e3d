// What this file is for: the strands of streams: from a source, from an edge, one of several behind an edge.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <troupe/detail/streams/node.hpp>

namespace troupe::detail::streams {

/// Items that a strand takes from an edge at once: few where they take long, since those behind wait for them.
class hand_size {
 public:
  static std::size_t of(const strand& s, std::size_t bound) {
    constexpr double work_ns = 10'000;
    constexpr std::size_t most = 32;
    const double each = s.item_ns();
    const std::size_t fair = each <= 0 ? 1 : static_cast<std::size_t>(std::clamp(work_ns / each, 1.0, 1.0 * most));
    return std::clamp<std::size_t>(bound / 2, 1, fair);
  }
};

/// Takes items from an edge and passes them on, with all stages that are fused behind.
template <class T>
class segment final : public strand {
 public:
  segment(edge<T>& from, inlet<T>& to) : from_(from), to_(to) {
    from.behind = this;
    hand_.reserve(32);
  }

  ran run(std::int64_t until_ns) override {
    if (home->is_interrupted()) return ran::more;
    if (to_.resume() == demand::none) return ran::waits;
    pace p(*this, until_ns);
    for (;;) {
      while (next_ != hand_.size()) {
        if (home->is_interrupted()) return release(ran::more);
        held<T>& h = hand_[next_++];
        ++worked_;
        bytes_ += h.bytes;
        const demand d = to_.push(std::move(h.value), h.from);
        const bool is_late = p.count();
        if (d == demand::none) return release(ran::waits);
        if (is_late || d == demand::pause) return release(ran::more);
      }
      release(ran::more);
      hand_.clear();
      next_ = 0;
      bool ended = false;
      mark before;
      from_.take(hand_, hand_size::of(*this, from_.bound()), *this, before, ended);
      if (before != passed_) {
        passed_ = before;
        if (to_.pass(before) == demand::none) return ran::waits;
        if (hand_.empty() && !ended) continue;  // another mark may follow
      }
      if (ended) return to_.finish() ? ran::ended : ran::waits;
      if (hand_.empty()) {
        to_.idle();
        return ran::waits;
      }
    }
  }
  double waiting_ns() const noexcept override { return item_ns() * static_cast<double>(from_.waiting_items() + 1); }

 private:
  ran release(ran then) {
    from_.release(std::exchange(worked_, 0), std::exchange(bytes_, 0));
    return then;
  }
  edge<T>& from_;
  inlet<T>& to_;
  std::vector<held<T>> hand_;
  mark passed_;
  std::size_t next_ = 0, worked_ = 0, bytes_ = 0;
};

/// One of several strands that take from the same edge: a lane of a stage that runs in parallel.
template <class T, class U>
class lane final : public strand {
 public:
  /// `out`: of the stage, whose lane has that number.
  lane(edge<T>& from, inlet<T>& to, outlet<U>& out, int number) : from_(from), to_(to), out_(out), number_(number) {
    from.behind = this;
    hand_.reserve(1);
  }
  ran run(std::int64_t until_ns) override {
    if (home->is_interrupted()) return ran::more;
    ordered_ = out_.ordered.empty() ? nullptr : out_.ordered[static_cast<std::size_t>(number_)];
    if (to_.resume() == demand::none) return ran::waits;
    settle();
    pace p(*this, until_ns);
    for (;;) {
      if (home->is_interrupted()) return ran::more;
      bool ended = false, taken = true;
      mark before = passed_;
      if (ordered_) {
        std::uint64_t place = 0;
        taken = from_.take(hand_, ordered_->to(), ordered_->me(), place, *this, before, ended, number_);
        if (taken) ordered_->begin(place);
      } else {
        from_.take(hand_, 1, *this, before, ended, number_, true);
        taken = !hand_.empty();
      }
      // What this lane has taken is behind it now, and what others have taken they say themselves.
      if (before != passed_) {
        passed_ = before;  // nothing has been taken
        if (to_.pass(before) == demand::none) return ran::waits;
        continue;
      }
      if (ended) return to_.finish() ? ran::ended : ran::waits;
      if (!taken) {
        to_.idle();
        return ran::waits;
      }
      const demand d = to_.push(std::move(hand_.front().value), hand_.front().from);
      const bool is_late = p.count();
      from_.release(1, hand_.front().bytes);
      hand_.clear();
      if (d == demand::none) return ran::waits;  // what comes of the item is not in its place yet
      settle();
      if (is_late || d == demand::pause) return ran::more;
    }
  }
  double waiting_ns() const noexcept override {
    return item_ns() * static_cast<double>(std::min<std::size_t>(from_.waiting_items(), 1));
  }

 private:
  void settle() {
    if (ordered_) ordered_->settle();
  }
  edge<T>& from_;
  inlet<T>& to_;
  outlet<U>& out_;
  const int number_;
  ordered_entry<U>* ordered_ = nullptr;  // where what comes of an item has its place; null: in any order
  std::vector<held<T>> hand_;
  mark passed_;
};

}  // namespace troupe::detail::streams
