// What this file is for: stages that know event time: where it is taken from, and windows.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/streams/event_times.hpp>
#include <troupe/detail/streams/made_items.hpp>
#include <troupe/detail/streams/panes.hpp>
#include <troupe/detail/streams/stages.hpp>
#include <troupe/stream/time.hpp>

namespace troupe::detail::streams {

/// Finds the watermark of one flow.
class watermark {
 public:
  explicit watermark(const troupe::stream::event_time_options& o) : options_(o) {}
  /// Notes the time of an item. `now_ns`: a function that asks the clock. That is seldom needed: what the clock has
  /// allowed before is allowed still, but for a time that leaps. The clock may have been wrong before and right since.
  /// False: the time is too far ahead of the clock.
  template <class Now>
  bool note(std::int64_t event_ns, Now now_ns) {
    if (event_ns <= latest_) return true;
    if (event_ns > unasked_max_) {
      limit_ = saturated(now_ns(), options_.ahead_max.count());
      if (event_ns > limit_) {
        unasked_max_ = std::min(unasked_max_, limit_);
        return false;
      }
    }
    latest_ = event_ns;
    unasked_max_ = std::min(limit_, saturated(latest_, options_.ahead_max.count()));
    return true;
  }
  /// The time before which nothing is expected; `mark::never`: nothing is known.
  std::int64_t now() const {
    return latest_ == mark::never ? mark::never : saturated(latest_, -options_.out_of_order.count());
  }

 private:
  const troupe::stream::event_time_options options_;
  std::int64_t latest_ = mark::never, limit_ = mark::never, unasked_max_ = mark::never;
};

/// Gives items their time, and says watermarks.
template <class T, class F>
class time_lane final : public inlet<T> {
 public:
  time_lane(const node& of, F& f, const troupe::stream::event_time_options& o, outlet<T>& out)
      : f_(f), out_(out), options_(o), watermark_(o), attempt_(of, counted) {}
  demand push(T&& item, const origin& from) override {
    counted.in.add();
    attempt_.began();
    return stamp(item, from);
  }
  // What was said before this stage is about other times.
  demand pass(const mark& m) override {
    const bool is_barrier = m.barrier != std::exchange(barrier_, m.barrier);
    return m.is_idle || is_barrier ? say(m.is_idle || said_.is_idle) : demand::more;
  }
  demand resume() override {
    const demand d = out_.of(0).resume();
    if (d == demand::none) return d;
    if (attempt_.waits()) {
      const std::unique_ptr<held<T>> again = attempt_.take(*self);
      return again ? stamp(again->value, again->from) : demand::none;
    }
    return options_.idle.count() > 0 ? look() : d;
  }
  void idle() override {
    static_cast<void>(say(false));
    if (options_.idle.count() > 0) static_cast<void>(look());
    out_.of(0).idle();
  }
  bool finish() override {
    if (said_.event_ns != watermark_.now() && say(false) == demand::none) return false;
    return out_.of(0).finish();
  }
  counts counted;
  strand* self = nullptr;

 private:
  demand stamp(T& item, const origin& from) {
    origin o = from;
    try {
      if (!event_ns_of(std::invoke(f_, std::as_const(item)), o.event_ns))
        throw error(errc::bad_argument, "the item's time is out of range");
    } catch (...) {
      return attempt_.failed(*self, item, from, true);
    }
    if (said_.is_idle) static_cast<void>(say(false));  // others wait for this flow again
    if (!watermark_.note(o.event_ns, wall_ns)) counted.ahead.add();
    counted.out.add();
    came_ = true;
    const demand d = out_.of(0).push(std::move(item), o);
    if (++unsaid_ < said_after || d == demand::none) return d;
    return least(d, say(false));
  }
  demand say(bool is_idle) {
    unsaid_ = 0;
    const mark m{watermark_.now(), is_idle, barrier_};
    if (m == said_) return demand::more;
    said_ = m;
    counted.note(m);
    return out_.of(0).pass(m);
  }
  // Once in `idle` or earlier: whether an item has come since the last time.
  demand look() {
    const std::int64_t now = now_ns();
    if (std::exchange(came_, false) || quiet_since_ == 0) {
      quiet_since_ = now;
    } else if (now - quiet_since_ >= options_.idle.count()) {
      return said_.is_idle ? demand::more : say(true);
    }
    self->home->ready_at(*self,
                         std::chrono::steady_clock::time_point(std::chrono::nanoseconds(quiet_since_) + options_.idle));
    return demand::more;
  }
  static constexpr int said_after = 64;  // items
  F& f_;
  outlet<T>& out_;
  const troupe::stream::event_time_options options_;
  watermark watermark_;
  attempt<T> attempt_;
  mark said_;
  int unsaid_ = 0;
  std::uint64_t barrier_ = 0;
  bool came_ = false;
  std::int64_t quiet_since_ = 0;
};
template <class T, class F>
class time_node final : public stage<T, time_lane<T, F>> {
 public:
  time_node(std::string name, F f, const troupe::stream::event_time_options& o)
      : stage<T, time_lane<T, F>>(std::move(name), "event_time"), f_(std::move(f)) {
    this->lanes_.push_back(std::make_unique<time_lane<T, F>>(*this, f_, o, out));
  }
  outlet<T> out;

