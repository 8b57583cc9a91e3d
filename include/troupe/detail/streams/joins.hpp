// What this file is for: stages that join the items of two flows which have the same key.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/streams/event_times.hpp>
#include <troupe/detail/streams/made_items.hpp>
#include <troupe/detail/streams/two_flows.hpp>
#include <troupe/error.hpp>
#include <troupe/stream/joins.hpp>

namespace troupe::detail::streams {

/// Which times belong together, and how long a time is waited for.
class join_rule {
 public:
  explicit join_rule(const troupe::stream::joining& j)
      : is_window_(j.kind == troupe::stream::joining::shape::window),
        before_(j.before.count()),
        after_(j.after.count()),
        size_(j.size.count()) {}
  struct range {
    std::int64_t least, most;
  };
  /// The times of the second flow that belong to a time of the first, and the other way round.
  range of_first(std::int64_t t) const { return is_window_ ? window(t) : around(t, before_, after_); }
  range of_second(std::int64_t t) const { return is_window_ ? window(t) : around(t, after_, before_); }

 private:
  static range around(std::int64_t t, std::int64_t before, std::int64_t after) {
    return {saturated(t, -before), saturated(t, after)};
  }
  range window(std::int64_t t) const {
    const std::int64_t start = window_starts::of(t, size_, size_).last;
    return {start, start + (size_ - 1)};
  }
  const bool is_window_;
  const std::int64_t before_, after_, size_;
};

/// Pairs of items with one key whose times belong together, as soon as both are there. Late items, with times before
/// the watermark of both flows, are dropped: where none is late, what comes out depends on no order in which the two
/// are read.
template <class A, class B, class KeyA, class KeyB, class F, class R>
class pairing {
 public:
  using K = std::decay_t<std::invoke_result_t<KeyA&, const A&>>;
  pairing(const node& of, KeyA a, KeyB b, F f, const troupe::stream::joining& j, const troupe::stream::join_options& o,
          outlet<R>& out)
      : of_(of),
        key_a_(std::move(a)),
        key_b_(std::move(b)),
        f_(std::move(f)),
        rule_(j),
        ahead_max_(o.ahead),
        out_(out),
        made_(out, counted),
        state_(of.name(), of.state) {}

  // A flow that is ahead waits, so the two never wait for each other.
  bool wants_first() const { return first_ahead_.count() < ahead_max_ || first_at_ <= second_at_; }
  bool wants_second() const { return second_ahead_.count() < ahead_max_ || second_at_ <= first_at_; }
  demand first(A&& item, const origin& from) {
    first_ahead_.note(from.event_ns, second_at_);
    return take(key_a_, std::move(item), from, [&](both& s, A&& a) {
      each_in(s.second, rule_.of_first(from.event_ns),
              [&](const kept<B>& b) { made_.add(std::invoke(f_, std::as_const(a), b.item), later(from, b.at)); });
      keep(s.first, from.event_ns, std::move(a));
    });
  }
  demand second(B&& item, const origin& from) {
    second_ahead_.note(from.event_ns, first_at_);
    return take(key_b_, std::move(item), from, [&](both& s, B&& b) {
      each_in(s.first, rule_.of_second(from.event_ns),
              [&](const kept<A>& a) { made_.add(std::invoke(f_, a.item, std::as_const(b)), later(from, a.at)); });
      keep(s.second, from.event_ns, std::move(b));
    });
  }
  demand pass(const two_marks& m) {
    if (m.both().event_ns > now_) now_ = m.both().event_ns;
    counted.note(m.both());
    first_at_ = m.reached(true);
    second_at_ = m.reached(false);
    first_ahead_.reached(second_at_);
    second_ahead_.reached(first_at_);
    made_.follow(m.both());
    return made_.pass_on(demand::more);
  }
  demand resume() {
    const demand d = out_.of(0).resume();
    return d == demand::none ? d : made_.pass_on(d);
  }
  void idle() { out_.of(0).idle(); }
  bool finish() {
    if (!keys_.empty()) forget(std::numeric_limits<std::int64_t>::max(), true);
    return made_.pass_on(demand::more) != demand::none && made_.empty() && out_.of(0).finish();
  }
  std::uint64_t state_bytes() const { return state_.used(); }
  counts counted;
  strand* self = nullptr;

