// What this file is for: the state of one thread of a core group: a batch of tasks, finished ones to report, bodies on
// its stack.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/core_group/outside.hpp"
#include "actors/core_group/parking.hpp"
#include "actors/core_group/task_queue.hpp"
#include "actors/execution/graph_run.hpp"
#include "actors/execution/run_context.hpp"
#include "actors/logic/scheduling/patience.hpp"
#include "actors/logic/scheduling/sampling.hpp"
#include "actors/logic/scheduling/unshared_work.hpp"
#include "actors/protocol/spmc_ring.hpp"
#include "actors/protocol/trace.hpp"
#include "actors/protocol/wait_table.hpp"
#include "devices/device.hpp"

namespace troupe::detail {

class core_group;

/// The state that the workers of one group share. Outlives them.
struct workplace {
  core_group* owner = nullptr;
  devices::device& host;
  runtime_state& rt;
  wait_table& board;
  std::string executor;
  std::atomic<bool>& stopping;
  const std::atomic<bool>& ended;  // no body is to begin any more
  double tick_ns = 1;
  logic::patience patience{0}, brief{0};  // of a thread that begins
};

/// The state of a thread of a core group, or of one from outside that helps. Only that thread uses it, except where
/// marked.
class worker {
 public:
  worker(const workplace& where, int n)
      : number(n),
        lanes{.to_others = static_cast<std::size_t>(n)},
        search{.patience = where.patience, .brief = where.brief},
        at_(where) {}

  // ---- bodies -------------------------------------------------------------------------------------------------------
  /// Runs the task unless it is cancelled first; afterwards it is done for all that wait for it. True if its body has
  /// succeeded, and the runtime has not given the task up meanwhile.
  bool run(task_record&);
  /// Notes how long the tasks that it has just run took, with what is done around them. Where that is far more than was
  /// predicted, it returns true, and the next ones are timed, all of them; see sampling::suspect.
  bool compare(float predicted_ns, float took_ns);
  /// Runs a node of a recorded graph; true if its body succeeded.
  bool run_node(graph_run&, std::uint32_t node);
  /// Returns the context of the innermost body; null outside bodies.
  run_context* context() const { return depth_ > 0 ? contexts_[static_cast<std::size_t>(depth_ - 1)].get() : nullptr; }
  int depth() const { return depth_; }
  /// A body as placement counts it: its slots and its predicted time.
  struct standing {
    int slots = 1;
    float predicted_ns = 0;
    std::uint64_t since = 0;  // ticks; 0: too short to be timed
    bool early = false;       // placement does not know of it
  };
  /// Returns the standing of the innermost body.
  standing body() const { return bodies_[static_cast<std::size_t>(depth_ - 1)]; }
  /// True if a body that waits with a limit, and so again and again for the same task, is to ask whether the two wait
  /// for each other: the first time, and every 64th time, as another task may have got the same record.
  bool is_to_ask(const task_record* inside, const task_record* awaited) {
    const std::array now{inside, awaited};
    if (std::exchange(asked_.pair, now) != now) asked_.times = 0;
    return asked_.times++ % 64 == 0;
  }
  /// Publishes the slots of the current body: it holds them, or (`false`) waits and has given them away.
  void show_slots(bool held);
  /// Nodes of recorded graphs that this thread holds, by run, the innermost first.
  graph_run::hand* hands = nullptr;

  // ---- what it holds; any thread may take from these ----------------------------------------------------------------
  using ring = spmc_ring<task_record, 2 * task_queue::batch_max>;
  ring batch;  // taken from the queue, not started
  ring done;   // ran here, not reported to placement

