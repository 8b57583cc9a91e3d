// What this file is for: the bodies of closures: the arithmetic of the oracle on views, and what they do beside it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "kernels.hpp"
#include "nested.hpp"
#include "plan.hpp"
#include "session.hpp"

namespace mixed {

/// The result of a closure: more than bytes, so that copies and ends of results count.
struct result {
  word value = 0;
  counted mark;
};

struct planned_failure : std::runtime_error {
  planned_failure() : std::runtime_error("this attempt fails, as planned") {}
};

/// As nested_value, with tasks.
word nested_work(session&, const nesting&, word salt, int depth);

/// An operation of a client, for bodies; lives longer than the runtime.
struct assignment {
  session* all = nullptr;
  const operation* op = nullptr;
  std::size_t client = 0, number = 0;
  bool recorded = false;
};

/// Quantities and devices that a body holds while it runs.
class holding {
 public:
  holding(const assignment& a, troupe::task_context& c)
      : all_(*a.all), op_(*a.op), amounts_(a.op->amounts), devices_(c.devices()) {
    for (const amount_plan& p : amounts_)
      if (p.name == "cpu") cores_ = p.amount;
    all_.take(amounts_, devices_);
    all_.take_cores(cores_, op_);
  }
  ~holding() {
    all_.give_cores(cores_, op_);
    all_.give(amounts_, devices_);
  }
  holding(const holding&) = delete;
  holding& operator=(const holding&) = delete;
  /// Calls what may wait, meanwhile without slots.
  template <class F>
  auto without_cores(const F& f) {
    all_.give_cores(cores_, op_);
    const auto value = f();
    all_.take_cores(cores_, op_);
    return value;
  }

 private:
  session& all_;
  const operation& op_;
  const std::vector<amount_plan>& amounts_;
  std::span<const troupe::held_device> devices_;
  int cores_ = 1;
};

/// Marks an operation as begun and ended.
class telling {
 public:
  explicit telling(const assignment& a) : a_(a) { tell(phase::began); }
  ~telling() { tell(phase::ended); }
  telling(const telling&) = delete;
  telling& operator=(const telling&) = delete;

 private:
  void tell(phase p) const {
    if (a_.recorded)
      a_.all->progress();
    else
      a_.all->at(a_.client, a_.number, p);
  }
  const assignment& a_;
};

/// Never ends, or crashes, or whatever was planted here.
void misbehave(const assignment&);

// ---- call -----------------------------------------------------------------------------------------------------------

class call_body {
 public:
  explicit call_body(const assignment& a) : a_(a), mark_(*a.all) {}

  template <class... V>
  result operator()(troupe::task_context& c, const V&... v) const {
    const telling tell(a_);
    holding hold(a_, c);
    const operation& op = *a_.op;
    misbehave(a_);
    if (op.stopping == operation::stop::polled) {
      while (!c.stop_requested()) std::this_thread::yield();
      throw planned_failure();
    }
    if (c.attempt() <= op.throws) {
      [[maybe_unused]] std::size_t i = 0;
      (scribble(v, i), ...);
      throw planned_failure();
    }
    word h = op.salt;
    (take_value(v, h), ...);
    if (op.inner.what != nesting::kind::none)
      h = mix(h, hold.without_cores([&] { return nested_work(*a_.all, op.inner, op.salt, op.inner.depth); }));
    [[maybe_unused]] std::size_t i = 0;
    (take_elements(v, h, i), ...);
    [[maybe_unused]] word k = h;
    i = 0;
    (change(v, k, i), ...);
    return {h, counted(*a_.all)};
  }

 private:
  template <class V>
  static constexpr bool is_view = !std::is_same_v<V, result>;

  template <class V>
  static void take_value(const V& v, word& h) {
    if constexpr (!is_view<V>) h = mix(h, v.value);
  }
  template <class V>
  void take_elements(const V& v, word& h, std::size_t& i) const {
    if constexpr (is_view<V>) {
      const action what = a_.op->accesses[i++].what;
      if (what == action::read || what == action::update)
        for_points(area_of(v.bounds()), [&](const point& p) { h = mix(h, element(v, p)); });
    }
  }
  template <class V>
  void change(const V& v, word& k, std::size_t& i) const {
    if constexpr (is_view<V>) {
      const action what = a_.op->accesses[i++].what;
      if constexpr (!is_const<V>) {
        const planted fault = a_.number == planted_at(a_) ? a_.all->fault() : planted::nothing;
        bool first = true;
        for_points(area_of(v.bounds()), [&](const point& p) {
          word& x = element(v, p);
          const word before = x;
          x = changed(what, before, k, p);
          if (std::exchange(first, false)) {
            if (fault == planted::wrong_value) x ^= 1;
            if (fault == planted::lost_update) x = before;
          }
        });
        ++k;
      }
    }
  }
  template <class V>
  void scribble(const V& v, std::size_t& i) const {
    if constexpr (is_view<V>) {
      ++i;
      if constexpr (!is_const<V>)
        for_points(area_of(v.bounds()), [&](const point& p) { element(v, p) = ~key(p); });
    }
  }
  template <class V>
  static constexpr bool is_const = std::is_const_v<std::remove_pointer_t<decltype(std::declval<V>().data())>>;