 private:
  template <class T>
  struct kept {
    std::int64_t at;
    T item;
    [[no_unique_address]] counted_once<T> elsewhere;
  };
  template <class T>
  using items_kept = std::vector<kept<T>, state_allocator<kept<T>>>;
  struct both {  // sorted by time
    explicit both(state_account& a) : first(state_allocator<kept<A>>(a)), second(state_allocator<kept<B>>(a)) {}
    items_kept<A> first;
    items_kept<B> second;
    [[no_unique_address]] counted_bytes<K> of_key{};
  };
  both& of_key(K key) {
    const auto [at, is_new] = keys_.try_emplace(std::move(key), state_);
    if (is_new) at->second.of_key.changed(state_, at->first);
    return at->second;
  }
  template <class T>
  void keep(items_kept<T>& items, std::int64_t at, T&& item) {
    const counted_once<T> elsewhere(state_, item);
    if (items.empty() || items.back().at <= at) {
      items.push_back({at, std::move(item), elsewhere});
      return;
    }
    const auto later = [](std::int64_t t, const kept<T>& x) { return t < x.at; };
    items.insert(std::upper_bound(items.begin(), items.end(), at, later), {at, std::move(item), elsewhere});
  }
  template <class T, class Each>
  static void each_in(const items_kept<T>& items, join_rule::range r, Each each) {
    const auto earlier = [](const kept<T>& x, std::int64_t t) { return x.at < t; };
    for (auto it = std::lower_bound(items.begin(), items.end(), r.least, earlier);
         it != items.end() && it->at <= r.most; ++it)
      each(*it);
  }
  static origin later(origin from, std::int64_t other) {
    from.event_ns = std::max(from.event_ns, other);
    return from;
  }
  template <class T, class Key, class Add>
  demand take(Key& key, T&& item, const origin& from, Add add) {
    counted.in.add();
    if (from.event_ns != mark::never && from.event_ns < now_) {
      counted.dropped.add();
      counted.late.add();
      return demand::more;
    }
    counted.held.add();
    try {
      state_.check();
      if (from.event_ns == mark::never)
        throw error(errc::bad_argument, "an item without a time came to a join: put event_time before it");
      add(of_key(std::invoke(key, std::as_const(item))), std::move(item));
    } catch (...) {
      self->home->fail(of_.name().c_str(), from.number, 1, std::current_exception());
      return demand::none;
    }
    if (++kept_ >= forget_at_) {
      forget(now_, false);
      forget_at_ = std::max(kept_min, 2 * kept_);
    }
    return made_.pass_on(demand::more);
  }
  // Forgets items that no later one belongs to. Done when twice as many are kept as were needed the last time.
  void forget(std::int64_t now, bool all) {
    const auto drop = [&](auto& items, auto last_of) {
      auto end = items.begin();
      for (; end != items.end() && (all || last_of(end->at) < now); ++end) end->elsewhere.give_back(state_);
      const auto n = static_cast<std::size_t>(end - items.begin());
      items.erase(items.begin(), end);
      kept_ -= n;
      counted.held.take(n);
      counted.absorbed.add(n);
    };
    for (auto it = keys_.begin(); it != keys_.end();) {
      drop(it->second.first, [&](std::int64_t t) { return rule_.of_first(t).most; });
      drop(it->second.second, [&](std::int64_t t) { return rule_.of_second(t).most; });
      it = it->second.first.empty() && it->second.second.empty() ? keys_.erase(it) : std::next(it);
    }
  }

