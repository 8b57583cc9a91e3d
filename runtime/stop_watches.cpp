// What this file is for: the effect of stop tokens and deadlines on tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/stop_watches.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <stop_token>

#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "runtime/deadlines.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {
// Effect of a stop token on a task that has not started.
struct cancel {
  task_record* task;
  engine* the_engine;
  void operator()() const noexcept {
    if (!claim(*task)) return;  // it runs: the body sees the token
    task->error = stopped_error(*task, "");
    fulfil(*task, the_engine->board());
    the_engine->placement_actor().note_cancelled();
  }
};

/// Effect of a deadline on a task: that of a stop token, beside the caller's own token. Lives as long as the task.
struct deadline_watch {
  struct pass_on {
    std::stop_source to;
    void operator()() noexcept { to.request_stop(); }
  };
  std::shared_ptr<deadlines> in;
  deadlines::entry when{};
  std::stop_callback<pass_on> theirs;
  std::stop_callback<cancel> own;

  deadline_watch(engine& the_engine, task_record& t, const task_options& o, const std::stop_source& source)
      : in(the_engine.timers()), theirs(o.stop, pass_on{source}), own(source.get_token(), cancel{&t, &the_engine}) {}
  deadline_watch(const deadline_watch&) = delete;
  deadline_watch& operator=(const deadline_watch&) = delete;
  ~deadline_watch() { in->drop(when); }
};

// Time that a node has to report a task that should have ended.
constexpr std::chrono::milliseconds overdue_max{1000};
// Deadlines beyond this, of centuries, are never looked at.
constexpr double longest_ticks = 4e18;
}  // namespace

void obey_stop_token(engine& the_engine, task_record& t, task_extra& e, const task_options& o) {
  e.stop_watch = std::make_shared<std::stop_callback<cancel>>(o.stop, cancel{&t, &the_engine});
}

void set_deadline(engine& the_engine, task_record& t, task_extra& e, const task_options& o) {
  const std::stop_source source;
  e.overdue = std::make_shared<observed<std::uint64_t>>(0);
  const runtime_clock& clock = the_engine.state().clock;
  const double ticks = std::chrono::duration<double, std::nano>(o.deadline).count() / clock.ns_per_tick();
  if (ticks < longest_ticks) e.due = clock.ticks() + static_cast<std::uint64_t>(ticks);
  auto watch = std::make_shared<deadline_watch>(the_engine, t, o, source);
  watch->when = watch->in->add(
      o.deadline, [source, since = e.overdue, of = std::weak_ptr(the_engine.shared_from_this())]() mutable {
        const auto still = of.lock();
        if (!still) return;
        *since = std::max<std::uint64_t>(1, still->state().clock.ticks());
        source.request_stop();
        if (still->others())
          still->timers()->add(overdue_max, [of] {
            if (const auto later = of.lock()) later->others()->give_up_overdue(overdue_max);
          });
      });
  e.options.stop = source.get_token();
  e.stop_watch = std::move(watch);
}

}  // namespace troupe::detail
