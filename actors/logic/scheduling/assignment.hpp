// What this file is for: which executor a ready task goes to, and when.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Late binding: an executor is given about a window of predicted work; ready tasks beyond that stay here, for the
// executor that is done first. Owned by placement; no thread, no clock.
//
// All core groups and devices are weighed for a task, and of many nodes a few: some that have part of its inputs, and
// some that have room, in turn. So the cost of a task does not grow with the cluster.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/report.hpp>

#include "actors/logic/data/directory.hpp"
#include "actors/logic/scheduling/admission.hpp"
#include "actors/logic/scheduling/cost_model.hpp"
#include "actors/logic/scheduling/decisions.hpp"
#include "actors/logic/scheduling/eligibility.hpp"
#include "actors/logic/scheduling/ready_queue.hpp"
#include "actors/logic/scheduling/sampling.hpp"
#include "actors/logic/scheduling/space_map.hpp"
#include "actors/logic/scheduling/trials.hpp"
#include "actors/logic/scheduling/workload.hpp"
#include "actors/protocol/executor_facts.hpp"
#include "actors/protocol/grown_times.hpp"
#include "actors/protocol/memory_space.hpp"
#include "actors/protocol/timed_calls.hpp"

namespace troupe::logic {

class assignment {
 public:
  /// `decisions_max`: the number of choices that are remembered for `explain`.
  assignment(float window_ns, std::size_t decisions_max)
      : window_ns_(window_ns), work_(window_ns), decisions_(decisions_max) {}

  /// Makes trials careful from now on: a device is tried where that does no harm, see trials; and a device that
  /// computes on the cores gets only tasks that take less time of the cores there.
  void be_careful(trials::readiness r) {
    careful_ = true;
    trials_.be_careful(std::move(r));
  }
  /// Has `f` called before executors are weighed for a task: it may tell what is to be known then.
  void ask_before_choices(std::function<void()> f) { before_choices_ = std::move(f); }
  /// Adds an executor; its id is the number of those added before.
  void add(const detail::executor_facts&);
  const std::vector<detail::executor_facts>& facts() const { return facts_; }
  executor_set all() const { return eligible_.all(); }
  /// Returns the executors that have a body of the kernel and can run it. Any thread, once all have been added.
  executor_set able_to_run(const detail::kernel_info& k) const { return eligible_.able_to_run(k); }

