// What this file is for: where items come into a stream: functions, ranges, coroutines, threads outside.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <troupe/detail/streams/node.hpp>
#include <troupe/detail/streams/running.hpp>
#include <troupe/detail/streams/stages.hpp>
#include <troupe/detail/streams/strands.hpp>
#include <troupe/stream/source.hpp>
#include <troupe/this_task.hpp>

namespace troupe::detail::streams {

/// How a source has answered.
enum class answer : std::uint8_t { item, ended, waits };

/// What a source that waits is waiting for.
struct wish {
  enum class what : std::uint8_t { time, descriptor, call };
  what kind = what::time;
  std::chrono::steady_clock::time_point at{};
  int descriptor = -1;
  bool writable = false;
  /// True if the source need not wait; else the function that it gets will be called when it may be so.
  const std::function<bool(const std::function<void()>&)>* need_not_wait = nullptr;
};

/// A function that returns a std::optional.
template <class T, class F>
class function_source {
 public:
  explicit function_source(F f) : f_(std::move(f)) {}
  answer next(std::optional<T>& to, std::int64_t&, wish&) {
    auto got = f_();
    if (!got) return answer::ended;
    to.emplace(std::move(*got));
    return answer::item;
  }

 private:
  F f_;
};

/// The elements of a range.
template <class T, class Range>
class range_source {
 public:
  explicit range_source(Range r) : all_(std::move(r)) {}
  answer next(std::optional<T>& to, std::int64_t&, wish&) {
    if (!at_)
      at_.emplace(std::ranges::begin(all_));
    else
      ++*at_;
    if (*at_ == std::ranges::end(all_)) return answer::ended;
    // Between two items lies all that stages do, too much for the processor to see that they come one after the other.
    if constexpr (std::contiguous_iterator<std::ranges::iterator_t<Range>>)
      for (std::size_t line = 0; line < sizeof(T) && line < ahead_bytes; line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(std::to_address(*at_)) + ahead_bytes + line);
    to.emplace(**at_);
    return answer::item;
  }

 private:
  static constexpr std::size_t ahead_bytes = 512;
  Range all_;
  std::optional<std::ranges::iterator_t<Range>> at_;
};

/// A coroutine.
template <class T>
class coroutine_source {
 public:
  explicit coroutine_source(troupe::stream::source<T> s) : of_(std::move(s)) {}
  answer next(std::optional<T>& to, std::int64_t& due_ns, wish& w) {
    auto& p = of_.frame().promise();
    p.need_not_wait = nullptr;
    of_.frame().resume();
    if (p.value) {
      to.emplace(std::move(*p.value));
      p.value.reset();
      if (p.due_at) {
        if (due_ns != 0) due_ns = p.due_at->time_since_epoch().count();
        p.due_at.reset();
      }
      return answer::item;
    }
    if (p.error) std::rethrow_exception(p.error);
    if (of_.frame().done()) return answer::ended;
    if (p.need_not_wait)
      w = {.kind = wish::what::call, .need_not_wait = &p.need_not_wait};
    else if (p.wake_at)
      w = {.at = *std::exchange(p.wake_at, std::nullopt)};
    else
      w = {.kind = wish::what::descriptor, .descriptor = p.descriptor, .writable = p.for_writing};
    return answer::waits;
  }

 private:
  troupe::stream::source<T> of_;
};

/// A stage without a way in.
template <class T, class Source>
class source_node final : public node {
 public:
  source_node(std::string name, Source s) : node(std::move(name), "source"), from_(std::move(s)) {}
  std::unique_ptr<strand> make_source() override { return std::make_unique<pump>(*this); }
  std::unique_ptr<edge_base> make_edge(int, const troupe::stream::edge_options&) override { return nullptr; }
  std::unique_ptr<strand> make_strand(int, const std::vector<edge_base*>&) override { return nullptr; }
  void bind(int, strand&) override {}
  void add_to(troupe::stream::stage_report& r) const override { counted_.add_to(r); }
  std::uint64_t pushed() const override { return counted_.out.get(); }
  void set_stages(int n) override { samples_.set_stages(n); }
  void begin_barrier(std::uint64_t n) override {
    barrier_.store(n, std::memory_order_release);
    for (strand* s : this->strands) s->home->ready(*s);
  }
  outlet<T> out;