  static constexpr std::size_t kept_min = 1024;
  const node& of_;
  KeyA key_a_;
  KeyB key_b_;
  F f_;
  const join_rule rule_;
  const std::size_t ahead_max_;
  outlet<R>& out_;
  made_items<R> made_;
  state_account state_;
  std::unordered_map<K, both, std::hash<K>, std::equal_to<K>, state_allocator<std::pair<const K, both>>> keys_{
      state_allocator<std::pair<const K, both>>(state_)};
  std::size_t kept_ = 0, forget_at_ = kept_min;
  std::int64_t now_ = mark::never, first_at_ = mark::never, second_at_ = mark::never;
  ahead_count first_ahead_, second_ahead_;
};

/// Joins each item of the first flow with the item of the second one, the table, that was the last with its key at its
/// time; without times, with the last that has come.
template <class A, class B, class KeyA, class KeyB, class F, class R>
class looking_up {
 public:
  using K = std::decay_t<std::invoke_result_t<KeyA&, const A&>>;
  looking_up(const node& of, KeyA a, KeyB b, F f, const troupe::stream::lookup_options& o, outlet<R>& out)
      : of_(of),
        key_a_(std::move(a)),
        key_b_(std::move(b)),
        f_(std::move(f)),
        waiting_max_(o.waiting),
        ahead_max_(o.ahead),
        out_(out),
        state_(of.name(), of.state) {}

  bool wants_first() const { return waiting_.size() < waiting_max_; }
  // A table that is ahead waits, but not for items that wait for it, nor for those that say no times.
  bool wants_second() const {
    return rows_ahead_.count() < ahead_max_ || items_at_ == mark::never || table_at_ <= items_at_ || !wants_first();
  }
  demand first(A&& item, const origin& from) {
    counted.in.add();
    if (from.event_ns != mark::never && from.event_ns < asked_at_) {  // its row may be forgotten
      counted.dropped.add();
      counted.late.add();
      return demand::more;
    }
    counted.held.add();
    waiting_.push_back({std::move(item), from});
    return pass_on(demand::more);
  }
  demand second(B&& row, const origin& from) {
    counted.in.add();
    rows_ahead_.note(from.event_ns, items_at_);
    try {
      state_.check();
      const auto [place, is_new] = rows_.try_emplace(std::invoke(key_b_, std::as_const(row)), state_);
      row_versions& r = place->second;
      if (is_new) r.of_key.changed(state_, place->first);
      const counted_once<B> elsewhere(state_, row);
      const auto later = [](std::int64_t t, const version& v) { return t < v.at; };
      r.all.insert(std::upper_bound(r.all.begin(), r.all.end(), from.event_ns, later),
                   {from.event_ns, std::move(row), elsewhere});
      if (r.all.size() >= r.forget_at) forget(r);
    } catch (...) {
      counted.held.add();
      return fail(from);
    }
    counted.absorbed.add();
    return demand::more;
  }
  demand pass(const two_marks& m) {
    counted.note(m.both());
    table_at_ = m.reached(false);
    items_at_ = m.reached(true);
    rows_ahead_.reached(items_at_);
    asked_at_ = std::max(asked_at_, m.last(true).event_ns);
    const mark said{std::max(behind_.event_ns, m.both().event_ns), m.both().is_idle, m.both().barrier};
    has_mark_ = has_mark_ || said != behind_;
    behind_ = said;
    return pass_on(demand::more);
  }
  demand resume() {
    const demand d = out_.of(0).resume();
    return d == demand::none ? d : pass_on(d);
  }
  void idle() { out_.of(0).idle(); }
  bool finish() { return pass_on(demand::more) != demand::none && waiting_.empty() && out_.of(0).finish(); }
  std::uint64_t state_bytes() const { return state_.used(); }
  counts counted;
  strand* self = nullptr;

