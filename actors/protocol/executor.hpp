// What this file is for: the protocol that every executor answers: core groups now, GPUs and remote nodes in the same way.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Placement -> executor: run_tasks, take_back, recall. Executor -> placement: tasks_done (placement::report_done), and looks
// for mail when it runs dry. Non-blocking but for start and stop. Nothing here says that an executor is a CPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <troupe/detail/task.hpp>
#include <troupe/report.hpp>

namespace troupe::detail {

/// A memory in which replicas live: host memory of this node is 0.
using memory_space = std::uint16_t;
inline constexpr memory_space host_space = 0;
/// Of a tile whose dirty copy is lost, while others are asked for a copy of it.
inline constexpr memory_space no_space = 0xffff;

/// In this process: how often executors have been made or have got another name. As long as it is the same, scopes of a
/// runtime name the same ones.
inline std::atomic<std::uint64_t> executor_changes{1};
inline void executors_changed() { executor_changes.fetch_add(1, std::memory_order_release); }

/// The name of the node that has a place among the executors now. Thread-safe.
class node_label {
 public:
  void set(std::string name) {
    std::lock_guard hold(lock_);
    name_ = std::move(name);
    executors_changed();
  }
  std::string text() const {
    std::lock_guard hold(lock_);
    return name_;
  }
  bool is(const std::string& name) const {
    std::lock_guard hold(lock_);
    return !name.empty() && name_ == name;
  }

 private:
  mutable std::mutex lock_;
  std::string name_;
};

struct executor_facts {
  std::uint16_t id = 0;
  std::string name;
  device_kind kind = device_kind::cpu;
  memory_space space = host_space;
  int slots = 1;
  std::uint64_t memory_bytes = 0;       // of its own; 0: it uses the host's
  int index = 0;                        // of a device, among those of its kind
  std::uint16_t card = 0;               // devices of one number are slots of one card
  bool has_double = true;               // kernels as text may use doubles
  int takes_cores = 0;                  // a device that computes on the cores: how many a task of it takes
  bool shares_cores() const { return takes_cores != 0; }
  std::shared_ptr<node_label> label{};  // of another node
  /// For people.
  std::string shown_name() const {
    const std::string there = label ? label->text() : std::string();
    return there.empty() ? name : there;
  }
};

/// Bodies that wait for something: they have given their slots away and go on later.
struct waiting_load {
  int slots = 0;
  float ns = 0;  // what they were predicted to take
};

class executor {
 public:
  virtual ~executor() = default;

  virtual const executor_facts& facts() const = 0;
  /// Who will look at what was handed over without being woken.
  enum class attention {
    caller,    ///< the caller is one of the executor's threads, holds a slot and looks for work next
    somebody,  ///< a thread of this runtime took a turn a moment ago
    nobody,    ///< nobody may be looking
    client,    ///< as nobody; and the calling thread, outside all bodies, may be about to wait for it
  };
  /// Takes ready tasks to run, in order of priority, then as given. Never refuses, never blocks.
  virtual void run_tasks(std::span<task_record* const>, attention) = 0;
  /// The turn in which it was handed something has been left. Nodes send then.
  virtual void after_turn() {}
  /// Nodes: brings a tile home that only they have. Takes a handle of the array.
  virtual void save(array_core&, std::uint32_t) {}
  /// Threads that sleep and would take work.
  virtual int sleepers() const = 0;
  /// Wakes one sleeping thread to look for mail.
  virtual void wake_one() = 0;
  /// There is work that somebody who is awake is to see to: makes sure that a sleeper looks up now and then.
  virtual void keep_watch() = 0;
  /// Tasks handed over that none of its threads has taken.
  virtual std::size_t queued() const = 0;
  /// The same with what its threads have taken along and not started; slower to find out.
  virtual std::size_t unstarted() const = 0;
  /// Predicted nanoseconds of work handed over and not started, beyond what moving it elsewhere would cost.
  virtual float queued_ns() const = 0;
  /// It is short of memory, and the more it knows of what comes the less it has to move: tasks that nobody else may run
  /// are welcome long before their turn.
  virtual bool looks_ahead() const { return false; }
  /// Hands back what has not been started and what `wanted` agrees to, the newest of the lowest priority first, as far
  /// as there is room (rebalancing, shutdown).
  virtual std::size_t take_back(std::span<task_record*> room,
                                const std::function<bool(const task_record&)>& wanted) = 0;
  /// Asks for those that it has handed on and that have not begun there: they come back as tasks that it cannot run.
  virtual void recall(const std::function<bool(const task_record&)>& wanted) { (void)wanted; }
  /// Of what it was given and has begun. Who changes that tells placement; see placement::waits_changed.
  virtual waiting_load waiting() const { return {}; }
  /// It could begin with a task of that kernel at once. If not, it gets ready aside, as soon as it has nothing to do. The
  /// kernel stays where it is.
  virtual bool is_ready_for(const kernel_info&) { return true; }
  /// It has tasks that could run now, and nobody who is awake to run them. True for a moment on the way to sleep.
  virtual bool is_stalled() const { return false; }
  virtual executor_report report() const = 0;
  virtual void start() = 0;
};

}  // namespace troupe::detail