 private:
  F f_;
};

/// Windows over the items of a flow, for each key. What windows have come to is passed on when the mark reaches their
/// end: earlier ends first, equal ones in the order of their keys' first items.
template <class T, class K, class KeyOf, class Fold, class S>
class window_lane final : public inlet<T> {
 public:
  using result = troupe::stream::windowed<K, S>;
  window_lane(const node& of, KeyOf& key, Fold& f, const troupe::stream::windowing& w,
              const troupe::stream::window_options& o, outlet<result>& out)
      : of_(of),
        key_of_(key),
        fold_(f),
        how_(w),
        late_ns_(o.late.count()),
        out_(out),
        attempt_(of, counted),
        state_(of.name(), of.state),
        made_(out, counted) {
    // What is passed on again when a late item has come is kept as it was, window by window.
    const std::int64_t size = how_.size.count(), slide = how_.slide.count();
    if constexpr (is_mergeable)
      if (how_.kind == troupe::stream::windowing::shape::fixed && late_ns_ == 0 && slide < size && size % slide == 0)
        panes_.emplace(fold_, size, slide, state_);
  }

  demand push(T&& item, const origin& from) override {
    counted.in.add();
    attempt_.began();
    return add(item, from);
  }
  demand pass(const mark& m) override {
    counted.note(m);
    made_.follow(m);
    if (m.event_ns > now_) {
      now_ = m.event_ns;
      if (!end_windows_or_fail(now_)) return demand::none;
    }
    return made_.pass_on(demand::more);
  }
  demand resume() override {
    demand d = out_.of(0).resume();
    if (d == demand::none) return d;
    d = made_.pass_on(d);
    if (d == demand::none || !attempt_.waits()) return d;
    const std::unique_ptr<held<T>> again = attempt_.take(*self);
    return again ? add(again->value, again->from) : demand::none;
  }
  void idle() override { out_.of(0).idle(); }
  // The end of a flow is the end of all windows.
  bool finish() override {
    if (!is_over_) {
      is_over_ = true;
      if (!end_windows_or_fail(std::numeric_limits<std::int64_t>::max())) return false;
    }
    return made_.pass_on(demand::more) != demand::none && made_.empty() && out_.of(0).finish();
  }
  std::uint64_t state_bytes() const { return state_.used(); }
  counts counted;
  strand* self = nullptr;

 private:
  static constexpr bool is_mergeable = !std::is_same_v<decltype(Fold::merge), troupe::stream::not_mergeable>;
  struct pane {
    S state;
    std::int64_t begin, end;
    std::uint64_t order;
    int revision = -1;  // of what was passed on last
    origin from;
    [[no_unique_address]] counted_bytes<S> of_state{};
    [[no_unique_address]] counted_bytes<K> of_key{};
  };
  template <class V>
  using by_key = std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, state_allocator<std::pair<const K, V>>>;
  using panes_of_keys = by_key<pane>;
  using panes_of_key = std::vector<pane, state_allocator<pane>>;
  using key_times = std::multimap<std::int64_t, K, std::less<>, state_allocator<std::pair<const std::int64_t, K>>>;
  template <class Container>
  auto empty() {
    return Container(typename Container::allocator_type(state_));
  }

