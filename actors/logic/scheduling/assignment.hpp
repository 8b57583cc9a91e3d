// What this file is for: which executor a ready task goes to, and when.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Late binding: an executor is given about a window of predicted work; what is ready beyond that stays here, free to go
// to whoever is done first. Owned by placement; no thread, no clock.
//
// All core groups and devices are weighed for a task, and of many nodes a few: those that have some of what it reads, and
// such as have room, in turn. So the cost of a task does not grow with the cluster.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <troupe/report.hpp>

#include "actors/logic/data/directory.hpp"
#include "actors/logic/scheduling/admission.hpp"
#include "actors/logic/scheduling/cost_model.hpp"
#include "actors/logic/scheduling/decisions.hpp"
#include "actors/logic/scheduling/ready_queue.hpp"
#include "actors/logic/scheduling/sampling.hpp"
#include "actors/logic/scheduling/scope.hpp"
#include "actors/logic/scheduling/trials.hpp"
#include "actors/logic/scheduling/workload.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::logic {

class assignment {
 public:
  /// `decisions_max`: how many choices are remembered for `explain`.
  assignment(float window_ns, std::size_t decisions_max)
      : window_ns_(window_ns), work_(window_ns), decisions_(decisions_max) {}

  /// From now on a device is tried out where that does no harm, see trials; and one that computes on the cores gets what
  /// takes less of their time there.
  void be_careful(trials::readiness r) {
    careful_ = true;
    trials_.be_careful(std::move(r));
  }
  /// An executor; its id is the number of those before it.
  void add(const detail::executor_facts&);
  const std::vector<detail::executor_facts>& facts() const { return facts_; }
  executor_set all() const { return all_; }
  /// Who has a body of the kernel and can run it. Any thread, once all have been added.
  executor_set able_to_run(const detail::kernel_info& k) const { return abilities_.of(k); }

