// What this file is for: what streams run on in a simulation: workers, timers and clocks, all of them on one thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Time goes by when it is looked at, by nanoseconds mostly and now and then by as much as if the thread had lost its
// core, so runners return at any moment. What would run on another worker meanwhile may run in `meanwhile`, which
// functions of stages call: strands of a stream are then as far inside of each other as on real threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>

#include "actors/stage/crew.hpp"

namespace test {

class imagined_workers final : public troupe::detail::streams::simulated_clocks {
 public:
  using crew = troupe::detail::stage::crew;
  using clock = std::chrono::steady_clock;

  explicit imagined_workers(std::uint64_t seed) : random_(seed) { troupe::detail::streams::simulated = this; }
  ~imagined_workers() { troupe::detail::streams::simulated = nullptr; }
  imagined_workers(const imagined_workers&) = delete;
  imagined_workers& operator=(const imagined_workers&) = delete;

  std::shared_ptr<crew> start(const troupe::stream::pipeline& p, const troupe::stream::start_options& o, int workers) {
    const auto plan = p.plan();
    static_cast<void>(troupe::detail::stage::describe(*plan, 0));
    plan->started = true;
    troupe::detail::stage::lay_out(*plan);
    auto c = std::make_shared<crew>(
        plan, o, workers,
        crew::surroundings{[this](const std::shared_ptr<crew>& of, crew::runner_is which) {
                             runners_.push_back({of, which});
                           },
                           [](std::span<const troupe::future<void>>, const std::function<void()>&) { std::abort(); },
                           [this](clock::time_point t, std::function<void()> f) { timers_.emplace(t, std::move(f)); },
                           nullptr, 0});
    c->begin();
    return c;
  }

  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool happens(int percent) { return number(1, 100) <= percent; }

  std::int64_t steady_ns() noexcept override {
    now_ += number(1, 300) == 1 ? number(1'000, 400'000) : number(1, 80);
    return now_;
  }
  std::int64_t wall_ns() noexcept override { return steady_ns() + wall_ahead_ns; }
  /// By how much the clock on the wall is ahead; may jump.
  std::int64_t wall_ahead_ns = 1'700'000'000'000'000'000;

  /// Has something happen: a runner's turn, or a timer's. False: nothing ever will.
  bool step() {
    const bool is_due = !timers_.empty() && timers_.begin()->first.time_since_epoch().count() <= now_;
    if (!runners_.empty() && (!is_due || happens(70))) {
      const auto at = runners_.begin() + number(0, static_cast<int>(runners_.size()) - 1);
      const runner r = *at;
      runners_.erase(at);
      r.of->work(r.which);
      return true;
    }
    if (timers_.empty()) return false;
    const auto at = timers_.begin();
    now_ = std::max(now_, at->first.time_since_epoch().count());
    const std::function<void()> f = std::move(at->second);
    timers_.erase(at);
    f();
    return true;
  }
  /// In a function of a stage: what another worker does at the time, if one does something.
  void meanwhile() {
    if (inside_ == 3 || !happens(15)) return;
    ++inside_;
    static_cast<void>(step());
    --inside_;
  }
  /// The time since the simulation began.
  std::chrono::nanoseconds elapsed() const { return std::chrono::nanoseconds(now_ - begin_ns); }

 private:
  struct runner {
    std::shared_ptr<crew> of;
    crew::runner_is which;
  };
  static constexpr std::int64_t begin_ns = 1'000'000'000;
  std::mt19937_64 random_;
  std::int64_t now_ = begin_ns;
  std::vector<runner> runners_;
  std::multimap<clock::time_point, std::function<void()>> timers_;
  int inside_ = 0;
};

}  // namespace test
