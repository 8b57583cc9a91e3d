// What this file is for: the actor system of a runtime: supervisor, trace observer and housekeeper.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/control.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "actors/control/caf.hpp"
#include "actors/control/housekeeper.hpp"
#include "actors/control/supervisor.hpp"
#include "actors/control/trace_observer.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {

// Threads of an actor system as `configure` sets it up: a worker, a clock and a printer, which has nothing to print.
constexpr int caf_threads = 3;

class control_on_caf final : public control, private trace_sink {
 public:
  explicit control_on_caf(control_options o) : options_(std::move(o)) {
    if (!options_.trace.empty()) trace_.open(options_.trace);
    configure(config_);
    devices::try_threads(caf_threads);  // CAF ends the process if it cannot have one of them
    system_ = std::make_unique<caf::actor_system>(config_);
    std::vector<system_actor> below;
    below.push_back({.number = desk_.add(actor_kind::housekeeper, "housekeeper"),
                     .spawn =
                         [this](caf::actor_system& s) {
                           return spawn_housekeeper(s, options_, delays_, fail_of(housekeeper_number));
                         },
                     .spawned =
                         [this](const caf::actor& a, bool first) {
                           set(housekeeper_, a);
                           if (!first)
                             call_later(std::chrono::milliseconds(0));  // the timers of the one before are gone
                         }});
    if (trace_.is_on())
      below.push_back(
          {.number = desk_.add(actor_kind::trace_observer, "trace observer"),
           .spawn = [this](caf::actor_system& s) { return spawn_trace_observer(s, trace_, fail_of(observer_number)); },
           .spawned =
               [this](const caf::actor& a, bool) {
                 set(observer_, a);
                 if (!a) trace_.give_up(text_of(desk_.get(observer_number).why));
               }});
    supervisor_ = start_supervisor(*system_, desk_, options_, std::move(below));
    // Gives this thread's reference to the system's logger back: the system does not end before the last reference is
    // gone, and another thread may be the one that ends the system.
    caf::logger::set_current_actor_system(nullptr);
  }
  ~control_on_caf() override { stop(); }

  failure_sink watch(std::weak_ptr<actor> who) override {
    const std::size_t number = desk_.add(std::move(who));
    tell_supervisor();
    return [this, number](std::exception_ptr why) {
      desk_.note_failure(number, std::move(why));
      tell_supervisor();
    };
  }
  void end_supervision() override { desk_.close(); }

  trace_sink* sink() override { return trace_.is_on() ? this : nullptr; }

  void went_idle() override {
    // At most one message in 50 ms: a runtime that sleeps between short bursts must not flood the housekeeper.
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto last = last_idle_.load(std::memory_order_relaxed);
    if (now - last < std::chrono::steady_clock::duration(std::chrono::milliseconds(50)).count()) return;
    last_idle_.store(now, std::memory_order_relaxed);
    std::lock_guard hold(lock_);
    if (housekeeper_) caf::anon_send(housekeeper_, executors_idle{});
  }

  void call_later(std::chrono::milliseconds after) override {
    delays_.add(after);
    std::lock_guard hold(lock_);
    if (housekeeper_) caf::anon_send(housekeeper_, ring_later{});
  }

  std::string close_trace() override {
    if (!trace_.finish()) return {};
    {
      std::lock_guard hold(lock_);
      if (!system_) return {};
      if (observer_) caf::anon_send(observer_, trace_waits{});
    }
    return trace_.wait_closed();
  }

  void stop() override {
    desk_.close();
    std::unique_ptr<caf::actor_system> gone;
    {
      std::lock_guard hold(lock_);
      if (!system_) return;
      caf::anon_send_exit(supervisor_, caf::exit_reason::kill);
      if (observer_) caf::anon_send_exit(observer_, caf::exit_reason::kill);
      if (housekeeper_) caf::anon_send_exit(housekeeper_, caf::exit_reason::kill);
      supervisor_ = nullptr;
      observer_ = nullptr;
      housekeeper_ = nullptr;
      gone = std::move(system_);
    }
    gone.reset();  // waits for the actors
  }

 private:
  // The numbers on the desk of the actors that are added first.
  static constexpr std::size_t housekeeper_number = 0, observer_number = 1;

  failure_sink fail_of(std::size_t number) {
    return [this, number](std::exception_ptr why) { desk_.note_reason(number, std::move(why)); };
  }
  void tell_supervisor() {
    std::lock_guard hold(lock_);
    if (supervisor_) caf::anon_send(supervisor_, desk_changed{});
  }
  void set(caf::actor& of, const caf::actor& a) {
    std::lock_guard hold(lock_);
    if (system_) of = a;
  }

  void take(trace_block&& b) override {
    if (!trace_.add(std::move(b))) return;
    std::lock_guard hold(lock_);
    if (observer_) caf::anon_send(observer_, trace_waits{});
  }

  const control_options options_;
  trace_desk trace_;
  delay_desk delays_;
  supervision_desk desk_;
  std::mutex lock_;  // guards the handles
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  supervisor_actor supervisor_;
  caf::actor observer_, housekeeper_;
  std::atomic<std::chrono::steady_clock::rep> last_idle_{0};
};

}  // namespace

std::unique_ptr<control> make_control(control_options o) { return std::make_unique<control_on_caf>(std::move(o)); }

}  // namespace troupe::detail
