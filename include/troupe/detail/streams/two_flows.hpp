// What this file is for: the strand of a stage that takes the items of two flows, each as it comes, with their times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/detail/streams/node.hpp>
#include <troupe/detail/streams/strands.hpp>

namespace troupe::detail::streams {

/// How far two flows have come in event time.
class two_marks {
 public:
  two_marks() {
    ways_.open();
    ways_.open();
  }
  void note(bool is_first, const mark& m) { ways_.note(number(is_first), m); }
  void end(bool is_first) { ways_.close(number(is_first)); }
  /// What holds for both.
  const mark& both() const { return ways_.all(); }
  /// The time that a flow has come to; the last there is for one that nobody waits for.
  std::int64_t reached(bool is_first) const {
    const std::size_t n = number(is_first);
    return ways_.is_out(n) ? std::numeric_limits<std::int64_t>::max() : ways_.last(n).event_ns;
  }
  /// True if a barrier has come by that flow and not yet by the other one.
  bool is_barred(bool is_first) const { return ways_.is_barred(number(is_first)); }
  const mark& last(bool is_first) const { return ways_.last(number(is_first)); }
  /// Of the flow whose time is behind items are taken first, so that the other one is not kept for long.
  bool is_first_behind() const { return reached(true) <= reached(false); }

 private:
  static std::size_t number(bool is_first) { return is_first ? 0 : 1; }
  merged_marks ways_;
};

/// Counts items of one flow that are ahead of the other one, in event time.
class ahead_count {
 public:
  /// `other`: the time that the other flow has reached.
  void note(std::int64_t event_ns, std::int64_t other) {
    if (event_ns > other) times_.push_back(event_ns);
  }
  /// The other flow has come to that time. Times that came out of their order may count a little longer.
  void reached(std::int64_t other) {
    while (!times_.empty() && times_.front() <= other) times_.pop_front();
  }
  std::size_t count() const { return times_.size(); }

 private:
  std::deque<std::int64_t> times_;
};

/// Takes from two edges. `Stage` says what becomes of the items: `demand first(A&&, origin)`, `demand second(B&&,
/// origin)`, `demand pass(const two_marks&)`; `bool wants_first()`, `bool wants_second()`: an item of that flow may
/// come now; `demand resume()`, `void idle()`, `bool finish()` as an inlet's.
template <class A, class B, class Stage>
class two_flows final : public strand {
 public:
  two_flows(edge<A>& a, edge<B>& b, Stage& to, const bool& has_bars) : a_(a), b_(b), to_(to), has_bars_(has_bars) {
    a.behind = this;
    b.behind = this;
    to.self = this;
  }
  ran run(std::int64_t until_ns) override {
    const ran r = work(until_ns);
    a_.release();
    b_.release();
    return r;
  }
  double waiting_ns() const noexcept override {
    return item_ns() * static_cast<double>(a_.of.waiting_items() + b_.of.waiting_items() + 1);
  }

 private:
  template <class T>
  struct side {
    explicit side(edge<T>& e) : of(e) { hand.reserve(32); }
    edge<T>& of;
    std::vector<held<T>> hand;
    std::size_t next = 0, worked = 0, bytes = 0;
    mark before;
    bool has_ended = false, is_over = false;
    bool has_items() const { return next != hand.size(); }
    held<T>& take() {
      held<T>& h = hand[next++];
      ++worked;
      bytes += h.bytes;
      return h;
    }
    void release() { of.release(std::exchange(worked, 0), std::exchange(bytes, 0)); }
    // True if there are items, or a mark has come, or the end.
    bool refill(strand& me) {
      if (has_items()) return true;
      if (has_ended) return false;
      release();
      hand.clear();
      next = 0;
      const mark was = before;
      of.take(hand, hand_size::of(me, of.bound()), me, before, has_ended);
      return has_items() || has_ended || before != was;
    }
  };

  ran work(std::int64_t until_ns) {
    if (home->is_interrupted()) return ran::more;
    if (to_.resume() == demand::none) return ran::waits;
    pace p(*this, until_ns);
    for (;;) {
      if (home->is_interrupted()) return ran::more;
      const bool a_came = wants_first() && a_.refill(*this), b_came = wants_second() && b_.refill(*this);
      if (note_marks() && to_.pass(marks_) == demand::none) return ran::waits;
      const bool a_can = a_.has_items() && wants_first(), b_can = b_.has_items() && wants_second();
      if (!a_can && !b_can) {
        if (a_.has_ended && b_.has_ended && !a_.has_items() && !b_.has_items())
          return to_.finish() ? ran::ended : ran::waits;
        if (a_came || b_came) continue;  // marks have been passed on, and others may follow
        to_.idle();
        return ran::waits;
      }
      demand d;
      if (a_can && (marks_.is_first_behind() || !b_can)) {
        held<A>& h = a_.take();
        d = to_.first(std::move(h.value), h.from);
      } else {
        held<B>& h = b_.take();
        d = to_.second(std::move(h.value), h.from);
      }
      const bool is_late = p.count();
      if (d == demand::none) return ran::waits;
      if (is_late || d == demand::pause) return ran::more;
    }
  }
  // A flow waits behind a barrier until the other one has come to it, which must then not wait for anything else.
  bool wants_first() const { return !is_barred(true) && (is_barred(false) || to_.wants_first()); }
  bool wants_second() const { return !is_barred(false) && (is_barred(true) || to_.wants_second()); }
  bool is_barred(bool is_first) const { return has_bars_ && marks_.is_barred(is_first); }
  // True if something has changed.
  bool note_marks() {
    const bool a_said = note(a_, true), b_said = note(b_, false);
    return a_said || b_said;
  }
  template <class T>
  bool note(side<T>& s, bool is_first) {
    if (s.has_ended && !s.has_items()) {
      if (std::exchange(s.is_over, true)) return false;
      marks_.end(is_first);
      return true;
    }
    if (marks_.last(is_first) == s.before) return false;
    marks_.note(is_first, s.before);
    return true;
  }

  side<A> a_;
  side<B> b_;
  Stage& to_;
  const bool& has_bars_;
  two_marks marks_;
};

/// A stage with two ways in, which are edges, and one out.
template <class A, class B, class Stage>
class two_flows_node : public node {
 public:
  using node::node;
  std::unique_ptr<edge_base> make_edge(int port, const troupe::stream::edge_options& o) override {
    if (port == 0) return std::make_unique<edge<A>>(name(), o);
    return std::make_unique<edge<B>>(name(), o);
  }
  std::size_t item_bytes(int port) const override { return port == 0 ? fixed_item_bytes<A> : fixed_item_bytes<B>; }
  std::unique_ptr<strand> make_strand(int, const std::vector<edge_base*>& edges) override {
    return std::make_unique<two_flows<A, B, Stage>>(static_cast<edge<A>&>(*edges[0]), static_cast<edge<B>&>(*edges[1]),
                                                    *stage_, has_bars);
  }
  void bind(int, strand&) override {}
  void add_to(troupe::stream::stage_report& r) const override {
    stage_->counted.add_to(r);
    r.state_bytes += stage_->state_bytes();
  }
  bool joins() const override { return true; }
  template <class T>
  struct way_in final : port_base<T> {
    inlet<T>& at(int) override { throw error(errc::bad_argument, "a stage of two flows is not fused"); }
  };
  way_in<A> first;
  way_in<B> second;

 protected:
  std::unique_ptr<Stage> stage_;
};

}  // namespace troupe::detail::streams