  /// True if only cores may run the task, now and later.
  bool is_for_cores(const detail::task_record& t) { return (eligible_.masks_of(t).ever - eligible_.cores()).empty(); }
  /// Predicts a task that is not ready yet, needs no resources and is for cores, if one core group only may run it and
  /// something is known about it; and marks it as early if that is worth it: nobody has to assign it then when it is
  /// ready. `number`: its own.
  void foresee(detail::task_record&, std::uint64_t number);
  /// The same for a task that is ordered aside: true if it is early, else nothing is changed. Several threads may call
  /// it while nobody calls anything else; `note_foreseen` is called before anything is learned.
  bool foresee_aside(detail::task_record&) const;
  /// Notes that numbers up to this one may be those of tasks that were foreseen.
  void note_foreseen(std::uint64_t number) { last_foreseen_ = number; }
  /// True if some task was foreseen.
  bool has_foreseen() const { return last_foreseen_ != 0; }
  /// Returns the last task whose prediction by `foresee` holds no more; 0: there is none.
  std::uint64_t outdated() const { return outdated_; }
  /// The predictions that hold by now for the tasks up to that one. Any thread may ask.
  const detail::grown_times& grown() const { return grown_; }
  /// Puts a ready task among some executor's outgoing ones, or keeps it until one has room.
  void assign(detail::task_record&);
  /// Assigns a task that came back after it was handed over: other tasks may wait for it, so it does not wait for room.
  void assign_again(detail::task_record&);
  /// Assigns kept tasks to executors that have room again.
  void refill();
  /// True if executor i may run the task.
  bool may_run(const detail::task_record& t, std::size_t i) const { return eligible_.mask_of(t).contains(i); }
  /// Returns the only executor that may run the task; executor_set::end if there are several, or none.
  int only_for(const detail::task_record& t) {
    const executor_set& all = eligible_.masks_of(t).all;
    return all.has_single() ? all.first() : executor_set::end;
  }
  /// True if executor i may take the task over from the one that has it.
  bool suits(const detail::task_record& t, std::size_t i) const {
    return eligible_.mask_of(t).contains(i) && facts_[t.executor].space == facts_[i].space;
  }
  /// Hands an assigned task that had to wait for its data to its executor now.
  void resume(detail::task_record& t) { work_.resume(t); }
  /// Marks an assigned task as waiting for input data; its slot may be given to another task until resume().
  void set_aside(detail::task_record& t) { work_.set_aside(t); }
  /// True if a device has enough to do for now to be sent no chained task: a window of work, and in any case one task
  /// behind the running one. `far`: false where no other executor may run the task: it may be sent long before its
  /// turn.
  bool has_enough(const detail::task_record&, std::size_t i, bool far);
  /// True if no more than half a window is left of what had been enough.
  bool runs_low(std::size_t i) const { return work_.outstanding_ns(i) <= window_ns_ / 2; }
  /// Assigns a task to the device that has all its predecessors, to run behind them; false if another executor may be
  /// done with it earlier.
  bool assign_behind(detail::task_record&, std::size_t i);
  /// Undoes the assignment of a task that its executor could not run.
  void take_back(detail::task_record&);
  /// Withdraws executor i: it gets no more tasks.
  void withdraw(std::size_t i) { eligible_.withdraw(i); }
  /// Restores a withdrawn executor, with so many slots.
  void restore(std::size_t i, int slots) {
    eligible_.restore(i);
    work_.restart(i, slots);
  }
  /// Notes the work that a node has for other owners, as it reported; that comes before tasks from here. The node has
  /// room for tasks of this node all the same, so that no owner keeps another out: the number only shifts predicted
  /// finish times.
  void know_others(std::size_t i, float ns) { work_.know_others(i, ns); }
  /// Pauses executor i, or ends its pause: while paused it gets no tasks; tasks that only it may run wait.
  void pause(std::size_t i, bool paused) { eligible_.pause(i, paused); }
  /// True if an executor that could run the task has not been withdrawn.
  bool can_run(const detail::task_record& t) { return !eligible_.masks_of(t).all.empty(); }
  /// Returns the predicted run time of the task's body; 0: unknown.
  float predicted_ns(const detail::task_record&);
  /// Returns the bytes of the task's data that are not in that space.
  std::uint64_t missing_bytes(const detail::task_record&, detail::memory_space) const;
  /// Returns the nodes on which the task may run, whatever it holds.
  admission::eligible_nodes nodes_for(const detail::task_record& t) const { return eligible_.nodes_for(t); }
  /// Returns the space that an assigned task will run in.
  detail::memory_space space_of(const detail::task_record& t) const { return facts_[t.executor].space; }
  /// Returns the executor of a space other than the host's.
  std::size_t executor_of(detail::memory_space s) const { return spaces_.executor_of(s); }
  /// Moves a task that its executor has handed back to executor i.
  void move(detail::task_record&, std::size_t i);
  /// Removes the load of an assigned task that has ended, and learns its run time. Of an early task whose list of
  /// successors has been sealed `learn` is told apart, while its arrays are certainly there.
  void finished(detail::task_record&);
  /// Learns the time of a call that the first executor, the cores, has run.
  void learn(const detail::timed_call&);
  /// Returns the bytes of all that a task names, by which its times are kept apart.
  static std::uint64_t bytes_of(const detail::task_record&);
  /// Calls f(i) for executors that take much longer than was predicted for the tasks they have, while others are idle:
  /// tasks that have not begun there are to be placed anew. Each is reported once, as soon as an executor is idle.
  template <class F>
  void each_surprise(F&& f) {
    if (!surprised_) return;
    surprised_ = false;
    if (before_choices_) before_choices_();
    const executor_set some = std::exchange(surprises_, {});
    some.each([&](std::size_t i) {
      executor_set idle = eligible_.without_withdrawn(work_.free());
      idle.erase(i);
      if (!idle.empty()) return f(i);
      if (work_.under_way(i) == 0) return;
      surprises_.insert(i);
      surprised_ = true;
    });
  }
  /// True if an executor other than the one that has the task may run it.
  bool has_choice(const detail::task_record& t) const {
    const executor_set mask = eligible_.mask_of(t);
    return !mask.empty() && !mask.has_single();
  }
  /// Learns from a copy between two spaces that took `ns`.
  void learn_transfer(detail::memory_space from, detail::memory_space to, std::uint64_t bytes, float ns) {
    model_.learn_transfer(from, to, bytes, ns);
  }
  /// Returns the predicted time of a copy.
  float transfer_ns(detail::memory_space from, detail::memory_space to, std::uint64_t bytes) const {
    return model_.transfer_ns(from, to, bytes);
  }
  bool correct_link(detail::memory_space from, detail::memory_space to, std::uint64_t bytes, float ns, float trip_ns) {
    return model_.correct(from, to, bytes, ns, trip_ns);
  }
  cost_model::learned_edge learned(detail::memory_space from, detail::memory_space to) const {
    return model_.learned(from, to);
  }
  int slots_of(std::size_t i) const { return work_.slots(i); }
  /// Notes that waiting bodies have left so many slots of executor i, and were predicted to take so long.
  void know_waiting(std::size_t i, int slots, float ns) { work_.know_waiting(i, slots, ns); }
  /// Notes how many early tasks executor i has that nobody has assigned, and what they are predicted to take.
  void know_unplaced(std::size_t i, int tasks, float ns) { work_.know_unplaced(i, tasks, ns); }
  /// Sets the cost of an edge, as measured before the first task.
  void know_link(detail::memory_space from, detail::memory_space to, edge_cost c) { model_.set_edge(from, to, c); }
  /// Returns how long a copy takes from one space to another, through host memory where they do not reach each other.
  float hop_ns(detail::memory_space from, detail::memory_space to, std::uint64_t bytes) const;
  /// Notes that copies from one device space to another need not go through the host's memory.
  void connect(detail::memory_space from, detail::memory_space to) { spaces_.connect(from, to); }
  bool is_withdrawn(std::size_t i) const { return eligible_.is_withdrawn(i); }
  bool is_paused(std::size_t i) const { return eligible_.is_paused(i); }
  /// Makes all of a device's copies go through the host's memory from now on.
  void disconnect(detail::memory_space s) { spaces_.disconnect(s); }
  bool reaches(detail::memory_space to, detail::memory_space from) const { return spaces_.reaches(to, from); }
  void know_time(const remembered_time& t) { model_.remember(t); }
  std::vector<remembered_time> measured_times() const { return model_.measured(); }
  /// Removes every kept task; calls f(task) for each.
  template <class F>
  void drop_kept(F&& f) {
    for (backlog& b : backlogs_)
      while (detail::task_record* t = b.tasks.pop()) f(*t);
    kept_.store(0);
  }