  /// Puts a ready task among some executor's outgoing ones, or keeps it until one has room.
  void assign(detail::task_record&);
  /// The same of one that was handed over before and has come back: others may wait for it, so it waits for nobody's room.
  void assign_again(detail::task_record&);
  /// Assigns kept tasks to executors that have room again.
  void refill();
  /// Whether executor i may take the task over from the one that has it.
  bool suits(const detail::task_record& t, std::size_t i) const {
    return mask_of(t).contains(facts_[i].id) && facts_[t.executor].space == facts_[i].space;
  }
  /// A task that was assigned and had to wait for its data goes to its executor now.
  void resume(detail::task_record& t) { work_.resume(t); }
  /// It has to: its executor may be given another one meanwhile.
  void set_aside(detail::task_record& t) { work_.set_aside(t); }
  /// Whether a device has enough to do for now to be sent a task behind others: a window of work, and in any case one
  /// behind the one that runs. `far`: where nobody else may run it, it may come long before its turn.
  bool has_enough(const detail::task_record&, std::size_t i, bool far);
  /// Half a window is left of what had been enough.
  bool runs_low(std::size_t i) const { return work_.outstanding_ns(i) <= window_ns_ / 2; }
  /// Assigns a task to the device that has everything it waits for, to run behind that; false if another executor may be
  /// done with it earlier.
  bool assign_behind(detail::task_record&, std::size_t i);
  /// The executor could not run it: it is as if it had not been assigned.
  void take_back(detail::task_record&);
  /// Executor i gets no more tasks.
  void withdraw(std::size_t i) {
    withdrawn_.insert(facts_[i].id);
    ++changes_;
  }
  /// It does again, with so many slots.
  void restore(std::size_t i, int slots) {
    withdrawn_.erase(facts_[i].id);
    pause(i, false);  // and counts as a change
    work_.restart(i, slots);
  }
  /// A node has so much to do for others, which comes before what it is given from here; it said so itself. It has room for
  /// tasks of this node all the same, so that no owner keeps another one out: this only says who is done earlier.
  void know_others(std::size_t i, float ns) { work_.know_others(i, ns); }
  /// Executor i gets no tasks for now; those that only it may run wait.
  void pause(std::size_t i, bool paused) {
    paused_.set(facts_[i].id, paused);
    ++changes_;
  }
  /// False: all that could run it have been withdrawn.
  bool can_run(const detail::task_record& t) { return !masks_of(t).all.empty(); }
  /// What its body will take, as predicted; 0: nobody knows.
  float predicted_ns(const detail::task_record&);
  /// Of what it touches, what is not in that space.
  std::uint64_t missing_bytes(const detail::task_record&, detail::memory_space) const;
  /// Where a task may run, whatever it holds.
  admission::places places_of(const detail::task_record&) const;
  /// The space that an assigned task will run in.
  detail::memory_space space_of(const detail::task_record& t) const { return facts_[t.executor].space; }
  /// The executor of another space than the host's.
  std::size_t executor_of(detail::memory_space s) const { return by_space_[s]; }
  /// A task that some executor has handed back goes to executor i instead.
  void move(detail::task_record&, std::size_t i);
  /// A task that was assigned has ended: its load is gone, its time is learned.
  void finished(detail::task_record&);
  /// Executors that take much longer than was predicted when they were given what they have, while others have nothing to
  /// do: what has not begun there is to be placed anew. Each is told once, when there is somebody.
  template <class F>
  void each_surprise(F&& f) {
    if (!surprised_) return;
    surprised_ = false;
    const executor_set some = std::exchange(surprises_, {});
    some.each([&](std::size_t i) {
      executor_set idle = work_.free() - withdrawn_;
      idle.erase(i);
      if (!idle.empty()) return f(i);
      if (work_.under_way(i) == 0) return;
      surprises_.insert(i);
      surprised_ = true;
    });
  }
  /// Another executor may run it than the one that has it.
  bool has_choice(const detail::task_record& t) const {
    const executor_set mask = mask_of(t);
    return !mask.empty() && !mask.has_single();
  }
  /// A copy from one space to another took so long.
  void learn_transfer(detail::memory_space from, detail::memory_space to, std::uint64_t bytes, float ns) {
    model_.learn_transfer(from, to, bytes, ns);
  }
  /// What was measured before the first task.
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
  /// Bodies that wait have left so many slots of executor i, and were predicted to take so long.
  void know_waiting(std::size_t i, int slots, float ns) { work_.know_waiting(i, slots, ns); }
  void know_link(detail::memory_space from, detail::memory_space to, edge_cost c) { model_.set_edge(from, to, c); }
  /// Copies from one space of a device to another one's need not go through the host's memory.
  void connect(detail::memory_space from, detail::memory_space to) {
    name_space(std::max(from, to));
    reach_[to].insert(from);
  }
  bool is_withdrawn(std::size_t i) const { return withdrawn_.contains(facts_[i].id); }
  bool is_paused(std::size_t i) const { return paused_.contains(facts_[i].id); }
  /// All of a device's copies go through the host's memory from now on.
  void disconnect(detail::memory_space s) {
    name_space(s);
    for (space_set& from : reach_) from.erase(s);
    reach_[s].clear();
  }
  bool reaches(detail::memory_space to, detail::memory_space from) const {
    return from != detail::no_space && to < reach_.size() && reach_[to].contains(from);
  }
  void know_time(const remembered_time& t) { model_.remember(t); }
  std::vector<remembered_time> measured_times() const { return model_.measured(); }
  /// Takes every kept task out.
  template <class F>
  void drop_kept(F&& f) {
    for (backlog& b : backlogs_)
      while (detail::task_record* t = b.tasks.pop()) f(*t);
    kept_.store(0);
  }

  /// What is to be handed to executor i; who empties it says so.
  std::vector<detail::task_record*>& outgoing(std::size_t i) { return work_.outgoing(i); }
  void sent(std::size_t i) { work_.sent(i); }
  /// The first executor from this one on for which there may be something; executor_set::end if there is none.
  int next_outgoing(int from) const { return work_.next_outgoing(from); }
  bool something_outgoing() const { return work_.something_outgoing(); }
  /// Ready tasks that no executor has room for. Any thread.
  std::size_t kept() const { return kept_.load(std::memory_order_seq_cst); }

  /// Sums over the tasks of executor i whose kernels were known: predicted against measured.
  double predicted_ns(std::size_t i) const { return work_.predicted_ns(i); }
  double measured_ns(std::size_t i) const { return work_.measured_ns(i); }
  explanation explain(const detail::task_record&) const;

