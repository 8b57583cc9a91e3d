// What this file is for: the stage that keeps a state for each key, which its functions change.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <troupe/detail/streams/event_times.hpp>
#include <troupe/detail/streams/made_items.hpp>
#include <troupe/detail/streams/stages.hpp>
#include <troupe/error.hpp>
#include <troupe/stream/process.hpp>

namespace troupe::detail::streams {

/// Calls a function on each item with the state of its key, and another one at the times that those ask for.
template <class T, class U, class K, class S, class KeyOf, class OnItem, class OnTime>
class process_lane final : public inlet<T> {
 public:
  struct functions {
    KeyOf key_of;
    S initial;
    OnItem on_item;
    OnTime on_time;
  };
  process_lane(const node& of, functions& f, const troupe::stream::process_options& o, outlet<U>& out)
      : of_(of),
        f_(f),
        keep_ns_(o.keep.count()),
        out_(out),
        attempt_(of, counted),
        state_(of.name(), of.state),
        made_(out, counted) {}

  demand push(T&& item, const origin& from) override {
    counted.in.add();
    attempt_.began();
    try {
      make_room();
      const auto [at, is_new] = keys_.try_emplace(std::invoke(f_.key_of, std::as_const(item)), f_.initial);
      if (is_new) at->second.of_key.changed(state_, at->first);
      key_state& k = at->second;
      if (is_over(k, std::max(now_, from.event_ns))) {
        forget_time(k);
        k.begin_anew(f_.initial);
      }
      k.last_ns = std::max(k.last_ns, from.event_ns);
      context c(*this, at->first, from);
      std::invoke(f_.on_item, c, k.state, std::as_const(item));
      k.of_state.changed(state_, k.state);
      after_call(at, c);
    } catch (...) {
      const demand d = attempt_.failed(*self, item, from, true);
      return d == demand::none ? d : made_.pass_on(d);
    }
    counted.absorbed.add();
    if (keep_ns_ != 0 && keys_.size() >= forget_at_) forget();
    return made_.pass_on(demand::more);
  }
  demand pass(const mark& m) override {
    counted.note(m);
    made_.follow(m);
    if (m.event_ns > now_) {
      now_ = m.event_ns;
      if (!call_until(now_)) return demand::none;
    }
    return made_.pass_on(demand::more);
  }
  demand resume() override {
    const demand d = out_.of(0).resume();
    return d == demand::none ? d : made_.pass_on(d);
  }
  void idle() override { out_.of(0).idle(); }
  // At the end of a flow all times have come; those that are asked for then never do.
  bool finish() override {
    if (!is_ended_) {
      is_ended_ = true;
      now_ = std::numeric_limits<std::int64_t>::max();
      if (!call_until(now_)) return false;
    }
    return made_.pass_on(demand::more) != demand::none && made_.empty() && out_.of(0).finish();
  }
  std::uint64_t state_bytes() const { return state_.used(); }
  counts counted;
  strand* self = nullptr;

 private:
  using times = std::multimap<std::int64_t, K, std::less<>, state_allocator<std::pair<const std::int64_t, K>>>;
  struct key_state {
    explicit key_state(const S& s) : state(s) {}
    S state;
    std::int64_t last_ns = mark::never;  // of its items
    bool has_time = false;
    typename times::iterator time{};  // at which it is to be called
    [[no_unique_address]] counted_bytes<S> of_state{};
    [[no_unique_address]] counted_bytes<K> of_key{};
    void begin_anew(const S& s) {
      state = s;
      last_ns = mark::never;
    }
  };
  using keys =
      std::unordered_map<K, key_state, std::hash<K>, std::equal_to<K>, state_allocator<std::pair<const K, key_state>>>;

  class context final : public troupe::stream::key_context<K, U> {
   public:
    using point = troupe::stream::event_point;
    context(process_lane& of, const K& key, const origin& from) : of_(of), key_(key), from_(from) {}
    const K& key() const override { return key_; }
    point time() const override { return point(std::chrono::nanoseconds(from_.event_ns)); }
    point watermark() const override { return point(std::chrono::nanoseconds(of_.now_)); }
    void emit(U u) override { of_.made_.add(std::move(u), from_); }
    void wake_at(point t) override {
      wake_ns = std::clamp<std::int64_t>(t.time_since_epoch().count(), -event_ns_max, event_ns_max);
    }
    void forget() override { forgets = true; }
    std::int64_t wake_ns = mark::never;
    bool forgets = false;