  /// Returns the tasks to be handed to executor i; the caller that empties the list calls `sent`.
  std::vector<detail::task_record*>& outgoing(std::size_t i) { return work_.outgoing(i); }
  void sent(std::size_t i) { work_.sent(i); }
  /// Returns the first executor from this one on that may have outgoing tasks; executor_set::end if there is none.
  int next_outgoing(int from) const { return work_.next_outgoing(from); }
  bool something_outgoing() const { return work_.something_outgoing(); }
  /// Returns the number of ready tasks that no executor has room for. Any thread.
  std::size_t kept() const { return kept_.load(std::memory_order_seq_cst); }

  /// Sums over the tasks of executor i whose kernels were known: predicted against measured.
  double predicted_ns(std::size_t i) const { return work_.predicted_ns(i); }
  double measured_ns(std::size_t i) const { return work_.measured_ns(i); }
  explanation explain(const detail::task_record&) const;

  /// Number of tasks that executor i has been given and not finished.
  int under_way(std::size_t i) const { return work_.under_way(i); }
  /// Load of tasks that core groups and devices (not nodes) have been given and not finished.
  using load = workload::load;
  load given() const { return work_.given(); }
  /// Returns the part of it that tasks with this listener make up; tasks from other nodes have one.
  load given(const detail::task_listener* l) const { return work_.given(l); }

