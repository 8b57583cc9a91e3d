// What this file is for: stages that call a function on each item (map, filter, flat_map, sink), and what happens when
// it throws.
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
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <troupe/detail/streams/node.hpp>
#include <troupe/detail/streams/strands.hpp>

namespace troupe::detail::streams {

/// A node with one way in and lanes of type `Lane`, each an inlet<T> with members `counted` and `self`.
template <class T, class Lane>
class stage : public node, public port_base<T> {
 public:
  using node::node;
  inlet<T>& at(int i) override { return *lanes_[static_cast<std::size_t>(i)]; }
  std::unique_ptr<edge_base> make_edge(int, const troupe::stream::edge_options& o) override {
    return std::make_unique<edge<T>>(name(), o);
  }
  std::size_t item_bytes(int) const override { return fixed_item_bytes<T>; }
  std::unique_ptr<strand> make_strand(int i, const std::vector<edge_base*>& edges) override {
    return std::make_unique<segment<T>>(static_cast<edge<T>&>(*edges[0]), at(i));
  }
  void bind(int i, strand& s) override { lanes_[static_cast<std::size_t>(i)]->self = &s; }
  void add_to(troupe::stream::stage_report& r) const override {
    for (const auto& l : lanes_) {
      l->counted.add_to(r);
      if constexpr (requires { l->state_bytes(); }) r.state_bytes += l->state_bytes();
    }
  }

 protected:
  std::vector<std::unique_ptr<Lane>> lanes_;
};

/// Whether an item can be copied, with what it has: std::vector says that it can, whatever its elements are.
template <class T>
struct is_copyable : std::is_copy_constructible<T> {};
template <class T>
requires std::ranges::range<T> &&(!std::is_same_v<std::ranges::range_value_t<T>, T>)struct is_copyable<T>
    : std::bool_constant<std::is_copy_constructible_v<T> && is_copyable<std::ranges::range_value_t<T>>::value> {
};
/// Whether a stage's function can be called on an item that stays as it is. A function that takes by value a vector of
/// what cannot be copied says that it can.
template <class F, class T>
inline constexpr bool takes_const = std::is_invocable_v<F&, const T&> &&
                                    (is_copyable<T>::value || !std::is_invocable_v<F&, T&&>);

/// The pause before an item is tried again, after so many attempts.
inline std::chrono::nanoseconds pause_before(const troupe::stream::failure& f, int attempts) {
  constexpr std::chrono::nanoseconds most = std::chrono::minutes(1);
  std::chrono::nanoseconds pause = std::min(f.backoff, most);
  for (int i = 1; i < attempts && pause.count() != 0 && pause < most; ++i) pause = std::min(2 * pause, most);
  return pause;
}

/// Calls a stage's function on an item, and does what the stage does when that throws.
template <class T>
class attempt {
 public:
  attempt(const node& of, counts& c) : of_(of), counted_(c) {}

  /// An item that waits to be tried again.
  bool waits() const { return again_ != nullptr; }
  /// Returns the item if its time has come; the strand is told when it does.
  std::unique_ptr<held<T>> take(strand& self) {
    if (now() < due_) {
      self.home->ready_at(self, due_);
      return nullptr;
    }
    counted_.held.take(1);
    return std::move(again_);
  }
  /// True if the function must leave the item as it is.
  bool keeps_item() const {
    return of_.options.fail.retries != 0 || of_.options.fail.last == troupe::stream::failure::act::dead_letter;
  }
  void began() { tried_ = 0; }
  /// In a handler: what happens to the item on which the function has thrown. `none`: it waits.
  demand failed(strand& self, T& item, const origin& from, bool is_there) {
    ++tried_;
    const troupe::stream::failure& f = of_.options.fail;
    const std::exception_ptr why = std::current_exception();
    if (is_there && tried_ <= f.retries) {
      counted_.retries.add();
      counted_.held.add();
      again_ = std::make_unique<held<T>>(held<T>{std::move(item), from, 0});
      due_ = now() + pause_before(f, tried_);
      self.home->ready_at(self, due_);
      return demand::none;
    }
    switch (f.last) {
      case troupe::stream::failure::act::drop:
        counted_.dropped.add();
        return demand::more;
      case troupe::stream::failure::act::dead_letter: {
        troupe::stream::letter l{of_.name(), why, tried_, from.number, is_there ? &item : nullptr, &typeid(T)};
        counted_.dead.add();
        return self.home->bury(l) ? demand::more : demand::none;
      }
      case troupe::stream::failure::act::fail:
        break;
    }
    counted_.held.add();  // it stays where it is
    self.home->fail(of_.name().c_str(), from.number, tried_, why);
    return demand::none;
  }

 private:
  const node& of_;
  counts& counted_;
  std::unique_ptr<held<T>> again_;
  int tried_ = 0;
  std::chrono::steady_clock::time_point due_{};
};

/// A lane that calls a function on each item. `Self` has `demand done(result&&, from)` for what it returns,
/// `resume_rest`, `idle_rest`, `finish_rest` for what lies behind.
/// `Keeps`: the item is needed afterwards, so the function never gets it to take.
template <class T, class F, class Self, bool Keeps = false>
class calling_lane : public inlet<T> {
 public:
  calling_lane(const node& of, F& f) : f_(f), attempt_(of, counted) {}