  /// What executors that are no nodes have been given and not finished.
  using load = workload::load;
  load given() const { return work_.given(); }
  /// Of that, what tasks with this listener are; those of other nodes have one.
  load given(const detail::task_listener* l) const { return work_.given(l); }

 private:
  struct backlog {
    executor_set mask;
    ready_queue<detail::task_record*> tasks;
  };

  // What there is for each space is there from now on; links are known before executors are.
  void name_space(detail::memory_space s) {
    if (s < reach_.size()) return;
    reach_.resize(s + 1u);
    by_space_.resize(s + 1u);
  }
  /// Who may run a task, and who of them may be given it now.
  struct masks {
    executor_set all, now;
  };
  /// Valid until the next call, or until somebody is withdrawn or the like.
  const masks& masks_of(const detail::task_record&);
  executor_set mask_of(const detail::task_record&) const;
  executor_set mask_in_scope(const detail::task_record&) const;
  /// A node that is not there yet may run it, too. Scopes name those that were there when the task was spawned.
  bool may_wait_for_nodes(const detail::task_record& t) const {
    return !(withdrawn_ & nodes_).empty() && t.kernel->portable &&
           (!t.extra || (t.extra->executors == executor_set::every() && t.extra->holds_at == detail::holds_nowhere));
  }
  std::uint64_t bytes_of(const detail::task_record&) const;
  run_time& model_of(const detail::task_record&, device_kind);
  float arrival_ns(detail::memory_space where, const sources&) const;
  float homecoming_ns(const detail::task_record&, detail::memory_space where) const;
  float hop_ns(detail::memory_space from, detail::memory_space to, std::uint64_t bytes) const;
  enum class outcome { kept, elsewhere, given };
  /// `at_home`: only to who has what it changes, or else has least to be sent for it, of those that may run it;
  /// `elsewhere`: it would go to another one.
  outcome assign_among(detail::task_record&, const executor_set&, std::size_t waiting, bool at_home = false);
  void refill_at_home(backlog&, const executor_set&);
  bool is_far(const executor_set& mask) const { return mask.meets(nodes_); }
  bool has_room(const offer&) const;
  bool tries_enough(std::size_t i) const;
  bool is_device(std::size_t i) const { return facts_[i].space != detail::host_space && !nodes_.contains(i); }
  void leave_cores_alone(const detail::task_record&, bool cores_known);
  void note_alternative(alternatives&, std::size_t i, const run_time&) const;
  void note_surprise(const detail::task_record&);
  bool look_for_some(const executor_set& among, const space_set& holders);
  std::span<const std::uint16_t> weighed() const { return {weighed_.data(), weighed_count_}; }
  std::size_t choose(std::span<const offer>, std::size_t waiting, const executor_set& among, bool some) const;

  const float window_ns_;
  workload work_;
  decisions decisions_;
  cost_model model_;
  trials trials_;
  std::vector<detail::executor_facts> facts_;
  std::size_t spaces_ = 1;
  std::vector<space_set> reach_;         // of each space, where it can copy from
  std::vector<std::uint16_t> by_space_;  // the executor whose it is
  abilities abilities_;
  executor_set all_, withdrawn_, paused_, nodes_, near_;  // near: no nodes
  executor_set on_cores_;                                 // devices that compute there
  bool careful_ = false;
  sampling learned_;  // of the many
  executor_set surprises_;
  bool surprised_ = false;  // there are some
  // Of tasks without a scope, by kernel: they are the same from task to task.
  struct known_masks {
    const detail::kernel_info* kernel = nullptr;
    const detail::shown_ids* nodes = nullptr;
    std::uint64_t changes = 0;
    std::uint32_t offered = 0;
    unsigned char kinds = 0, doubles = 0;
    masks found;
  };
  std::array<known_masks, 16> known_masks_;
  masks other_masks_;
  std::uint64_t changes_ = 1;                         // of what masks follow from, beside kernels
  std::size_t turn_ = 0;                              // the node that is the next one to be weighed
  std::vector<offer> offers_;                         // of the task at hand
  std::array<std::uint16_t, executors_max> weighed_;  // for it; so many of them:
  std::size_t weighed_count_ = 0;
  std::vector<backlog> backlogs_;
  std::vector<detail::task_record*> passed_over_;  // within refill_at_home
  std::atomic<std::size_t> kept_{0};
};

}  // namespace troupe::logic
