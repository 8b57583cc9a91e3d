// What this file is for: observer and keeper, and the actor system they live in.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/staff.hpp"

#include <future>
#include <mutex>

#include <troupe/error.hpp>

#include "actors/caf.hpp"
#include "actors/trace_writer.hpp"

namespace troupe::detail {

// Messages. Payloads are shared so that CAF, which may copy messages, copies a pointer.
struct write_trace {
  std::shared_ptr<trace_block> block;
};
struct finish_trace {
  std::shared_ptr<std::promise<std::string>> answer;
};
struct executor_idle {};
struct tidy_up {
  std::uint64_t seen = 0;
};

}  // namespace troupe::detail

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::write_trace)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::finish_trace)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::executor_idle)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::tidy_up)

namespace troupe::detail {

namespace {

constexpr auto idle_before_tidying = std::chrono::milliseconds(200);


caf::behavior observer(caf::event_based_actor* self, std::shared_ptr<trace_writer> writer) {
  begin(self, nullptr);
  return {
      [=](const write_trace& m) { writer->add(*m.block); },
      [=](const finish_trace& m) { m.answer->set_value(writer->close()); },
  };
}

struct keeper_state {
  std::uint64_t idles = 0;
};

caf::behavior keeper(caf::stateful_actor<keeper_state>* self, std::function<void()> tidy) {
  begin(self, nullptr);
  return {
      [=](const executor_idle&) {
        // Only the last of a row of short rests is followed by tidying.
        self->delayed_send(self, idle_before_tidying, tidy_up{++self->state.idles});
      },
      [=](const tidy_up& m) {
        if (m.seen == self->state.idles) tidy();
      },
  };
}

class staff_on_caf final : public staff, private trace_sink {
 public:
  staff_on_caf(const std::string& trace, std::function<void()> tidy) {
    if (!trace.empty()) {
      auto writer = std::make_shared<trace_writer>(trace);
      if (!writer->good()) throw error(errc::io_failed, "options::trace: '" + trace + "' cannot be written");
      traced_ = true;
      start();
      observer_ = system_->spawn(observer, std::move(writer));
    } else {
      start();
    }
    keeper_ = system_->spawn(keeper, std::move(tidy));
  }
  ~staff_on_caf() override { dismiss(); }

  trace_sink* sink() override { return traced_ ? this : nullptr; }

  void went_idle() override {
    // One message for a whole rest: a runtime that naps between short bursts must not flood the keeper.
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto last = last_idle_.load(std::memory_order_relaxed);
    if (now - last < std::chrono::steady_clock::duration(std::chrono::milliseconds(50)).count()) return;
    last_idle_.store(now, std::memory_order_relaxed);
    std::lock_guard hold(lock_);
    if (system_) caf::anon_send(keeper_, executor_idle{});
  }

  std::string close_trace() override {
    auto answer = std::make_shared<std::promise<std::string>>();
    auto done = answer->get_future();
    {
      std::lock_guard hold(lock_);
      if (!system_ || !traced_) return {};
      caf::anon_send(observer_, finish_trace{answer});
    }
    return done.get();
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
  void start() {
    configure(config_);
    system_ = std::make_unique<caf::actor_system>(config_);
  }
  void take(trace_block&& b) override {
    std::lock_guard hold(lock_);
    if (system_) caf::anon_send(observer_, write_trace{std::make_shared<trace_block>(std::move(b))});
  }

  std::mutex lock_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::actor observer_, keeper_;
  bool traced_ = false;
  std::atomic<std::chrono::steady_clock::rep> last_idle_{0};
};

}  // namespace

std::unique_ptr<staff> hire_staff(const std::string& trace, std::function<void()> tidy) {
  return std::make_unique<staff_on_caf>(trace, std::move(tidy));
}

}  // namespace troupe::detail
