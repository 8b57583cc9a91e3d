// What this file is for: what each executor has been given and not finished, and what is to be handed to it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by assignment, which chooses. Here is only counted: so an executor's queue, whether it has room, and how
// much is whose are the same to all who ask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <troupe/detail/id_set.hpp>
#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/resources.hpp"

namespace troupe::logic {

class workload {
 public:
  /// Tasks, and what they are predicted to take.
  struct load {
    std::uint64_t tasks = 0;
    float ns = 0;
  };

  explicit workload(float window_ns) : window_ns_(window_ns) {}

  /// An executor; its id is the number of those before it.
  void add(int slots, device_kind);
  std::size_t size() const { return places_.size(); }
  /// It starts anew, with so many slots.
  void restart(std::size_t i, int slots) {
    places_[i].slots = slots;
    places_[i].others_ns = 0;
    note_room(i);
  }
  void know_others(std::size_t i, float ns) { places_[i].others_ns = ns; }
  /// Bodies that wait have left so many slots of executor i, and were predicted to take so long.
  void know_waiting(std::size_t i, int slots, float ns) {
    places_[i].waiting = slots;
    places_[i].waiting_ns = ns;
    note_room(i);
  }

  // ---- what happens -------------------------------------------------------------------------------------------------
  /// The task is for executor i, where it is predicted to take so long, and its data so long to come.
  void give(detail::task_record&, std::size_t i, float predicted_ns, float transfer_ns = 0);
  /// It is not any more: it has ended or comes back.
  void take_off(detail::task_record&);
  /// It took so long; what was predicted of it counts if its kernel was known.
  void note_measured(const detail::task_record&);

  /// It waits for its data: until it resumes, its executor may be given another one for the slot.
  void set_aside(detail::task_record&);
  /// Its data has come: it is to be handed over.
  void resume(detail::task_record&);

  // ---- what is to be handed over ------------------------------------------------------------------------------------
  void put_out(detail::task_record& t) {
    places_[t.executor].outgoing.push_back(&t);
    outgoing_.insert(t.executor);
  }
  /// For executor i; who empties it says so with `sent`.
  std::vector<detail::task_record*>& outgoing(std::size_t i) { return places_[i].outgoing; }
  void sent(std::size_t i) {
    places_[i].outgoing.clear();
    outgoing_.erase(i);
  }
  /// The first executor from this one on for which there may be something; id_set::end if there is none.
  int next_outgoing(int from) const { return outgoing_.next(static_cast<std::size_t>(from)); }
  bool something_outgoing() const {
    for (int i = next_outgoing(0); i != detail::id_set::end; i = next_outgoing(i + 1))
      if (!places_[static_cast<std::size_t>(i)].outgoing.empty()) return true;
    return false;
  }

  // ---- how much there is --------------------------------------------------------------------------------------------
  /// Until a slot is free.
  float queue_ns(std::size_t i) const {
    const place& p = places_[i];
    return counted(p) < p.slots ? 0 : std::max(p.outstanding_ns - p.waiting_ns, 0.0f) / static_cast<float>(p.slots);
  }
  /// All that it has been given.
  float outstanding_ns(std::size_t i) const { return places_[i].outstanding_ns; }
  /// Copies for that.
  float moving_ns(std::size_t i) const { return places_[i].moving_ns; }
  /// What others have given a node.
  float others_ns(std::size_t i) const { return places_[i].others_ns; }
  int slots(std::size_t i) const { return places_[i].slots; }
  /// Tasks that it has been given and not finished.
  int under_way(std::size_t i) const { return places_[i].under_way; }
  /// Tasks on their way whose time is a guess.
  int tries(std::size_t i) const { return places_[i].tries; }
  /// To whom more may be given; a node may have the next task of each slot while one runs.
  const detail::id_set& roomy() const { return roomy_; }
  /// Who has a slot for which there is nothing.
  const detail::id_set& free() const { return free_; }
  /// Of executors that are no nodes.
  load given() const;
  /// Of that, what tasks with this listener are; those of other nodes have one.
  load given(const detail::task_listener* l) const {
    const auto found = of_listeners_.find(l);
    return found == of_listeners_.end() ? load() : found->second;
  }
  /// Sums over the tasks whose kernels were known: predicted against measured.
  double predicted_ns(std::size_t i) const { return places_[i].predicted_ns; }
  double measured_ns(std::size_t i) const { return places_[i].measured_ns; }

 private:
  struct place {
    float outstanding_ns = 0;
    float moving_ns = 0;
    float others_ns = 0;
    float waiting_ns = 0;  // of outstanding_ns
    int under_way = 0;     // tasks
    int taken = 0;         // slots that they need
    int waiting = 0;       // of these, those that bodies have left while they wait
    int aside = 0;         // tasks that wait for their data
    int slots = 1;
    int tries = 0;
    device_kind kind = device_kind::cpu;
    std::vector<detail::task_record*> outgoing;
    double predicted_ns = 0, measured_ns = 0;
  };

  void end_wait(detail::task_record&);

  // Slots that are used or spoken for. Of tasks that wait for their data two for each slot are not counted: others have
  // their slots meanwhile.
  static int counted(const place& p) { return p.taken - p.waiting - std::min(p.aside, 2 * p.slots); }
  // A core group's tasks may need several slots, or none; a device's and a node's are one each.
  static int slots_on(const place& p, const detail::task_record& t) {
    return p.kind == device_kind::cpu ? slots_needed(t) : 1;
  }

  // A node is given the next task of each slot while one runs, however long that takes: else it would do nothing from the
  // end of each until the news has come here and the next one with its data has gone there.
  void note_room(std::size_t i) {
    const place& p = places_[i];
    free_.set(i, counted(p) < p.slots);
    roomy_.set(i, queue_ns(i) <= window_ns_ || (p.kind == device_kind::node && counted(p) < 2 * p.slots));
  }

  const float window_ns_;
  std::vector<place> places_;
  detail::id_set roomy_, free_;
  detail::id_set outgoing_;  // for whom there may be something
  std::unordered_map<const detail::task_listener*, load> of_listeners_;
};

}  // namespace troupe::logic
