// What this file is for: the stage whose work on an item is tasks of the runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/streams/node.hpp>
#include <troupe/detail/streams/stages.hpp>
#include <troupe/error.hpp>
#include <troupe/future.hpp>
#include <troupe/options.hpp>
#include <troupe/stream/tasks.hpp>

namespace troupe::detail::streams {

template <class T>
inline constexpr bool is_future = false;
template <class T>
inline constexpr bool is_future<future<T>> = true;

/// Calls a function on each item that spawns tasks, and passes on what the function returns, or the item itself where
/// it returns nothing (`U` is T then), once the tasks are done. Items stay here until then, for the tasks use what they
/// point to.
template <class T, class U, class F>
class tasks_lane final : public inlet<T> {
 public:
  tasks_lane(const node& of, F& f, const troupe::stream::tasks_options& o, outlet<U>& out)
      : of_(of),
        f_(f),
        in_flight_max_(static_cast<std::size_t>(o.in_flight)),
        keeps_order_(o.order == stream::ordered),
        out_(out) {
    how_.where = o.where;
    how_.priority = o.priority;
    how_.retries = o.retries;
    how_.stop = stop_.get_token();
    counted.transfer.emplace();
  }

  demand push(T&& item, const origin& from) override {
    counted.in.add();
    counted.held.add();
    flying_.push_back(std::make_unique<flight>(std::move(item), from));
    launch(*flying_.back());
    return land(demand::more);
  }
  // A mark stays behind the items that it came behind.
  demand pass(const mark& m) override {
    if (!flying_.empty())
      flying_.back()->behind = m;
    else if (due_)
      due_ = m;
    else
      return pass_on(m);
    return demand::more;
  }
  demand resume() override {
    const demand d = out_.of(0).resume();
    return d == demand::none ? d : land(d);
  }
  void idle() override { out_.of(0).idle(); }
  bool finish() override {
    return land(demand::more) != demand::none && flying_.empty() && !due_ && out_.of(0).finish();
  }

  void attach(engine& e) {
    engine_ = &e;
    how_.name = of_.name();
  }
  // Tasks that have not begun never do.
  void stop() { stop_.request_stop(); }
  counts counted;
  strand* self = nullptr;

 private:
  static constexpr std::size_t after_max = 1024;
  static constexpr bool in_place = std::is_void_v<std::invoke_result_t<F&, troupe::stream::spawner&, T&>>;
  struct flight {
    flight(T&& i, const origin& o) : item(std::move(i)), from(o) {}
    T item;
    const origin from;
    std::optional<U> made{};
    std::vector<future<void>> tasks{};
    std::exception_ptr error{};  // that the function has thrown
    int attempts = 0;
    std::int64_t begun_ns = 0;
    float transfer_ns = 0;                             // of the task that has waited longest for bytes
    std::chrono::steady_clock::time_point again_at{};  // where it waits to be tried again
    bool waits = false;
    std::optional<mark> behind{};
  };

  void launch(flight& x) {
    ++x.attempts;
    x.begun_ns = x.from.due_ns != 0 ? now_ns() : 0;
    x.error = nullptr;
    x.transfer_ns = 0;
    x.made.reset();
    x.tasks.clear();
    try {
      troupe::stream::spawner on(*engine_, how_, x.tasks);
      if constexpr (in_place)
        std::invoke(f_, on, x.item);
      else
        x.made.emplace(std::invoke(f_, on, x.item));
    } catch (...) {
      x.error = std::current_exception();
    }
    try {
      // A task comes after so many others at most.
      for (std::span<const future<void>> rest(x.tasks); !rest.empty();) {
        const auto some = rest.first(std::min(rest.size(), after_max));
        self->home->ready_after(*self, some);
        rest = rest.subspan(some.size());
      }
    } catch (...) {  // nobody would tell of their end
      self->home->fail(std::current_exception());
    }
  }
  static bool is_done(const flight& x) {
    for (const auto& t : x.tasks)
      if (!t.is_ready()) return false;
    return true;
  }
  demand pass_on(const mark& m) {
    barrier_ = m.barrier;
    return out_.of(0).pass(m);
  }
  // Passes on what is done, in order, or else whatever is.
  demand land(demand d) {
    if (due_) {
      d = least(d, pass_on(*std::exchange(due_, std::nullopt)));
      if (d == demand::none) return d;
    }
    for (std::size_t i = 0; i < flying_.size();) {
      flight& x = *flying_[i];
      bool stays = !is_done(x);
      if (!stays && x.waits) stays = !try_again(x);
      if (!stays) {
        const verdict v = judge(x);
        if (v == verdict::fails) return demand::none;
        stays = v == verdict::again;
        if (!stays) {
          d = least(d, leave(i, v == verdict::passes));
          if (d == demand::none) return d;
          continue;
        }
      }
      if (keeps_order_ || (x.behind && x.behind->barrier != barrier_)) break;  // nothing overtakes a barrier
      ++i;
    }
    return flying_.size() < in_flight_max_ ? d : demand::none;
  }
  // True once it has been tried again and is done already.
  bool try_again(flight& x) {
    if (now() < x.again_at) {
      self->home->ready_at(*self, x.again_at);
      return false;
    }
    x.waits = false;
    launch(x);
    return is_done(x);
  }