 public:
  /// The last operation of the first client that changes what it finds.
  static std::size_t planted_at(const assignment& a) {
    const std::vector<operation>& all = a.all->about().clients[0].operations;
    return a.client == 0 && !a.recorded ? all.size() - 1 : all.size();
  }

 private:
  assignment a_;
  counted mark_;
};

// ---- for_each -------------------------------------------------------------------------------------------------------

/// Inputs first, one at most; the target is last.
class each_body {
 public:
  explicit each_body(const assignment& a) : a_(a), mark_(*a.all) {}

  template <int N>
  void operator()(troupe::task_context& c, const troupe::view<word, N>& to) const {
    run(c, to, [](word h, const point&) { return h; });
  }
  template <int M, int N>
  void operator()(troupe::task_context& c, const troupe::view<const word, M>& from,
                  const troupe::view<word, N>& to) const {
    const access_plan& source = a_.op->accesses[0];
    const area seen = area_of<M>(from.bounds());
    run(c, to, [&](word h, const point& p) {
      for_sources(source.map, M, source.size(), N, p, a_.op->salt, [&](const point& q) {
        if (seen.contains(q)) h = mix(h, element(from, q));
      });
      return h;
    });
  }

 private:
  template <int N, class Gather>
  void run(troupe::task_context& c, const troupe::view<word, N>& to, const Gather& gather) const {
    const telling tell(a_);
    holding hold(a_, c);
    const operation& op = *a_.op;
    const access_plan& target = op.accesses.back();
    const area written = area_of<N>(to.bounds());
    const bool chosen = !op.fails_for_good() || one_of(mix(op.salt, key(written.lo)), 3) == 0;
    if (chosen && c.attempt() <= op.throws) {
      for_points(written, [&](const point& p) { element(to, p) = ~key(p); });
      throw planned_failure();
    }
    word inner = 0;
    if (op.inner.what != nesting::kind::none)
      inner = hold.without_cores([&] { return nested_work(*a_.all, op.inner, op.salt, op.inner.depth); });
    for_points(written, [&](const point& t) {
      word h = gather(mix(op.salt, key(t)), index_of_target(target.map, target.size(), t));
      if (op.inner.what != nesting::kind::none) h = mix(h, inner);
      word& x = element(to, t);
      x = changed(target.what, x, h, t);
    });
  }

  assignment a_;
  counted mark_;
};

/// A body by which each chunk of the input changes all of the target.
class sweep_body {
 public:
  explicit sweep_body(const assignment& a) : a_(a), mark_(*a.all) {}
  template <int N>
  void operator()(troupe::task_context& c, const troupe::view<const word, N>& from,
                  const troupe::view<word, N>& to) const {
    const telling tell(a_);
    const holding hold(a_, c);
    word h = a_.op->salt;
    for_points(area_of<N>(from.bounds()), [&](const point& p) { h = mix(h, element(from, p)); });
    for_points(area_of<N>(to.bounds()),
               [&](const point& t) { element(to, t) = changed(action::update, element(to, t), h, t); });
  }

 private:
  assignment a_;
  counted mark_;
};

class scatter_body {
 public:
  explicit scatter_body(const assignment& a) : a_(a), mark_(*a.all) {}
  template <int N>
  void operator()(troupe::task_context& c, const troupe::view<const word, N>& from,
                  const troupe::view<word, 1>& to) const {
    const telling tell(a_);
    const holding hold(a_, c);
    const word salt = a_.op->salt;
    for_points(area_of<N>(from.bounds()), [&](const point& p) {
      word& bin = to.at(to.lo(0) + one_of(mix(salt, key(p)), to.size(0)));
      bin = changed(a_.op->accesses[1].what, bin, mix(salt, element(from, p)), p);
    });
  }

 private:
  assignment a_;
  counted mark_;
};

}  // namespace mixed