 private:
  class pump final : public strand {
   public:
    explicit pump(source_node& of) : of_(of) {}
    ran run(std::int64_t until_ns) override {
      if (home->is_interrupted()) return ran::more;
      if (of_.out.of(0).resume() == demand::none) return ran::waits;
      if (const std::uint64_t b = of_.barrier_.load(std::memory_order_acquire); b != barrier_passed_) {
        barrier_passed_ = b;
        if (of_.out.of(0).pass({mark::never, false, b}) == demand::none) return ran::waits;
      }
      pace p(*this, until_ns);
      for (;;) {
        if (home->is_interrupted()) return ran::more;
        if (is_over_ || home->is_draining()) return of_.out.of(0).finish() ? ran::ended : ran::waits;
        if (is_asleep_ && !wakes_up()) return ran::waits;
        // An item for which the source has waited is chosen once: what it was asked before counts as the same question.
        if (!std::exchange(goes_on_, false))
          sampled_ = of_.samples_.next();
        else if (sampled_ != 0)
          sampled_ = now_ns();
        origin from{number_, sampled_, 0};
        const std::int64_t begin = from.due_ns;
        answer got;
        try {
          do got = of_.from_.next(slot_, from.due_ns, wish_);
          while (got == answer::waits && !falls_asleep());
        } catch (...) {
          home->fail(of_.name().c_str(), number_, 1, std::current_exception());
          return ran::waits;
        }
        if (got == answer::waits) {
          goes_on_ = true;
          of_.out.of(0).idle();
          return ran::waits;
        }
        if (got == answer::ended) {
          is_over_ = true;
          continue;
        }
        if (begin != 0) of_.counted_.service.record(now_ns() - begin);
        ++number_;
        of_.counted_.out.add();
        const demand d = of_.out.of(0).push(std::move(*slot_), from);
        slot_.reset();
        const bool is_late = p.count();
        if (d == demand::none) return ran::waits;
        if (is_late || d == demand::pause) return ran::more;
      }
    }
    double waiting_ns() const noexcept override { return std::max(item_ns(), 10'000.0); }

   private:
    // False: what it waits for is there.
    bool falls_asleep() {
      wish_granted.store(false, std::memory_order_relaxed);
      switch (wish_.kind) {
        case wish::what::time:
          home->ready_at(*this, wish_.at);
          break;
        case wish::what::descriptor:
          home->ready_when(*this, wish_.descriptor, wish_.writable);
          break;
        case wish::what::call:
          if ((*wish_.need_not_wait)(home->ready_call(*this))) return false;
      }
      is_asleep_ = true;
      return true;
    }
    // A source that waits is not asked before its time, though its strand may run for other reasons.
    bool wakes_up() {
      if (wish_.kind == wish::what::time) {
        if (now() < wish_.at) {
          home->ready_at(*this, wish_.at);
          return false;
        }
      } else if (!wish_granted.load(std::memory_order_acquire)) {
        return false;
      } else if (wish_.kind == wish::what::call && falls_asleep()) {
        return false;
      }
      is_asleep_ = false;
      return true;
    }
    source_node& of_;
    std::optional<T> slot_;
    wish wish_;
    std::uint64_t number_ = 0, barrier_passed_ = 0;
    std::int64_t sampled_ = 0;  // when the item was asked for, if it is timed
    bool is_over_ = false, is_asleep_ = false, goes_on_ = false;
  };
  Source from_;
  counts counted_;
  sampler samples_;
  std::atomic<std::uint64_t> barrier_{0};
};

/// Where threads outside push items.
template <class T>
class input_node final : public node {
 public:
  input_node(std::string name, const troupe::stream::edge_options& o)
      : node(std::move(name), "input"), edge_(this->name(), o) {
    edge_.open();
  }
  std::unique_ptr<strand> make_source() override {
    way_ = std::make_unique<way>(*this);
    return std::make_unique<segment<T>>(edge_, *way_);
  }
  std::unique_ptr<edge_base> make_edge(int, const troupe::stream::edge_options&) override { return nullptr; }
  std::unique_ptr<strand> make_strand(int, const std::vector<edge_base*>&) override { return nullptr; }
  void bind(int, strand&) override {}
  void add_to(troupe::stream::stage_report& r) const override { counted_.add_to(r); }
  void shut() override { edge_.shut(); }
  void begin_barrier(std::uint64_t n) override { edge_.put_barrier(n); }
  std::size_t item_bytes(int) const override { return fixed_item_bytes<T>; }
  edge_base* own_edge() override { return &edge_; }
  const std::type_info* item_type() const override { return &typeid(T); }
  void set_stages(int n) override { stages_ = n; }

  /// Pushes from a thread outside of the stream, waiting for room until then.
  received push(T& item, std::chrono::steady_clock::time_point due, std::chrono::steady_clock::time_point until,
                machine& m) {
    const origin from{0, due.time_since_epoch().count(), 0};
    const std::size_t bytes = troupe::stream::item_bytes<T>::of(item);
    demand next;
    received r = edge_.offer(item, from, bytes, nullptr, false, next);
    if (r == received::no && until != std::chrono::steady_clock::time_point::min()) {
      m.check_wait(name());
      std::optional<this_task::core_yielded> away;
      if (this_task::inside()) away.emplace();
      r = edge_.offer_until(item, from, bytes, until);
    }
    if (r == received::overrun) m.overrun(name());
    return r;
  }
  /// The same without waiting: where there is no room, `call` is called once there may be some.
  received push_or_call(T& item, std::chrono::steady_clock::time_point due, const std::function<void()>& call,
                        machine& m) {
    const origin from{0, due.time_since_epoch().count(), 0};
    const received r = edge_.offer(item, from, troupe::stream::item_bytes<T>::of(item), call);
    if (r == received::overrun) m.overrun(name());
    return r;
  }
  outlet<T> out;

 private:
  class way final : public inlet<T> {
   public:
    explicit way(input_node& of) : of_(of) { samples_.set_stages(of.stages_); }
    demand push(T&& item, const origin& from) override {
      of_.counted_.in.add();
      of_.counted_.out.add();
      origin o = from;
      o.number = number_++;
      if (samples_.next() == 0) o.due_ns = 0;
      return of_.out.of(0).push(std::move(item), o);
    }
    demand pass(const mark& m) override { return of_.out.of(0).pass(m); }
    demand resume() override { return of_.out.of(0).resume(); }
    void idle() override { of_.out.of(0).idle(); }
    bool finish() override { return of_.out.of(0).finish(); }

   private:
    input_node& of_;
    sampler samples_;
    std::uint64_t number_ = 0;
  };
  edge<T> edge_;
  std::unique_ptr<way> way_;
  counts counted_;
  int stages_ = 1;
};

}  // namespace troupe::detail::streams
