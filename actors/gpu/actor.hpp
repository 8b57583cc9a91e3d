// What this file is for: the state of a device's actor, for the files that are its parts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   gpu.cpp             the executor that others see, and the thread
//   tasks.cpp           starting and ending tasks
//   graphs.cpp          runs of recorded graphs
//   internal_tasks.cpp  copies home, room, arrays forgotten
//   polling.cpp         whose turn it is to use the device: the actor's thread, or one that waits
//   kernels.cpp         kernels that are loaded, when there is a task or before
//   peer_copies.cpp     tiles lent to other devices and by them
//   probing.cpp         what its link costs, looked at while there is nothing to do
//   recovery.cpp        a device that fails
#pragma once

#include <optional>
#include <vector>

#include <troupe/error.hpp>

#include "actors/actor.hpp"
#include "actors/gpu/counters.hpp"
#include "actors/gpu/gpu.hpp"
#include "actors/gpu/graph_captures.hpp"
#include "actors/gpu/job.hpp"
#include "actors/gpu/job_list.hpp"
#include "actors/gpu/kernel_requests.hpp"
#include "actors/gpu/lane_clocks.hpp"
#include "actors/gpu/lanes.hpp"
#include "actors/gpu/loaded_kernels.hpp"
#include "actors/gpu/mailbox.hpp"
#include "actors/gpu/memory.hpp"
#include "actors/gpu/probe_schedule.hpp"
#include "actors/gpu/repair.hpp"
#include "actors/gpu/stopwatch.hpp"
#include "actors/gpu/watchers.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

class gpu_actor final : public gpu, public std::enable_shared_from_this<gpu_actor> {
 public:
  gpu_actor(gpu_options, std::unique_ptr<devices::accelerator>, placement&, wait_table&, runtime_state&);

  // ---- executor -----------------------------------------------------------------------------------------------------
  const executor_facts& facts() const override { return options_.facts; }
  void start() override;
  void run_tasks(std::span<task_record* const>, attention) override;
  int sleepers() const override { return mail_.alarm_bell().has_sleeper() ? 1 : 0; }
  void wake_one() override { mail_.alarm_bell().ring(); }
  void keep_watch() override {
    if (watchers_.ask_for_nap() && sleepers() != 0) mail_.alarm_bell().ring();
  }
  std::size_t queued() const override { return mail_.queued(); }
  std::size_t unstarted() const override { return queued(); }
  float queued_ns() const override { return 0; }  // nobody else has its memory
  bool is_ready_for(const kernel_info&) override;
  bool looks_ahead() const override { return mail_.looks_ahead(); }
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override {
    return mail_.take_back(room, wanted);
  }
  executor_report report() const override;

  // ---- gpu ----------------------------------------------------------------------------------------------------------
  void request_stop() override {
    stopping_.store(true);
    mail_.alarm_bell().ring();
  }
  bool wait_ended(std::chrono::steady_clock::time_point) override;
  std::vector<task_record*> running() const override;
  bool drive() override;
  bool busy() const override { return watchers_.busy(); }
  void watch() override { watchers_.add(); }
  void unwatch() override;

  // ---- actor --------------------------------------------------------------------------------------------------------
  void restart() override;
  void withdraw(std::exception_ptr) override;

 private:
  void look_up() override { mail_.alarm_bell().ring(); }

  enum class outcome { started, no_room };
  using job = gpu_job;

  // ---- gpu.cpp
  void thread_main();
  bool step();
  void ask_to_be_woken();
  void refuse(task_record& t);
  void close_device();

  // ---- polling.cpp
  void sleep();
  void leave_turn() {
    watchers_.note_busy(!jobs_.empty());
    turn_.leave();
  }
  void yield();
  bool drive_now();
  bool step_small();

  // ---- ends.cpp
  void end_task(task_record&, std::exception_ptr, std::uint64_t begin, int attempts = 1, std::optional<errc> code = {});
  void end_cancelled(task_record&);
  bool report_done_tasks();
  void return_refused(task_record&, std::exception_ptr why);