  // The item's time says which windows it is in; without one it is in none.
  demand add(T& item, const origin& from) {
    if (from.event_ns == mark::never) {
      try {
        throw error(errc::bad_argument, "an item without a time came to a window: put event_time before it");
      } catch (...) {
        return attempt_.failed(*self, item, from, true);
      }
    }
    const bool is_session = how_.kind == troupe::stream::windowing::shape::session;
    window_starts in{from.event_ns, from.event_ns};
    if (!is_session) in = window_starts::of(from.event_ns, how_.size.count(), how_.slide.count());
    // It is late if the last window that it is in is gone.
    if (saturated(saturated(in.last, how_.size.count()), late_ns_) <= now_) {
      counted.dropped.add();
      counted.late.add();
      return demand::more;
    }
    try {
      state_.check();
      K key = std::invoke(key_of_, std::as_const(item));
      if (is_session)
        add_to_session(std::move(key), item, from);
      else if (panes_)
        panes_->add(in.last, std::move(key), item, from);
      else
        add_to_windows(in, key, item, from);
    } catch (...) {
      return attempt_.failed(*self, item, from, true);
    }
    counted.absorbed.add();
    return made_.pass_on(demand::more);
  }
  void add_to_windows(window_starts in, const K& key, const T& item, const origin& from) {
    const auto for_each = [&](auto f) {
      for (std::int64_t begin = in.last; begin >= in.first; begin -= how_.slide.count()) {
        const std::int64_t end = saturated(begin, how_.size.count());
        if (saturated(end, late_ns_) <= now_) break;
        f(pane_of(key, begin, end, from));
      }
    };
    if (in.first != in.last) for_each([](pane&) {});  // there is room for all of them, or the item is in none
    for_each([&](pane& p) { add_to(p, key, item); });
  }
  pane& pane_of(const K& key, std::int64_t begin, std::int64_t end, const origin& from) {
    if (!last_ || last_begin_ != begin) {
      last_ = &windows_.try_emplace(begin, typename panes_of_keys::allocator_type(state_)).first->second;
      last_begin_ = begin;
    }
    auto found = last_->find(key);
    if (found == last_->end()) {
      found = last_->emplace(key, pane{fold_.initial, begin, end, ++order_, -1, from}).first;
      found->second.of_key.changed(state_, key);
    }
    return found->second;
  }
  void add_to(pane& p, const K& key, const T& item) {
    std::invoke(fold_.add, p.state, item);
    p.of_state.changed(state_, p.state);
    if (p.end <= now_) tell(key, p);  // it was over, and has changed
  }
  void add_to_session(K key, const T& item, const origin& from) {
    if constexpr (!is_mergeable) {
      throw error(errc::bad_argument, "sessions need a fold with a merge");
    } else {
      auto& all = sessions_.try_emplace(key, typename panes_of_key::allocator_type(state_)).first->second;
      pane joined{fold_.initial, from.event_ns, saturated(from.event_ns, how_.size.count()), ++order_, -1, from};
      std::invoke(fold_.add, joined.state, item);
      for (auto it = all.begin(); it != all.end();) {
        if (it->end <= joined.begin || joined.end <= it->begin) {
          ++it;
          continue;
        }
        std::swap(it->state, joined.state);  // the earlier one first
        std::invoke(fold_.merge, joined.state, it->state);
        joined.begin = std::min(joined.begin, it->begin);
        joined.end = std::max(joined.end, it->end);
        joined.order = std::min(joined.order, it->order);
        joined.revision = std::max(joined.revision, it->revision);
        it = all.erase(it);
      }
      joined.of_state.changed(state_, joined.state);
      joined.of_key.changed(state_, key);
      all.push_back(std::move(joined));
      ends_.emplace(all.back().end, key);
      if (all.back().end <= now_) tell(key, all.back());
    }
  }
  void tell(const K& key, pane& p) {
    origin from = p.from;
    from.event_ns = p.end - 1;  // the last moment in it, for windows behind
    made_.add(result{key, span_of(p.begin, p.end), p.state, ++p.revision}, from);
  }
  static troupe::stream::span span_of(std::int64_t begin, std::int64_t end) {
    using troupe::stream::event_point;
    return {event_point(std::chrono::nanoseconds(begin)), event_point(std::chrono::nanoseconds(end))};
  }
  bool end_windows_or_fail(std::int64_t now) {
    try {
      end_windows(now);
      return true;
    } catch (...) {  // of a merge, or of a copy
      self->home->fail(of_.name().c_str(), 0, 1, std::current_exception());
      return false;
    }
  }
  // Passes on the windows that end by then, and forgets those that no item can change any more.
  void end_windows(std::int64_t now) {
    const bool all = now == std::numeric_limits<std::int64_t>::max();
    last_ = nullptr;
    if constexpr (is_mergeable)
      if (panes_) {
        panes_->end_until(now, all, [&](const K& key, std::int64_t begin, std::int64_t end, S&& state, origin from) {
          from.event_ns = end - 1;
          made_.add(result{key, span_of(begin, end), std::move(state), 0}, from);
        });
        return;
      }
    for (auto at = windows_.begin(); at != windows_.end();) {
      const std::int64_t end = saturated(at->first, how_.size.count());
      if (end > now && !all) break;
      if (at->first >= told_before_ || all) {
        std::vector<std::pair<const K*, pane*>> ended;
        for (auto& [key, p] : at->second)
          if (p.revision < 0) ended.emplace_back(&key, &p);
        std::sort(ended.begin(), ended.end(),
                  [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
        for (auto& [key, p] : ended) tell(*key, *p);
      }
      if (all || saturated(end, late_ns_) <= now)
        at = windows_.erase(at);
      else
        told_before_ = (at++)->first + 1;
    }
    while (!ends_.empty() && (ends_.begin()->first <= now || all)) {
      const auto [end, key] = *ends_.begin();
      ends_.erase(ends_.begin());
      const auto found = sessions_.find(key);
      if (found == sessions_.end()) continue;
      for (auto it = found->second.begin(); it != found->second.end();) {
        if (it->end != end) {
          ++it;
          continue;
        }
        if (it->revision < 0) tell(key, *it);
        const std::int64_t gone = saturated(end, late_ns_);
        if (all || gone <= now) {
          it = found->second.erase(it);
          continue;
        }
        later_.emplace(gone, key);
        ++it;
      }
      if (found->second.empty()) sessions_.erase(found);
    }
    while (!later_.empty() && (later_.begin()->first <= now || all)) {
      const auto found = sessions_.find(later_.begin()->second);
      later_.erase(later_.begin());
      if (found == sessions_.end()) continue;
      std::erase_if(found->second, [&](const pane& p) { return all || saturated(p.end, late_ns_) <= now; });
      if (found->second.empty()) sessions_.erase(found);
    }
  }

  const node& of_;
  KeyOf& key_of_;
  Fold& fold_;
  const troupe::stream::windowing how_;
  const std::int64_t late_ns_;
  outlet<result>& out_;
  attempt<T> attempt_;
  state_account state_;
  std::optional<sliding_panes<K, S, Fold>> panes_;  // of windows that slide, where that is less work
  std::map<std::int64_t, panes_of_keys, std::less<>, state_allocator<std::pair<const std::int64_t, panes_of_keys>>>
      windows_ = empty<decltype(windows_)>();  // of others, by their beginnings
  panes_of_keys* last_ = nullptr;              // in which the last item was
  std::int64_t last_begin_ = 0;
  by_key<panes_of_key> sessions_ = empty<by_key<panes_of_key>>();
  // When a session may be over; when one that is over is forgotten.
  key_times ends_ = empty<key_times>(), later_ = empty<key_times>();
  std::uint64_t order_ = 0;
  std::int64_t now_ = mark::never, told_before_ = mark::never;
  made_items<result> made_;
  bool is_over_ = false;
};
template <class T, class K, class KeyOf, class Fold, class S>
class window_node final : public stage<T, window_lane<T, K, KeyOf, Fold, S>> {
 public:
  using lane_type = window_lane<T, K, KeyOf, Fold, S>;
  window_node(std::string name, KeyOf key, Fold f, const troupe::stream::windowing& w,
              const troupe::stream::window_options& o)
      : stage<T, lane_type>(std::move(name), "window"), key_(std::move(key)), fold_(std::move(f)) {
    this->lanes_.push_back(std::make_unique<lane_type>(*this, key_, fold_, w, o, out));
  }
  outlet<typename lane_type::result> out;

 private:
  KeyOf key_;
  Fold fold_;
};

}  // namespace troupe::detail::streams
