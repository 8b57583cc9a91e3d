// What this file is for: observer and keeper, and the actor system that runs them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/housekeeping/background_services.hpp"

#include <condition_variable>
#include <mutex>
#include <vector>

#include <troupe/error.hpp>

#include "actors/housekeeping/caf.hpp"
#include "actors/housekeeping/trace_writer.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

// Messages only wake an actor: the data they announce waits behind a mutex. CAF's mailboxes hand over by lock-free
// means that tools cannot see into, and may copy what they carry.
struct trace_waits {};
struct executor_idle {};
struct ring_later {
  std::chrono::milliseconds after{};
};
struct ring_now {};
struct tidy_up {
  std::uint64_t seen = 0;
  std::chrono::milliseconds patience{};
};

}  // namespace troupe::detail

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::trace_waits)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::executor_idle)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::ring_later)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::ring_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::tidy_up)

namespace troupe::detail {

namespace {

// Idle time before `tidy` is called. If some memory is still in use, the time doubles, up to the maximum.
constexpr auto idle_before_tidying = std::chrono::milliseconds(200);
constexpr auto patience_max = std::chrono::milliseconds(5'000);
// Threads of an actor system as `configure` sets it up: a worker, a clock and a printer, which has nothing to print.
constexpr int caf_threads = 3;

/// The state that the observer shares with the threads that send to it.
struct trace_desk {
  std::mutex lock;
  std::condition_variable finished;
  std::vector<trace_block> waiting;
  bool finish = false, done = false;
  std::string problem;
  std::unique_ptr<trace_writer> writer;  // only the observer uses it once it runs
};

caf::behavior observer(caf::event_based_actor* self, trace_desk* desk) {
  begin(self, nullptr);
  return {
      [=](trace_waits) {
        std::vector<trace_block> blocks;
        bool finish;
        {
          std::lock_guard hold(desk->lock);
          blocks.swap(desk->waiting);
          finish = desk->finish;
        }
        for (const trace_block& b : blocks) desk->writer->add(b);
        if (!finish) return;
        std::string problem = desk->writer->close();
        std::lock_guard hold(desk->lock);
        desk->problem = std::move(problem);
        desk->done = true;
        desk->finished.notify_all();
      },
  };
}

struct keeper_state {
  std::uint64_t idles = 0;
};

caf::behavior keeper(caf::stateful_actor<keeper_state>* self, const std::function<bool()>* tidy,
                     const std::function<void()>* ring) {
  begin(self, nullptr);
  return {
      [=](executor_idle) {
        // Only the last of a series of short idle times is followed by tidying.
        self->delayed_send(self, idle_before_tidying, tidy_up{++self->state.idles, idle_before_tidying});
      },
      [=](const tidy_up& m) {
        if (m.seen != self->state.idles || (*tidy)()) return;
        const auto next = std::min(2 * m.patience, patience_max);
        self->delayed_send(self, next, tidy_up{m.seen, next});
      },
      [=](const ring_later& m) { self->delayed_send(self, m.after, ring_now{}); },
      [=](ring_now) { (*ring)(); },
  };
}

class staff_on_caf final : public staff, private trace_sink {
 public:
  staff_on_caf(const std::string& trace, std::function<bool()> tidy, std::function<void()> ring)
      : tidy_(std::move(tidy)), ring_(std::move(ring)) {
    if (!trace.empty()) {
      desk_.writer = std::make_unique<trace_writer>(trace);
      if (!desk_.writer->good()) throw error(errc::io_failed, "options::trace: '" + trace + "' cannot be written");
      traced_ = true;
    }
    configure(config_);
    devices::try_threads(caf_threads);  // CAF ends the process if it cannot have one of them
    system_ = std::make_unique<caf::actor_system>(config_);
    if (traced_) observer_ = system_->spawn(observer, &desk_);
    keeper_ = system_->spawn(keeper, &tidy_, &ring_);
    // Gives this thread's reference to the system's logger back: the system does not end before the last reference is
    // gone, and another thread may be the one that ends the system.
    caf::logger::set_current_actor_system(nullptr);
  }
  ~staff_on_caf() override { dismiss(); }

  trace_sink* sink() override { return traced_ ? this : nullptr; }

  void went_idle() override {
    // At most one message in 50 ms: a runtime that sleeps between short bursts must not flood the keeper.
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto last = last_idle_.load(std::memory_order_relaxed);
    if (now - last < std::chrono::steady_clock::duration(std::chrono::milliseconds(50)).count()) return;
    last_idle_.store(now, std::memory_order_relaxed);
    std::lock_guard hold(lock_);
    if (system_) caf::anon_send(keeper_, executor_idle{});
  }

  void call_later(std::chrono::milliseconds after) override {
    std::lock_guard hold(lock_);
    if (system_) caf::anon_send(keeper_, ring_later{after});
  }

  std::string close_trace() override {
    {
      std::lock_guard hold(desk_.lock);
      if (!traced_ || desk_.finish) return {};
      desk_.finish = true;
    }
    if (!ring()) return {};
    std::unique_lock hold(desk_.lock);
    desk_.finished.wait(hold, [&] { return desk_.done; });
    return desk_.problem;
  }

  void dismiss() override {
    std::unique_ptr<caf::actor_system> gone;
    {
      std::lock_guard hold(lock_);
      if (!system_) return;
      if (observer_) caf::anon_send_exit(observer_, caf::exit_reason::user_shutdown);
      caf::anon_send_exit(keeper_, caf::exit_reason::kill);
      observer_ = nullptr;
      keeper_ = nullptr;
      gone = std::move(system_);
    }
    gone.reset();  // waits for the actors
  }

 private:
  void take(trace_block&& b) override {
    bool first;
    {
      std::lock_guard hold(desk_.lock);
      first = desk_.waiting.empty();
      desk_.waiting.push_back(std::move(b));
    }
    if (first) ring();
  }
  bool ring() {
    std::lock_guard hold(lock_);
    if (!system_) return false;
    caf::anon_send(observer_, trace_waits{});
    return true;
  }

  trace_desk desk_;
  const std::function<bool()> tidy_;
  const std::function<void()> ring_;
  std::mutex lock_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::actor observer_, keeper_;
  bool traced_ = false;
  std::atomic<std::chrono::steady_clock::rep> last_idle_{0};
};

}  // namespace

std::unique_ptr<staff> hire_staff(const std::string& trace, std::function<bool()> tidy, std::function<void()> ring) {
  return std::make_unique<staff_on_caf>(trace, std::move(tidy), std::move(ring));
}

}  // namespace troupe::detail