   private:
    process_lane& of_;
    const K& key_;
    const origin from_;
  };

  void after_call(typename keys::iterator at, const context& c) {
    if (c.forgets) {
      forget_time(at->second);
      keys_.erase(at);
      return;
    }
    if (c.wake_ns == mark::never || is_ended_) return;
    key_state& k = at->second;
    if (k.has_time) {
      auto moved = times_.extract(k.time);
      moved.key() = c.wake_ns;
      k.time = times_.insert(std::move(moved));
    } else {
      k.time = times_.emplace(c.wake_ns, at->first);
      k.has_time = true;
    }
    if (c.wake_ns <= now_ && !is_calling_) static_cast<void>(call_until(now_));
  }
  void forget_time(key_state& k) {
    if (std::exchange(k.has_time, false)) times_.erase(k.time);
  }
  // False: a function has thrown, and the stream has failed.
  bool call_until(std::int64_t now) {
    is_calling_ = true;
    bool ok = true;
    while (ok && !times_.empty() && times_.begin()->first <= now) {
      const std::int64_t due = times_.begin()->first;
      const auto at = keys_.find(times_.begin()->second);
      forget_time(at->second);
      if (is_over(at->second, due)) {
        keys_.erase(at);
        continue;
      }
      try {
        origin from;
        from.event_ns = due;
        context c(*this, at->first, from);
        std::invoke(f_.on_time, c, at->second.state);
        at->second.of_state.changed(state_, at->second.state);
        after_call(at, c);
      } catch (...) {
        self->home->fail(of_.name().c_str(), 0, 1, std::current_exception());
        ok = false;
      }
    }
    is_calling_ = false;
    return ok;
  }
  bool is_over(const key_state& k, std::int64_t now) const {
    return keep_ns_ != 0 && k.last_ns != mark::never && saturated(k.last_ns, keep_ns_) < now;
  }
  // For one key more and a time that it may ask for. What is over is forgotten before an item is refused, but not for
  // each item anew.
  void make_room() {
    const std::size_t grown =
        keys_.size() + 1 > static_cast<std::size_t>(keys_.max_load_factor() * static_cast<float>(keys_.bucket_count()))
            ? 3 * keys_.bucket_count() * sizeof(void*)
            : 0;
    const std::size_t more = sizeof(typename keys::value_type) + 2 * sizeof(typename times::value_type) + 128 + grown;
    try {
      state_.check();
      state_.make_room(more);
    } catch (const error&) {
      if (keep_ns_ == 0 || now_ == forgotten_at_ || now_ - std::max(forgotten_at_, -event_ns_max) < keep_ns_ / 8) throw;
      forget();
      state_.check();
      state_.make_room(more);
    }
  }
  // Done when twice as many keys are there as were needed the last time.
  void forget() {
    forgotten_at_ = now_;
    for (auto it = keys_.begin(); it != keys_.end();) {
      if (!is_over(it->second, now_)) {
        ++it;
        continue;
      }
      forget_time(it->second);
      it = keys_.erase(it);
    }
    forget_at_ = std::max(keys_min, 2 * keys_.size());
  }

  static constexpr std::size_t keys_min = 1024;
  const node& of_;
  functions& f_;
  const std::int64_t keep_ns_;
  outlet<U>& out_;
  attempt<T> attempt_;
  state_account state_;
  made_items<U> made_;
  keys keys_{typename keys::allocator_type(state_)};
  times times_{typename times::allocator_type(state_)};  // when keys want to be called, each once at most
  std::size_t forget_at_ = keys_min;
  std::int64_t now_ = mark::never, forgotten_at_ = mark::never;
  bool is_calling_ = false, is_ended_ = false;
};

template <class T, class U, class K, class S, class KeyOf, class OnItem, class OnTime>
class process_node final : public stage<T, process_lane<T, U, K, S, KeyOf, OnItem, OnTime>> {
 public:
  using lane_type = process_lane<T, U, K, S, KeyOf, OnItem, OnTime>;
  process_node(std::string name, typename lane_type::functions f, const troupe::stream::process_options& o)
      : stage<T, lane_type>(std::move(name), "process"), f_(std::move(f)) {
    this->lanes_.push_back(std::make_unique<lane_type>(*this, f_, o, out));
  }
  outlet<U> out;

 private:
  typename lane_type::functions f_;
};

}  // namespace troupe::detail::streams