  // ---- tasks.cpp
  bool is_small(const task_record&);
  static bool is_for_own_thread(const job&);
  bool may_end(const job&) const;
  bool collect();
  bool start_some(bool small_only = false);
  outcome start_task(task_record&);
  std::optional<outcome> reserve_room(job&, task_record&);
  void enqueue(job&);
  void launch(job&);
  void call_routine(job&, routine_fn);
  int lane_for(const job&);
  void give_back(task_record&);
  void finish(job&);
  void hand_back(task_record&, std::exception_ptr why);
  void pass_on(job&);
  void look_for_complaints(job&);
  void spoil_readers(const job& failed);
  void give_up_result(job&);
  void note_bytes_in(job&) const;
  void learn_link();
  void check_deadline();
  [[noreturn]] void complain_no_room(const job&) const;

  // ---- kernels.cpp
  devices::kernel_id loaded(const kernel_info&);
  void launch_text(task_record&, gpu_context&, int lane);
  const kernel_text& source_of(const kernel_info& k) const {
    return k.texts[static_cast<std::size_t>(options_.facts.kind)];
  }
  bool get_ready();
  bool may_load(const kernel_requests::request&);
  bool nobody_else_works() const;

  // ---- graphs.cpp
  void launch_graph(job&);
  void launch_nodes(recorded_graph&, job&);
  template <class F>
  void as_call(const task_record& call, F&& f) const;
  std::exception_ptr complaint_of_call(const job&);

  // ---- internal_tasks.cpp
  bool start_internal_tasks();
  outcome start_internal(task_record&);
  template <class Send>
  void begin_sending(task_record&, std::uint64_t begin, Send&& send);
  outcome fetch(task_record&);
  outcome forget(task_record&);
  bool make_room(const task_record&);

  // ---- peer_copies.cpp
  outcome lend(task_record&);
  bool is_being_copied(const access&) const;
  static std::exception_ptr why_rescued(const task_record&);
  void run_again(job&);
  void trace_peers(memory_space from, std::uint64_t begin, std::uint64_t end);

  // ---- probing.cpp
  bool may_probe() const {
    return options_.probes_link && probes_.any_left() && device_ && jobs_.empty() && !stopping_.load();
  }
  bool probe_link();
  float timed_copy(bool in, void* there, std::byte* here, std::size_t bytes);

  // ---- recovery.cpp
  static bool is_fatal(const error& e) { return e.code() == errc::device_failed || e.code() == errc::device_lost; }
  void fail_device(std::exception_ptr);
  task_record* end_failed_job(job&, const std::exception_ptr& why);
  bool go_on_after_failure();
  static bool may_run_again(task_record&);

  gpu_options options_;
  placement& placement_;
  wait_table& board_;
  runtime_state& rt_;
  const gpu_stopwatch time_;

  // Shared with other threads.
  gpu_mailbox mail_;
  std::atomic<bool> stopping_{false};
  static thread_local const gpu_actor* driven_by_this_thread_;
  gpu_watchers watchers_;
  alignas(64) turn turn_{true};  // the right to use the device; its thread's at first
  gpu_counters counters_;
  kernel_requests requests_;
  gpu_repair repair_;
  actor_thread thread_;

  // With the turn.
  std::unique_ptr<devices::accelerator> device_;
  std::uint32_t failure_epoch_ = 0;  // tasks that were given to it and that it has not run well
  gpu_lanes lanes_;
  gpu_memory memory_;
  gpu_job_list jobs_;
  loaded_kernels kernels_;
  graph_captures captures_;
  gpu_context node_;
  std::vector<task_record*> done_;
  calm_watch calm_;
  lane_clocks clocks_;
  probe_schedule probes_;
  trace_lane trace_;
};

}  // namespace troupe::detail
