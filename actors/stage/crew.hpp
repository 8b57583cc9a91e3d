// What this file is for: what runs the strands of one stream: which is next, on how many threads, until when.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/detail/streams/running.hpp>
#include <troupe/stream/options.hpp>

#include "actors/logic/stream/hands.hpp"
#include "actors/stage/spans.hpp"
#include "devices/forks.hpp"
#include "net/waits.hpp"

namespace troupe::detail::stage {

/// How many threads of the runtime hold a stream at the moment. Outlives it.
class holders {
 public:
  /// One such thread, while it exists.
  class pass {
   public:
    explicit pass(std::shared_ptr<holders> of) : of_(std::move(of)) {
      std::lock_guard hold(of_->lock_);
      ++of_->count_;
    }
    ~pass() {
      std::lock_guard hold(of_->lock_);
      if (--of_->count_ == 0) of_->none_.notify_all();
    }
    pass(const pass&) = delete;
    pass& operator=(const pass&) = delete;

   private:
    const std::shared_ptr<holders> of_;
  };
  /// Waits until there is none.
  void wait(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock hold(lock_);
    none_.wait_until(hold, deadline, [this] { return count_ == 0; });
  }

 private:
  std::mutex lock_;
  std::condition_variable none_;
  int count_ = 0;
};

/// A stream that runs. Its strands are run by *runners*: tasks of the runtime, each of which runs one strand after the
/// other until none is ready or its time is over. Strands that are ready stand in a line, those farthest from the
/// sources first, so that what is in the stream leaves it before more comes in. Any thread.
class crew final : public streams::machine, public streams::scheduler, public std::enable_shared_from_this<crew> {
 public:
  using clock = std::chrono::steady_clock;
  /// A runner that is one more, or one whose time was over and that goes on.
  enum class runner_is : std::uint8_t { added, resumed };
  /// Has a runner run on a worker: calls `work` there, once, or `lost` if that will never be. May throw.
  using spawn_runner = std::function<void(const std::shared_ptr<crew>&, runner_is)>;
  /// Calls a function on a worker when tasks have ended, and lets go of it then, or when that will never be. May throw.
  using call_after = std::function<void(std::span<const future<void>>, std::function<void()>)>;

  /// Calls a function, which neither throws nor blocks, once a time has come on the steady clock.
  using call_at = std::function<void(clock::time_point, std::function<void()>)>;
  /// The surroundings of a stream: what it asks of what it runs on.
  struct surroundings {
    spawn_runner spawn;
    call_after after;
    call_at at{};                 ///< empty: of the process
    trace_sink* trace = nullptr;  ///< there as long as workers are
    int trace_lane = 0;           ///< the first of one for each strand
  };

  crew(std::shared_ptr<streams::plan>, troupe::stream::start_options, int runners_max, surroundings);
  ~crew() override;

  void begin();
  /// The body of a runner.
  void work(runner_is);
  /// A runner that was spawned will never run: the runtime has stopped.
  void lost(const std::exception_ptr&) noexcept;
  /// The runtime stops: so does the stream, whatever it waits for.
  void stop() noexcept;
  const std::shared_ptr<holders>& held_by() const { return holders_; }
  /// Tells functions of stages that the stream has ended before its time (`this_task::stop_requested`).
  std::stop_token stop_token() const { return over_.get_token(); }

  // ---- machine
  troupe::stream::report report() override;
  void cancel() noexcept override { end(troupe::stream::state::cancelled, nullptr); }
  void drain() noexcept override;
  bool wait_until(std::chrono::steady_clock::time_point) override;
  bool barrier(std::chrono::steady_clock::time_point) override;
  void wait_left(std::chrono::steady_clock::time_point) override;
  void rethrow() override;
  void check_process() const override;
  void check_wait(const std::string& input) const override;
  void overrun(const std::string& input) noexcept override;
  /// Begins the next barrier and returns its number.
  std::uint64_t begin_barrier();
  void call_on_worker(std::function<void()>) override;
  streams::node& input(const std::string& name, const std::type_info& item) override;