 private:
  // Run time assumed for a kernel that has not been timed, so that a first flood spreads over the executors.
  static constexpr float guess_ns = 10'000.0f;
  // Value of `waiting` for a task that does not wait for room.
  static constexpr std::size_t at_once = ~std::size_t{0};
  // Number of samples of a kernel after which only one in eight is learned.
  static constexpr std::uint32_t samples_before_thinning = 64;
  // Number of nodes that are weighed for a task, half of them with some of its data if there are any.
  static constexpr int nodes_weighed = 4;

  struct backlog {
    executor_set mask;
    ready_queue<detail::task_record*> tasks{};
    bool is_looked_at = false, waits_for_room = false;  // in this refill
  };
  backlog* next_backlog();

  // The run times of the task at hand by kind of executor, each looked up once.
  class models {
   public:
    models(assignment& a, const detail::task_record& t) : from_(a), task_(t) {}
    const run_time& of(device_kind kind) {
      const run_time*& m = found_[static_cast<std::size_t>(kind)];
      return m ? *m : *(m = &from_.model_of(task_, kind));
    }
    const run_time& of(const offer& o) { return of(from_.facts_[o.executor].kind); }

   private:
    static_assert(static_cast<int>(device_kind::node) == device_kind_count);
    assignment& from_;
    const detail::task_record& task_;
    std::array<const run_time*, device_kind_count + 1> found_{};  // device_kind::node too
  };
  /// An offer among those for the task at hand, and what its trial may cost; 0: it is no trial of a device.
  struct trial {
    std::size_t offer;
    float staked_ns = 0;
  };

  run_time& model_of(const detail::task_record&, device_kind);
  float arrival_ns(detail::memory_space where, const sources&) const;
  float homecoming_ns(const detail::task_record&, detail::memory_space where) const;
  enum class outcome { kept, elsewhere, given };
  /// Assigns the task to an executor of the set. `at_home`: only to the one that has the tiles it changes, or else
  /// needs the fewest bytes; `elsewhere` is returned if it would go to another.
  outcome assign_among(detail::task_record&, const executor_set&, std::size_t waiting, bool at_home = false);
  bool comes_behind(const executor_set& mask, int priority);
  bool make_offers(const detail::task_record&, const space_set& holders, models&);
  trial choose_trial(const detail::task_record&, models&, std::size_t waiting, bool all_known);
  void refill_at_home(backlog&, const executor_set&);
  bool is_far(const executor_set& mask) const { return mask.meets(eligible_.nodes()); }
  bool has_room(const offer&) const;
  bool tries_enough(std::size_t i) const;
  bool is_device(std::size_t i) const { return facts_[i].space != detail::host_space && !eligible_.is_node(i); }
  void leave_cores_alone(const detail::task_record&, bool cores_known);
  void note_alternative(alternatives&, std::size_t i, const run_time&) const;
  void note_surprise(std::size_t i, float measured_ns);
  void learn(run_time&, const detail::kernel_info&, std::uint64_t bytes, device_kind, float measured_ns);
  bool look_for_some(const executor_set& among, const space_set& holders);
  std::span<const std::uint16_t> weighed() const { return {weighed_.data(), weighed_count_}; }
  std::size_t choose(std::span<const offer>, std::size_t waiting, const executor_set& among, bool some) const;

  const float window_ns_;
  workload work_;
  decisions decisions_;
  cost_model model_;
  trials trials_;
  std::vector<detail::executor_facts> facts_;
  space_map spaces_;
  eligibility eligible_;
  executor_set near_;      // executors that are no nodes
  executor_set on_cores_;  // devices that compute on the cores
  bool careful_ = false;
  std::function<void()> before_choices_;            // null: there is nothing to ask for
  sampling learned_;                                // which of many samples are learned
  std::uint64_t last_foreseen_ = 0, outdated_ = 0;  // numbers of tasks
  detail::grown_times grown_;
  executor_set surprises_;
  bool surprised_ = false;                            // surprises_ is not empty
  std::size_t turn_ = 0;                              // the node to weigh next
  std::vector<offer> offers_;                         // for the task at hand
  std::array<std::uint16_t, executors_max> weighed_;  // for it; the first weighed_count_ are used
  std::size_t weighed_count_ = 0;
  std::vector<backlog> backlogs_;
  std::vector<detail::task_record*> passed_over_;  // within refill_at_home
  std::atomic<std::size_t> kept_{0};
};

}  // namespace troupe::logic