  enum class verdict : std::uint8_t { passes, given_up, again, fails };
  // What becomes of an item all of whose tasks have ended.
  verdict judge(flight& x) {
    std::exception_ptr why = x.error;
    for (const auto& t : x.tasks) {
      if (why) break;
      try {
        t.get();
        x.transfer_ns = std::max(x.transfer_ns, data_wait_ns(*t.task()));
      } catch (...) {
        why = std::current_exception();
      }
    }
    x.tasks.clear();
    if (!why) return verdict::passes;
    x.error = why;
    const troupe::stream::failure& f = of_.options.fail;
    if (x.attempts <= f.retries) {
      counted.retries.add();
      x.again_at = now() + pause_before(f, x.attempts);
      x.waits = true;
      self->home->ready_at(*self, x.again_at);
      return verdict::again;
    }
    switch (f.last) {
      case troupe::stream::failure::act::drop:
        counted.held.take(1);
        counted.dropped.add();
        return verdict::given_up;
      case troupe::stream::failure::act::dead_letter: {
        const troupe::stream::letter l{of_.name(), why, x.attempts, x.from.number, &x.item, &typeid(T)};
        counted.held.take(1);
        counted.dead.add();
        return self->home->bury(l) ? verdict::given_up : verdict::fails;
      }
      case troupe::stream::failure::act::fail:
        break;
    }
    self->home->fail(of_.name().c_str(), x.from.number, x.attempts, why);
    return verdict::fails;
  }
  demand leave(std::size_t i, bool passes) {
    const std::unique_ptr<flight> x = std::move(flying_[i]);
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(i));
    demand d = demand::more;
    if (passes) {
      if (x->begun_ns != 0) {
        counted.service.record(now_ns() - x->begun_ns);
        counted.transfer->record(static_cast<std::int64_t>(x->transfer_ns));
      }
      counted.held.take(1);
      counted.out.add();
      if constexpr (in_place)
        d = out_.of(0).push(std::move(x->item), x->from);
      else
        d = out_.of(0).push(std::move(*x->made), x->from);
    }
    if (!x->behind) return d;
    if (i != 0)
      flying_[i - 1]->behind = x->behind;
    else if (d == demand::none)
      due_ = x->behind;  // what was pushed may not be through yet
    else
      return least(d, pass_on(*x->behind));
    return d;
  }

  const node& of_;
  F& f_;
  const std::size_t in_flight_max_;
  const bool keeps_order_;
  outlet<U>& out_;
  engine* engine_ = nullptr;
  std::stop_source stop_;
  task_options how_;
  std::deque<std::unique_ptr<flight>> flying_;  // as they came
  std::optional<mark> due_;                     // behind all that has been pushed
  std::uint64_t barrier_ = 0;                   // the last that has gone on
};

/// Its strand takes from an edge, so that what is done goes on whatever the stages before are doing.
template <class T, class U, class F>
class tasks_node final : public stage<T, tasks_lane<T, U, F>> {
 public:
  using lane_type = tasks_lane<T, U, F>;
  tasks_node(std::string name, const char* kind, F f, const troupe::stream::tasks_options& o)
      : stage<T, lane_type>(std::move(name), kind), f_(std::move(f)) {
    this->options.fail = o.fail;
    this->options.edge = o.edge;
    this->lanes_.push_back(std::make_unique<lane_type>(*this, f_, o, out));
  }
  bool joins() const override { return true; }
  void attach(engine& e) override { this->lanes_.front()->attach(e); }
  void stop_tasks() noexcept override { this->lanes_.front()->stop(); }
  outlet<U> out;

 private:
  F f_;
};

}  // namespace troupe::detail::streams
