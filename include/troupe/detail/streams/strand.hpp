// What this file is for: strands, the parts of a stream that one thread at a time runs, and what runs them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>

#include <troupe/detail/streams/clock.hpp>
#include <troupe/detail/streams/marks.hpp>
#include <troupe/future.hpp>
#include <troupe/stream/options.hpp>

namespace troupe::detail::streams {

/// A count that one thread at a time changes and any thread reads.
class tally {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void take(std::uint64_t n) noexcept { add(0 - n); }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Where an item comes from, and since when it is on its way.
struct origin {
  std::uint64_t number = 0;             ///< in its source, from 0 on
  std::int64_t due_ns = 0;              ///< on the steady clock; 0: the item is not in the sample that is timed
  std::int64_t since_ns = 0;            ///< of a timed item that waits in an edge: since when
  std::int64_t event_ns = mark::never;  ///< its own time, since 1970; `never`: it has none
};

class strand;

/// What runs strands (actors/stage/crew). Any thread.
class scheduler {
 public:
  /// Has the strand run, once more if it runs now.
  virtual void ready(strand&) noexcept = 0;
  /// The same at that time, or at the earlier one of a call before. Forgotten when the strand is ready: it asks again.
  virtual void ready_at(strand&, std::chrono::steady_clock::time_point) = 0;
  /// The same when a read or a write of the descriptor would not block, after it has set `strand::wish_granted`.
  /// Throws io_failed for what cannot be waited for.
  virtual void ready_when(strand&, int descriptor, bool writable) = 0;
  /// Returns what does so when it is called, by any thread, and nothing once the stream is gone.
  virtual std::function<void()> ready_call(strand&) = 0;
  /// The same when all these tasks have ended, well or not. What the stream has is there until then.
  virtual void ready_after(strand&, std::span<const future<void>>) = 0;
  /// Ends the stream with that error, unless it has ended.
  virtual void fail(std::exception_ptr) noexcept = 0;
  /// Ends it because of a stage's function, with a stage_failed.
  virtual void fail(const char* stage, std::uint64_t item, int attempts, std::exception_ptr) noexcept = 0;
  /// A barrier has come to a sink.
  virtual void barrier_came() noexcept = 0;
  /// Hands a letter to the handler; false: there is none, or it has thrown, and the stream has failed.
  virtual bool bury(const troupe::stream::letter&) noexcept = 0;

  /// True while strands are to return at the next item: to be counted, or for good.
  bool is_interrupted() const noexcept { return interrupted_.load(std::memory_order_relaxed); }
  /// True once sources are to end.
  bool is_draining() const noexcept { return draining_.load(std::memory_order_acquire); }

 protected:
  ~scheduler() = default;
  std::atomic<bool> interrupted_{false}, draining_{false};
};

/// What has become of a run of a strand.
enum class ran : std::uint8_t {
  more,   ///< it can go on at once
  waits,  ///< somebody will call `scheduler::ready`
  ended   ///< nothing will come any more
};

/// A strand is run by one thread at a time. What its stages keep needs no lock.
class strand {
 public:
  strand() = default;
  virtual ~strand() = default;
  strand(const strand&) = delete;
  strand& operator=(const strand&) = delete;

  /// Works on items until there is none, there is no room for what comes of them, or the time is over.
  virtual ran run(std::int64_t until_ns) = 0;
  /// The work that waits for it, as far as it is known, in ns; 0: none.
  virtual double waiting_ns() const noexcept = 0;
  /// Time that one item takes, in ns, with all stages of the strand; 0: not known.
  double item_ns() const noexcept { return item_ns_.load(std::memory_order_relaxed); }

  scheduler* home = nullptr;
  int depth = 0;  ///< sources have the least
  /// For the scheduler.
  enum class phase : std::uint8_t { idle, ready, runs, runs_again, ended };
  std::atomic<phase> at{phase::idle};
  std::atomic<bool> wish_granted{false};
  std::atomic<std::int64_t> alarm_ns{0};  ///< when it is to be ready again; 0: there is no such time

 protected:
  /// Looks at the clock now and then while items go by.
  class pace {
   public:
    pace(strand& s, std::int64_t until_ns) : of_(s), begun_(now_ns()), until_(until_ns) {
      const double each = s.item_ns();
      left_ = stride_ = each <= 0 ? 1 : static_cast<int>(std::clamp(look_ns / each, 1.0, 256.0));
    }
    ~pace() {
      if (items_ != 0) of_.note(static_cast<double>(now_ns() - begun_) / items_);
    }
    pace(const pace&) = delete;
    pace& operator=(const pace&) = delete;
    /// Counts an item; true if the time is over.
    bool count() {
      ++items_;
      if (--left_ != 0) return false;
      left_ = stride_;
      return now_ns() >= until_;
    }

   private:
    static constexpr double look_ns = 10'000;
    strand& of_;
    const std::int64_t begun_, until_;
    int left_, stride_, items_ = 0;
  };

 private:
  void note(double each) noexcept {
    const double old = item_ns();
    item_ns_.store(old == 0 ? each : old + (each - old) / 4, std::memory_order_relaxed);
  }
  std::atomic<double> item_ns_{0};
};

/// Chooses the items that are timed: all while they come slowly, else so many that timing takes 2 % of the time.
class sampler {
 public:
  /// `stages`: each of which reads the clock twice for a timed item.
  /// A look at the clock and an entry in a distribution that is in no near cache take some 60 ns.
  void set_stages(int stages) { cost_ns_ = 60 * (2 * stages + 4); }
  /// Returns the time from which on the next item is timed; 0: it is not.
  std::int64_t next() {
    if (--left_ > 0) return 0;
    const std::int64_t now = now_ns();
    const double each = std::max(1.0, static_cast<double>(now - last_) / period_);
    last_ = now;
    left_ = period_ = static_cast<int>(std::clamp(cost_ns_ / (0.02 * each), 1.0, 65536.0));
    return now;
  }

 private:
  double cost_ns_ = 600;
  std::int64_t last_ = 0;
  int left_ = 0, period_ = 1;
};

}  // namespace troupe::detail::streams