 private:
  struct version {
    std::int64_t at;
    B row;
    [[no_unique_address]] counted_once<B> elsewhere;
  };
  static constexpr std::size_t versions_min = 4;
  using versions = std::vector<version, state_allocator<version>>;
  struct row_versions {  // sorted by time
    explicit row_versions(state_account& a) : all(state_allocator<version>(a)) {}
    versions all;
    std::size_t forget_at = versions_min;
    [[no_unique_address]] counted_bytes<K> of_key{};
  };
  struct waits {
    A item;
    origin from;
  };
  demand fail(const origin& from) {
    self->home->fail(of_.name().c_str(), from.number, 1, std::current_exception());
    return demand::none;
  }
  // Answers those whose time the table has reached, in their order; then the mark may pass.
  demand pass_on(demand d) {
    while (!waiting_.empty()) {
      waits& w = waiting_.front();
      if (w.from.event_ns != mark::never && w.from.event_ns >= table_at_) break;
      std::optional<R> answer;
      try {
        answer.emplace(std::invoke(f_, std::as_const(w.item), row_at(w.item, w.from.event_ns)));
      } catch (...) {
        return fail(w.from);
      }
      const origin from = w.from;
      waiting_.pop_front();
      counted.held.take(1);
      counted.out.add();
      const demand next = out_.of(0).push(std::move(*answer), from);
      if (next == demand::none) return next;
      d = least(d, next);
    }
    if (!has_mark_) return d;
    has_mark_ = false;
    return least(d, out_.of(0).pass(behind_));
  }
  const B* row_at(const A& item, std::int64_t at) {
    const auto found = rows_.find(std::invoke(key_a_, item));
    if (found == rows_.end()) return nullptr;
    const versions& known = found->second.all;
    if (at == mark::never) return &known.back().row;
    const auto later = [](std::int64_t t, const version& v) { return t < v.at; };
    const auto place = std::upper_bound(known.begin(), known.end(), at, later);
    return place == known.begin() ? nullptr : &std::prev(place)->row;
  }
  // Of the versions that are older than anything that will be asked for the last one is kept. Done when twice as many
  // are kept as were needed the last time.
  void forget(row_versions& r) {
    std::int64_t oldest = asked_at_;
    for (const waits& w : waiting_) oldest = std::min(oldest, w.from.event_ns);
    const auto later = [](std::int64_t t, const version& v) { return t < v.at; };
    // Without times the last one is asked for.
    const auto end = oldest == mark::never && r.all.back().at == mark::never
                         ? r.all.end()
                         : std::upper_bound(r.all.begin(), r.all.end(), oldest, later);
    if (end - r.all.begin() > 1) {
      for (auto it = r.all.begin(); it != std::prev(end); ++it) it->elsewhere.give_back(state_);
      r.all.erase(r.all.begin(), std::prev(end));
    }
    r.forget_at = std::max(versions_min, 2 * r.all.size());
  }

  const node& of_;
  KeyA key_a_;
  KeyB key_b_;
  F f_;
  const std::size_t waiting_max_, ahead_max_;
  outlet<R>& out_;
  state_account state_;
  std::unordered_map<K, row_versions, std::hash<K>, std::equal_to<K>, state_allocator<std::pair<const K, row_versions>>>
      rows_{state_allocator<std::pair<const K, row_versions>>(state_)};
  std::deque<waits> waiting_;
  std::int64_t table_at_ = mark::never, items_at_ = mark::never, asked_at_ = mark::never;
  ahead_count rows_ahead_;
  mark behind_;
  bool has_mark_ = false;
};

/// A stage that joins, of one of the two kinds.
template <class A, class B, class R, class Stage>
class join_node final : public two_flows_node<A, B, Stage> {
 public:
  template <class... Rest>
  join_node(std::string name, const char* kind, Rest&&... rest) : two_flows_node<A, B, Stage>(std::move(name), kind) {
    this->stage_ = std::make_unique<Stage>(*this, std::forward<Rest>(rest)..., out);
  }
  outlet<R> out;
};

}  // namespace troupe::detail::streams