  demand push(T&& item, const origin& from) final {
    counted.in.add();
    attempt_.began();
    return call(item, from);
  }
  demand resume() final {
    if (me().resume_rest() == demand::none) return demand::none;
    if (!attempt_.waits()) return demand::more;
    const std::unique_ptr<held<T>> again = attempt_.take(*self);
    return again ? call(again->value, again->from) : demand::none;
  }
  demand pass(const mark& m) final { return me().pass_rest(m); }
  void idle() final { me().idle_rest(); }
  bool finish() final { return me().finish_rest(); }

  counts counted;
  strand* self = nullptr;

 private:
  Self& me() { return static_cast<Self&>(*this); }
  static constexpr bool can_keep = takes_const<F, T>;
  using result = typename std::conditional_t<!Keeps && std::is_invocable_v<F&, T&&>, std::invoke_result<F&, T&&>,
                                             std::invoke_result<F&, const T&>>::type;

  decltype(auto) invoke(T& item) {
    if constexpr (Keeps || !std::is_invocable_v<F&, T&&>) {
      return std::invoke(f_, std::as_const(item));
    } else if constexpr (can_keep) {
      static_assert(std::is_same_v<std::decay_t<std::invoke_result_t<F&, const T&>>, std::decay_t<result>>,
                    "troupe::stream: the stage's function returns another type for const items");
      if (attempt_.keeps_item()) return static_cast<result>(std::invoke(f_, std::as_const(item)));
      return static_cast<result>(std::invoke(f_, std::move(item)));
    } else {
      return std::invoke(f_, std::move(item));
    }
  }
  demand call(T& item, const origin& from) {
    const std::int64_t begin = from.due_ns != 0 ? now_ns() : 0;
    if constexpr (std::is_void_v<result>) {
      try {
        invoke(item);
      } catch (...) {
        return attempt_.failed(*self, item, from, Keeps || (can_keep && attempt_.keeps_item()));
      }
      if (begin != 0) counted.service.record(now_ns() - begin);
      return me().done(from);
    } else {
      std::optional<std::decay_t<result>> y;
      try {
        y.emplace(invoke(item));
      } catch (...) {
        return attempt_.failed(*self, item, from, Keeps || (can_keep && attempt_.keeps_item()));
      }
      if (begin != 0) counted.service.record(now_ns() - begin);
      return me().done(std::move(*y), item, from);
    }
  }
  F& f_;
  attempt<T> attempt_;
};

/// Calls a function on each item and passes on what it returns.
template <class T, class U, class F>
class map_stage final {
 public:
  class lane_type final : public calling_lane<T, F, lane_type> {
   public:
    lane_type(const node& of, F& f, outlet<U>& out, int number)
        : calling_lane<T, F, lane_type>(of, f), out_(out), number_(number) {}
    demand done(U&& y, T&, const origin& from) {
      this->counted.out.add();
      return out_.of(number_).push(std::move(y), from);
    }
    demand pass_rest(const mark& m) { return out_.of(number_).pass(m); }
    demand resume_rest() { return out_.of(number_).resume(); }
    void idle_rest() { out_.of(number_).idle(); }
    bool finish_rest() { return out_.of(number_).finish(); }

   private:
    outlet<U>& out_;
    const int number_;
  };
  class node_type final : public stage<T, lane_type> {
   public:
    node_type(std::string name, F f, int lanes) : stage<T, lane_type>(std::move(name), "map"), f_(std::move(f)) {
      for (int i = 0; i < lanes; ++i) this->lanes_.push_back(std::make_unique<lane_type>(*this, f_, out, i));
    }
    std::unique_ptr<strand> make_strand(int i, const std::vector<edge_base*>& edges) override {
      if (this->options.parallel.most == 1) return stage<T, lane_type>::make_strand(i, edges);
      return std::make_unique<lane<T, U>>(static_cast<edge<T>&>(*edges[0]), this->at(i), out, i);
    }
    outlet<U> out;

   private:
    F f_;
  };
};

/// Passes on the items for which a function says so.
template <class T, class F>
class filter_lane final : public calling_lane<T, F, filter_lane<T, F>, true> {
 public:
  filter_lane(const node& of, F& f, outlet<T>& out) : calling_lane<T, F, filter_lane, true>(of, f), out_(out) {}
  demand done(bool passes, T& item, const origin& from) {
    if (!passes) {
      this->counted.absorbed.add();
      return demand::more;
    }
    this->counted.out.add();
    return out_.of(0).push(std::move(item), from);
  }
  demand pass_rest(const mark& m) { return out_.of(0).pass(m); }
  demand resume_rest() { return out_.of(0).resume(); }
  void idle_rest() { out_.of(0).idle(); }
  bool finish_rest() { return out_.of(0).finish(); }