  // ---- any thread ---------------------------------------------------------------------------------------------------
  const int number;
  core_group& owner() const { return *at_.owner; }
  /// Returns the context of the body that runs now, above those that wait for it; null: none. Its task stays while
  /// placement's turn is held.
  const run_context* running() const { return running_.load(std::memory_order_acquire); }
  /// The slots of the body that runs now: none while it waits, or where it was too short to be timed.
  struct holding {
    std::atomic<std::uint64_t> since{0};
    std::atomic<float> predicted_ns{0};
    std::atomic<int> slots{0};
    std::atomic<bool> early{false};
  };
  const holding& holds() const { return holds_; }
  /// The slots of the body that runs now, however short it is: none while it waits.
  int slots_in_use() const { return in_use_.load(std::memory_order_relaxed); }
  /// True if a body runs that is not predicted to end soon, or that should have ended long ago. In ticks.
  bool is_held_up(std::uint64_t now, double soon, double ns_per_tick) const {
    if (holds_.slots.load(std::memory_order_relaxed) == 0) return false;
    const double predicted = static_cast<double>(holds_.predicted_ns.load(std::memory_order_relaxed)) / ns_per_tick;
    const auto taken = static_cast<double>(now - holds_.since.load(std::memory_order_relaxed));
    return !(predicted > 0) || predicted > taken + soon || taken > predicted + soon;
  }
  struct counters {
    std::atomic<std::uint64_t> tasks{0}, failed{0}, busy_ticks{0}, bytes{0};
  };
  const counters& counts() const { return counts_; }

  parking::thread parking_state;
  trace_lane lane;
  bool active = false;                        // counted as awake
  std::atomic<bool> is_batch_movable{false};  // tasks that were taken together may be for other executors, too
  /// Which lane of the queue is next.
  struct lane_choice {
    std::size_t visits = 0;        // to the queue
    std::size_t to_others = 0;     // of these, with another lane than its own first
    std::uint64_t other_last = 0;  // ticks at the last of those
  };
  lane_choice lanes;
  /// Returns the lane of the queue that it uses.
  std::size_t queue_lane() const { return static_cast<std::size_t>(number) % task_queue::own_lanes; }
  std::uint64_t counted = 0;  // of its tasks, when those of all threads were counted last
  /// A thread that has run dry looks for work before it sleeps.
  struct idle_search {
    logic::patience patience;       // for longest_look
    logic::patience brief;          // for options::spin
    std::uint64_t dry_since = 0;    // ticks since when it has had nothing to do; 0: it has
    std::uint64_t looks_since = 0;  // ticks since when it looks for work, and is counted as doing so; 0: it does not
    bool has_slept = false;         // since it ran dry
    bool ran_graph = false;         // the last bodies that it ran were nodes of a recorded graph
  };
  idle_search search;
  logic::unshared_work unshared;
  /// A thread that computes looks now and then for threads that wait for its core.
  struct core_watch {
    std::uint64_t last = 0;  // ticks when it last looked
    int nodes = 0;           // of recorded graphs that it has run since then
  };
  core_watch minding;
  outside::visit network;
  bool passes = false;     // its body uses a slot while others are in line
  bool overtaken = false;  // a task of a higher priority than the run that it owns has waited since its last node
  bool yielded = false;    // its body has given the slots away by yield_core
  std::thread handle;
  std::atomic<int> system_thread{-1};  // see devices::move_thread_from
  std::atomic<bool> ended{false};

 private:
  void add_level();
  run_context& enter(task_record&, standing, task_record* run = nullptr);
  void leave() {
    --depth_;
    in_use_.store(depth_ != 0 ? body().slots : 0, std::memory_order_relaxed);
  }
  struct outcome {
    bool fine = false;
    int bodies = 1;  // that have run; all but the last have thrown
  };
  outcome run_body(run_context&, task_record&);
  static outcome note_bodies(task_record&, outcome);
  void count(run_context&, outcome);

  const workplace& at_;
  scratch buffers_;
  std::vector<std::unique_ptr<run_context>> contexts_;  // by depth, as the next one
  std::vector<standing> bodies_;
  int depth_ = 0;
  /// The question whether two tasks wait for each other.
  struct question {
    std::array<const task_record*, 2> pair{};  // the waiting task and the awaited one
    unsigned times = 0;                        // that it has come up
  };
  question asked_;
  std::atomic<const run_context*> running_{nullptr};
  std::atomic<int> in_use_{0};
  holding holds_;
  logic::sampling timed_;  // of the shortest bodies that are timed
  counters counts_;
};

/// The worker of this thread; null elsewhere. Set by core groups.
inline thread_local worker* this_worker = nullptr;

}  // namespace troupe::detail