  // ---- scheduler
  void ready(streams::strand&) noexcept override;
  void ready_at(streams::strand&, std::chrono::steady_clock::time_point) override;
  void ready_when(streams::strand&, int descriptor, bool writable) override;
  std::function<void()> ready_call(streams::strand&) override;
  void ready_after(streams::strand&, std::span<const future<void>>) override;
  void fail(std::exception_ptr) noexcept override;
  void fail(const char* stage, std::uint64_t item, int attempts, std::exception_ptr) noexcept override;
  void barrier_came() noexcept override;
  bool bury(const troupe::stream::letter&) noexcept override;

 private:
  // Under the lock.
  bool is_over() const { return state_ != troupe::stream::state::runs && state_ != troupe::stream::state::drains; }
  bool has_passed(std::uint64_t barrier) const;
  bool is_done() const { return is_over() && running_ == 0; }
  void stand_in_line(streams::strand&);
  bool wants_runner();
  bool needs_watch() const;
  void settle(streams::strand&, streams::ran);
  void note_end();

  void add_runner(runner_is) noexcept;
  void watch(std::chrono::nanoseconds) noexcept;
  void look(std::chrono::nanoseconds after) noexcept;
  void end(troupe::stream::state, std::exception_ptr) noexcept;
  void no_memory() noexcept;
  bool runs_on_this_thread() const noexcept;
  net::waits& waits_of_process();
  void call(clock::time_point, std::function<void()>);
  void forget_descriptor(const streams::strand&);
  void count(troupe::stream::report&) const;
  std::string stall_of(const streams::edge_base&, std::int64_t waits_ns) const;

  const std::shared_ptr<streams::plan> plan_;
  const troupe::stream::start_options options_;
  const devices::birthplace birth_;  // tells a child by fork, where nobody runs the stream
  const int runners_max_;
  const surroundings around_;
  const clock::time_point begun_ = streams::now();

  std::mutex barriers_lock_;  // later ones go behind earlier ones everywhere
  std::uint64_t barriers_ = 0;

  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::vector<streams::strand*> line_;  // the next one last
  struct run {
    streams::strand* of;
    std::int64_t since_ns;
  };
  std::vector<run> at_work_;  // what runs
  logic::hands hands_;
  int runners_ = 0;  // spawned, and not gone yet
  int running_ = 0;  // strands that run
  int pauses_ = 0;   // reports that want nothing to run
  int askers_ = 0;   // those who wait until something has run
  std::uint64_t runs_ = 0, runs_at_report_ = 0;
  std::size_t ended_ = 0;
  troupe::stream::state state_ = troupe::stream::state::runs;
  std::exception_ptr error_;
  std::optional<clock::time_point> ended_at_;
  std::int64_t spawned_ns_ = 0;  // the last runner that has not begun; 0: all have
  bool is_watched_ = false;      // whether what waits in line waits too long
  bool is_extra_ = false;        // that runner is for workers that have been given away by functions

  spans spans_;  // under the lock
  std::stop_source over_;
  const std::shared_ptr<holders> holders_ = std::make_shared<holders>();

  std::mutex timers_lock_;
  std::shared_ptr<net::waits> waits_;
  std::map<const streams::strand*, std::shared_ptr<net::waits::watch>>
      watches_;  // of sources that wait for descriptors

  struct cancel_it {
    crew* of;
    void operator()() const noexcept { of->cancel(); }
  };
  std::optional<std::stop_callback<cancel_it>> stop_;
};

/// Joins the stages of a plan: fuses them, or puts edges between them, and makes the strands.
void lay_out(streams::plan&);
/// Says what `lay_out` would do. Throws bad_argument for what cannot run, and where edges may hold more than
/// `memory_bytes`; 0: no limit.
troupe::stream::layout describe(const streams::plan&, std::uint64_t memory_bytes);

}  // namespace troupe::detail::stage