 private:
  outlet<T>& out_;
};

/// A node with one function and one lane.
template <class T, class U, class F, class Lane>
class function_node final : public stage<T, Lane> {
 public:
  function_node(std::string name, const char* kind, F f) : stage<T, Lane>(std::move(name), kind), f_(std::move(f)) {
    this->lanes_.push_back(std::make_unique<Lane>(*this, f_, out));
  }
  outlet<U> out;

 private:
  F f_;
};

/// Passes on the elements of the range that a function makes of an item, one after the other as there is room.
template <class T, class Range, class U, class F>
class flat_lane final : public calling_lane<T, F, flat_lane<T, Range, U, F>> {
 public:
  flat_lane(const node& of, F& f, outlet<U>& out) : calling_lane<T, F, flat_lane>(of, f), of_(of), out_(out) {}
  demand done(Range&& made, T&, const origin& from) {
    this->counted.held.add();
    rest_.emplace(std::move(made), from);
    return go_on(demand::more);
  }
  demand pass_rest(const mark& m) { return out_.of(0).pass(m); }
  demand resume_rest() {
    const demand d = out_.of(0).resume();
    return d == demand::none || !rest_ ? d : go_on(d);
  }
  void idle_rest() { out_.of(0).idle(); }
  bool finish_rest() { return out_.of(0).finish(); }

 private:
  struct rest {
    rest(Range&& r, const origin& o) : all(std::move(r)), from(o) {}
    Range all;
    origin from;
    std::optional<std::ranges::iterator_t<Range>> at{};
  };
  // What is passed on of the range; when it throws, what it has made is through and the rest of it is given up. The
  // range may have no end: the strand is left and entered again now and then.
  demand go_on(demand d) {
    for (int count = 0;; ++count) {
      if (count == at_once || this->self->home->is_interrupted()) {
        this->self->home->ready(*this->self);
        return demand::none;
      }
      std::optional<U> y;
      try {
        if (!rest_->at)
          rest_->at.emplace(std::ranges::begin(rest_->all));
        else
          ++*rest_->at;
        if (*rest_->at == std::ranges::end(rest_->all)) break;
        if constexpr (std::ranges::view<Range>)
          y.emplace(**rest_->at);  // what a view shows may be somebody else's
        else
          y.emplace(std::move(**rest_->at));
      } catch (...) {
        return give_up(std::current_exception());
      }
      this->counted.created.add();
      this->counted.out.add();
      const demand next = out_.of(0).push(std::move(*y), rest_->from);
      if (next == demand::none) return next;
      d = least(d, next);
    }
    rest_.reset();
    this->counted.held.take(1);
    this->counted.absorbed.add();
    return d;
  }
  static constexpr int at_once = 4096;
  demand give_up(const std::exception_ptr& why) {
    const origin from = rest_->from;
    if (of_.options.fail.last == troupe::stream::failure::act::fail) {
      this->self->home->fail(of_.name().c_str(), from.number, 1, why);
      return demand::none;
    }
    rest_.reset();
    this->counted.held.take(1);
    if (of_.options.fail.last == troupe::stream::failure::act::drop) {
      this->counted.dropped.add();
      return demand::more;
    }
    this->counted.dead.add();
    return this->self->home->bury({of_.name(), why, 1, from.number, nullptr, &typeid(T)}) ? demand::more : demand::none;
  }
  const node& of_;
  outlet<U>& out_;
  std::optional<rest> rest_;
};

/// Hands each item to a function: the end of a stream.
template <class T, class F>
class sink_lane final : public calling_lane<T, F, sink_lane<T, F>> {
 public:
  sink_lane(const node& of, F& f) : calling_lane<T, F, sink_lane>(of, f), of_(of) {}
  demand done(const origin& from) {
    this->counted.out.add();
    if (from.due_ns != 0) latency.record(now_ns() - from.due_ns);
    return demand::more;
  }
  template <class R>
  demand done(R&&, T&, const origin& from) {
    return done(from);
  }
  demand pass_rest(const mark& m) {
    this->counted.note(m);
    if (m.barrier == barrier.load(std::memory_order_relaxed)) return demand::more;
    if (of_.at_barrier) of_.at_barrier(m.barrier);
    barrier.store(m.barrier, std::memory_order_release);
    this->self->home->barrier_came();
    return demand::more;
  }
  demand resume_rest() { return demand::more; }
  void idle_rest() {}
  bool finish_rest() { return true; }
  troupe::stream::recorder latency;
  std::atomic<std::uint64_t> barrier{0};

 private:
  const node& of_;
};
template <class T, class F>
class sink_node final : public stage<T, sink_lane<T, F>> {
 public:
  sink_node(std::string name, F f) : stage<T, sink_lane<T, F>>(std::move(name), "sink"), f_(std::move(f)) {
    this->lanes_.push_back(std::make_unique<sink_lane<T, F>>(*this, f_));
  }
  std::uint64_t delivered() const override { return this->lanes_[0]->counted.out.get(); }
  std::uint64_t barrier_passed() const override { return this->lanes_[0]->barrier.load(std::memory_order_acquire); }
  troupe::stream::distribution latency() const override { return this->lanes_[0]->latency.read(); }

 private:
  F f_;
};

}  // namespace troupe::detail::streams
