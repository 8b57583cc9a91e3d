// What this file is for: a stage that makes pairs of the items of two flows.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/detail/streams/node.hpp>
#include <troupe/detail/streams/strands.hpp>

namespace troupe::detail::streams {

/// Takes from two edges, one item of each at a time.
template <class A, class B>
class zip_strand final : public strand {
 public:
  using pair = std::pair<A, B>;
  zip_strand(edge<A>& a, edge<B>& b, outlet<pair>& out, counts& c) : a_(a), b_(b), out_(out), counted_(c) {
    a.behind = this;
    b.behind = this;
  }
  ran run(std::int64_t until_ns) override {
    if (home->is_interrupted()) return ran::more;
    if (out_.of(0).resume() == demand::none) return ran::waits;
    pace p(*this, until_ns);
    for (;;) {
      if (home->is_interrupted()) return ran::more;
      take(a_);
      take(b_);
      if (const mark m = least_mark(); m != passed_) {
        passed_ = m;
        if (out_.of(0).pass(m) == demand::none) return ran::waits;
      }
      if (a_.hand.empty() || b_.hand.empty()) {
        // What has no partner any more is left out, so that its flow can end.
        const bool a_is_over = a_.has_ended && a_.hand.empty(), b_is_over = b_.has_ended && b_.hand.empty();
        if (a_is_over && b_is_over) return out_.of(0).finish() ? ran::ended : ran::waits;
        if ((a_is_over && leave_out(b_)) || (b_is_over && leave_out(a_))) {
          if (p.count()) return ran::more;
          continue;
        }
        out_.of(0).idle();
        return ran::waits;
      }
      counted_.in.add(2);
      counted_.absorbed.add(2);
      counted_.created.add();
      counted_.out.add();
      const origin from = a_.hand.front().from;
      const demand d = out_.of(0).push({std::move(a_.hand.front().value), std::move(b_.hand.front().value)}, from);
      a_.release();
      b_.release();
      const bool is_late = p.count();
      if (d == demand::none) return ran::waits;
      if (is_late || d == demand::pause) return ran::more;
    }
  }
  double waiting_ns() const noexcept override {
    return item_ns() * static_cast<double>(std::min(a_.of.waiting_items(), b_.of.waiting_items()));
  }

 private:
  template <class T>
  struct side {
    explicit side(edge<T>& e) : of(e) { hand.reserve(1); }
    edge<T>& of;
    std::vector<held<T>> hand;  // one item, which counts in its edge
    mark last;
    bool has_ended = false;
    void release() {
      of.release(1, hand.front().bytes);
      hand.clear();
    }
  };
  template <class T>
  void take(side<T>& s) {
    if (s.hand.empty() && !s.has_ended) s.of.take(s.hand, 1, *this, s.last, s.has_ended);
  }
  template <class T>
  bool leave_out(side<T>& s) {
    if (s.hand.empty()) return false;
    counted_.in.add();
    counted_.absorbed.add();
    s.release();
    return true;
  }
  mark least_mark() const {
    mark m = a_.last;
    if (m.is_idle || (!b_.last.is_idle && b_.last.event_ns < m.event_ns)) m = b_.last;
    m.event_ns = std::max(m.event_ns, passed_.event_ns);
    // Items of one flow may be paired with earlier ones of the other: what is behind a barrier there may come before
    // it.
    m.barrier = a_.has_ended   ? b_.last.barrier
                : b_.has_ended ? a_.last.barrier
                               : std::min(a_.last.barrier, b_.last.barrier);
    m.barrier = std::max(m.barrier, passed_.barrier);
    return m;
  }
  side<A> a_;
  side<B> b_;
  outlet<pair>& out_;
  counts& counted_;
  mark passed_;
};

template <class A, class B>
class zip_node final : public node {
 public:
  explicit zip_node(std::string name) : node(std::move(name), "zip") {}
  std::unique_ptr<edge_base> make_edge(int port, const troupe::stream::edge_options& o) override {
    if (port == 0) return std::make_unique<edge<A>>(name(), o);
    return std::make_unique<edge<B>>(name(), o);
  }
  std::size_t item_bytes(int port) const override { return port == 0 ? fixed_item_bytes<A> : fixed_item_bytes<B>; }
  std::unique_ptr<strand> make_strand(int, const std::vector<edge_base*>& edges) override {
    return std::make_unique<zip_strand<A, B>>(static_cast<edge<A>&>(*edges[0]), static_cast<edge<B>&>(*edges[1]), out,
                                              counted_);
  }
  void bind(int, strand&) override {}
  void add_to(troupe::stream::stage_report& r) const override { counted_.add_to(r); }
  bool joins() const override { return true; }
  bool pairs_items() const override { return true; }
  // Items come in through edges only.
  template <class T>
  struct way_in final : port_base<T> {
    inlet<T>& at(int) override { throw error(errc::bad_argument, "a zip is not fused"); }
  };
  way_in<A> first;
  way_in<B> second;
  outlet<std::pair<A, B>> out;

 private:
  counts counted_;
};

}  // namespace troupe::detail::streams
