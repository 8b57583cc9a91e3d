// What this file is for: the strand of a stage that takes the items of two flows, each as it comes, with their times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  void note_first(const mark& m) { note(first_, m); }
  void note_second(const mark& m) { note(second_, m); }
  void end_first() { note(first_, over); }
  void end_second() { note(second_, over); }
  /// What holds for both: one that is idle is not waited for; where both are, the later one counts. Never goes back.
  mark both() const { return merged_; }
  const mark& first() const { return first_; }
  const mark& second() const { return second_; }
  /// Of the flow whose time is behind items are taken first, so that the other one is not kept for long.
  bool is_first_behind() const { return first_.event_ns <= second_.event_ns; }

 private:
  static constexpr mark over{std::numeric_limits<std::int64_t>::max(), true};
  void note(mark& of, const mark& m) {
    of = m;
    mark all{mark::never, true};
    for (const mark& x : {first_, second_}) {
      if (x == over) continue;  // it says nothing of the other one's time
      if (x.is_idle && all.is_idle) all.event_ns = std::max(all.event_ns, x.event_ns);
      if (x.is_idle) continue;
      all.event_ns = all.is_idle ? x.event_ns : std::min(all.event_ns, x.event_ns);
      all.is_idle = false;
    }
    if (first_ == over && second_ == over) return;  // what was last said stays: the end is no time
    all.event_ns = std::max(all.event_ns, merged_.event_ns);
    merged_ = all;
  }
  mark first_, second_, merged_;
};

/// Takes from two edges. `Stage` says what becomes of the items: `demand first(A&&, origin)`, `demand second(B&&,
/// origin)`, `demand pass(const two_marks&)`; `bool wants_first()`: an item of the first flow may come now; `demand
/// resume()`, `void idle()`, `bool finish()` as an inlet's.
template <class A, class B, class Stage>
class two_flows final : public strand {
 public:
  two_flows(edge<A>& a, edge<B>& b, Stage& to) : a_(a), b_(b), to_(to) {
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
    bool has_ended = false;
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
      const bool a_came = to_.wants_first() && a_.refill(*this), b_came = b_.refill(*this);
      if (note_marks() && to_.pass(marks_) == demand::none) return ran::waits;
      const bool a_can = a_.has_items() && to_.wants_first();
      if (!a_can && !b_.has_items()) {
        if (a_.has_ended && b_.has_ended && !a_.has_items()) return to_.finish() ? ran::ended : ran::waits;
        if (a_came || b_came) continue;  // marks have been passed on, and others may follow
        to_.idle();
        return ran::waits;
      }
      demand d;
      if (a_can && (marks_.is_first_behind() || !b_.has_items())) {
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
  bool note_marks() {
    const mark first = marks_.first(), second = marks_.second();
    if (a_.has_ended && !a_.has_items())
      marks_.end_first();
    else
      marks_.note_first(a_.before);
    if (b_.has_ended && !b_.has_items())
      marks_.end_second();
    else
      marks_.note_second(b_.before);
    return marks_.first() != first || marks_.second() != second;
  }

  side<A> a_;
  side<B> b_;
  Stage& to_;
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
  std::unique_ptr<strand> make_strand(int, const std::vector<edge_base*>& edges) override {
    return std::make_unique<two_flows<A, B, Stage>>(static_cast<edge<A>&>(*edges[0]), static_cast<edge<B>&>(*edges[1]),
                                                    *stage_);
  }
  void bind(int, strand&) override {}
  void add_to(troupe::stream::stage_report& r) const override { stage_->counted.add_to(r); }
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
