// What this file is for: the state of a core group, for the files that are its parts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   wakes.cpp       threads that are woken, counted as awake, added, or moved to another core
//   reports.cpp     bodies that have ended, and what a thread gives back
//   waits.cpp       waiting inside a body, and threads from outside that help
//   graphs.cpp      taking part in runs of recorded graphs
//   work.cpp        what a thread does next: batches, stealing, passing the line
//   core_group.cpp  the executor interface, and the main loop of a thread
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "actors/control/stall_watch.hpp"
#include "actors/core_group/core_group.hpp"
#include "actors/core_group/line_passers.hpp"
#include "actors/core_group/outside.hpp"
#include "actors/core_group/owed_wake_ups.hpp"
#include "actors/core_group/parking.hpp"
#include "actors/core_group/task_queue.hpp"
#include "actors/core_group/waiting_bodies.hpp"
#include "actors/core_group/worker.hpp"
#include "actors/core_group/worker_threads.hpp"
#include "actors/execution/graph_run.hpp"
#include "actors/execution/open_runs.hpp"
#include "actors/logic/scheduling/sharing_trial.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

class group_actor final : public core_group,
                          public std::enable_shared_from_this<group_actor>,
                          private parking::wake_conditions {
 public:
  group_actor(core_group_options, placement&, wait_table&, open_runs&, devices::device& host, runtime_state&, on_idle,
              void* context);
  ~group_actor() override { forget_stalls(*this); }

  // ---- executor -----------------------------------------------------------------------------------------------------

  const executor_facts& facts() const override { return options_.facts; }

  void start() override {
    for (int i = 0; i < options_.facts.slots; ++i) threads_.add();
  }

  void run_tasks(std::span<task_record* const> tasks, attention who) override;
  void run_own(task_record& t, std::size_t number, attention who) override;
  void run_released(std::span<task_record* const>) override;
  void after_turn() override;
  bool wants_after_turn() const override { return owed_.any(); }
  int sleepers() const override { return parking_.sleepers(); }
  void wake_one() override { parking_.wake(1, parking::nearness::far); }
  void keep_watch() override { parking_.keep_watch(); }
  std::size_t queued() const override { return queue_.size(); }

  std::size_t unstarted() const override;
  float queued_ns() const override { return queue_.movable_ns(); }
  bool has_movable() const override;
  unplaced_load unplaced() const override;
  int slots_in_use() const override;
  bool is_held_up() const override;
  void report_ended() override;
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override;

  executor_report report() const override;
  waiting_load waiting() const override { return waiting_.load(); }
  bool is_stalled() const override;

  // ---- actor --------------------------------------------------------------------------------------------------------

  void restart() override { make_spares(1); }

  // ---- core_group ---------------------------------------------------------------------------------------------------

  void request_stop() override {
    stopping_.store(true);
    parking_.close();
  }
  bool wait_ended(std::chrono::steady_clock::time_point deadline) override { return threads_.wait_ended(deadline); }
  std::vector<task_record*> running() const override;
  int threads() const override { return threads_.count(); }
  bool help_with(task_record& awaited, const std::function<void()>& begin) override;
  void poll_with(std::shared_ptr<net::control_poller> p) override { outside_.use(std::move(p)); }

  bool wait_inside(worker&, task_record& awaited, wait_table&, std::chrono::steady_clock::time_point) override;
  void give_slot(worker&) override;
  void take_slot(worker&) override;
  void report_last(worker&, task_record&) override;
  void refuse_claimed(task_record&) override;
  std::exception_ptr run_graph(worker&, task_record&) override;

 private:
  void look_up() override { parking_.wake(1, parking::nearness::near); }

  // parking::wake_conditions
  bool somebody_works() const override;
  bool work_in_sight() const override;
  bool left_alone() const override;
  bool work_overdue() const override;
  bool work_to_watch() const override;
  void all_asleep() override {
    pauses_.fetch_add(1, std::memory_order_relaxed);
    if (idle_) idle_(idle_context_);
  }

  // Where more work is likely to come soon a thread looks longer for it than options::spin: in the run of a recorded
  // graph, and if it has mostly come soon of late.
  std::uint64_t longest_look() const { return 5 * spin_ticks_; }
  // A wake-up holds up the thread that wakes, the one that is woken, and those that wait for what it is to do.
  static constexpr std::uint64_t threads_held_up = 3;
  // Wake-ups that it takes to give the network's part back, to be woken when something comes, and to get it again.
  static constexpr std::uint64_t wakes_of_network = 5;
  // A thread that looks for work and has not run for so long waits for its core.
  static constexpr std::chrono::nanoseconds stuck = std::chrono::microseconds(50);
  // Looks in vain for a node of a graph, and for what comes over the network, after which a thread gives its core away.
  static constexpr int looks_between_yields = 8;
  // Nodes of a recorded graph after which a thread looks for such threads.
  static constexpr int nodes_between_looks = 8;
  // A thread asks for the network's part when it has had nothing to do for so long, and not so soon after batches.
  static constexpr std::chrono::nanoseconds network_patience = std::chrono::microseconds(5);
  static constexpr std::chrono::nanoseconds network_pause = std::chrono::milliseconds(1);
  // A thread looks into its own lane first in all but one of so many visits to the queue.
  static constexpr std::size_t visits_to_own = 4;
  // Tasks of a thread after which the ended ones of all threads are counted, and the mean time of bodies from which on
  // it makes no difference whether they are shared as tiny ones; see logic::sharing_trial.
  static constexpr std::uint64_t tasks_between_counts = 256;
  static constexpr std::chrono::nanoseconds tiny = std::chrono::microseconds(1);
  float wake_up_ns() const { return static_cast<float>(parking_.wake_up()) * static_cast<float>(tick_ns_); }
  // Work for which one sleeping thread is woken: a part of what a wake-up takes here, within limits, as one that took
  // long may have waited for a core.
  float wake_worth_ns() const { return std::clamp(wake_up_ns() / 3, 3'000.0f, 30'000.0f); }
  float wake_worth_ticks() const { return wake_worth_ns() / static_cast<float>(tick_ns_); }
  // Time for which a thread that polls the network looks away.
  float moment_ns() const;
  std::uint64_t ticks_of(std::chrono::nanoseconds t) const {
    return static_cast<std::uint64_t>(static_cast<double>(t.count()) / tick_ns_);
  }

  // Each file calls functions of those before it only.
  // ---- wakes.cpp
  void make_spares(int n);
  void be_awake(worker&, bool);
  void wake(std::size_t threads, parking::nearness);
  void found_work(worker&);
  void move_stuck(worker&);
  void call_threads(std::size_t queued, attention);
  void call_threads_for_one(std::size_t number, attention);
  void call_sleepers(std::size_t queued, attention, float stealable_ns);
  void owe_wake_ups(std::size_t threads);
  void wake_owed();

  // ---- reports.cpp
  void run_and_report(worker&, task_record&, executor* looks_next);
  void report_done(worker&, executor* looks_next);
  bool return_batch(worker&, const task_record* awaited);
  void lay_out_hands(worker&);

  // ---- waits.cpp
  class waiting_body;
  void note_waiting(const worker::standing&, int sign);
  void put_down(worker&);
  void take_up(worker&);
  void leave_slots(worker&);
  void come_back(worker&, std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());
  void give_helper(worker&);

  // ---- graphs.cpp
  bool join_graph(worker&);
  void open_run(graph_run&, const logic::executor_set& scope);
  void call_missing(graph_run&);
  bool is_to_leave(worker&, const graph_run&, bool owner);
  void stand_aside(worker&, const graph_run&);
  void call_for_nodes(graph_run&);
  bool next_node(worker&, graph_run&, graph_run::hand&, std::uint32_t& node);
  bool look_for_node(worker&, graph_run&, graph_run::hand&, std::uint32_t& node, std::uint64_t limit);
  void run_nodes(worker&, graph_run&, graph_run::hand&, bool owner);
  void finish_run(worker&, graph_run&, graph_run::hand&, bool owner);
  void await_nodes(worker&, graph_run&);

  // ---- work.cpp
  void leave_to_others(worker&, const task_queue::sums& taken);
  bool takes_long(const task_record&, const task_queue::share&) const;
  void release_successors(worker&, task_record&, task_queue::share&);
  void run_of_share(worker&, task_record&, task_queue::share&);
  void try_sharing(worker&);
  lane_preference next_lane(worker&) const;
  bool work_once(worker&);
  bool pass_line(worker&);
  bool steal(worker&);
  bool something_held() const;

  // ---- core_group.cpp
  void run_without_slot(task_record&);
  void run_wide(task_record&, int slots);
  void open_lane(worker&, bool helps);
  std::function<void()> main_of(std::shared_ptr<worker>);
  void thread_main(worker&);
  void work_on(worker&);
  void end_thread(worker&);
  bool is_worth_looking() const;
  bool looks_on(worker&);
  bool stops_looking(worker&);
  bool is_over_quota() const;

  const core_group_options options_;
  placement& placement_;
  open_runs& runs_;
  const on_idle idle_;
  void* const idle_context_;
  const double tick_ns_;
  const std::uint64_t spin_ticks_;
  const int usable_cores_;
  const double core_quota_;  // 0: none
  const bool may_move_;      // threads to other cores
  const std::uint64_t stuck_ticks_;
  std::atomic<bool> stopping_{false};
  const workplace workplace_;
  worker_threads threads_;
  task_queue queue_;
  mutable parking parking_;
  owed_wake_ups owed_;
  waiting_bodies waiting_;
  std::atomic<int> awake_{0};                    // threads with a slot that run, look for work or decide
  mutable std::uint32_t seen_takes_ = 0;         // under parking's lock
  std::atomic<const worker*> looking_{nullptr};  // the thread that ran dry last
  std::atomic<int> lookers_{0};                  // threads that look for work
  std::atomic<std::uint64_t> pauses_{0};         // times that all threads were asleep
  std::mutex trial_lock_;
  logic::sharing_trial trial_;         // under its lock
  std::atomic<bool> are_tiny_{false};  // the tasks that have ended lately, and those that are taken now
  outside outside_;
  line_passers passers_;
};

}  // namespace troupe::detail
