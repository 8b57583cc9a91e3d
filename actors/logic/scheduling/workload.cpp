// What this file is for: counting what executors are given, and what they give back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/workload.hpp"

namespace troupe::logic {

using detail::task_record;

void workload::add(int slots, device_kind kind) {
  executor_load& p = executors_.emplace_back();
  p.slots = slots;
  p.kind = kind;
  for (std::size_t i = 0; i < executors_.size(); ++i) note_room(i);
}

void workload::give(task_record& t, std::size_t i, float predicted, float transfer) {
  executor_load& p = executors_[i];
  const int slots = slots_on(p, t);
  ++p.under_way;
  p.taken += slots;
  p.moving_ns += transfer;
  t.executor = static_cast<std::uint16_t>(i);
  t.predicted_ns = predicted;
  t.marks |= detail::mark_sent;
  p.outstanding_ns += predicted * static_cast<float>(slots);
  if (!(t.marks & detail::mark_known)) ++p.tries;
  note_room(i);
  put_out(t);
  if (t.extra && t.extra->listener) {
    load& l = of_listeners_[t.extra->listener];
    ++l.tasks;
    l.ns += predicted;
  }
}

void workload::set_aside(task_record& t) {
  if (t.marks & detail::mark_aside) return;
  t.marks |= detail::mark_aside;
  ++executors_[t.executor].aside;
  note_room(t.executor);
}

void workload::end_wait(task_record& t) {
  if (!(t.marks & detail::mark_aside)) return;
  t.marks &= static_cast<std::uint16_t>(~detail::mark_aside);
  --executors_[t.executor].aside;
}

void workload::resume(task_record& t) {
  end_wait(t);
  note_room(t.executor);
  put_out(t);
}

// Copies for one task are not counted apart: an equal share of all copies is taken off.
void workload::take_off(task_record& t) {
  executor_load& p = executors_[t.executor];
  end_wait(t);
  const int slots = slots_on(p, t);
  p.taken -= slots;
  p.outstanding_ns -= t.predicted_ns * static_cast<float>(slots);
  if (p.outstanding_ns < 1.0f) p.outstanding_ns = 0;
  if (!(t.marks & detail::mark_known)) --p.tries;
  if (p.moving_ns != 0) p.moving_ns -= p.moving_ns / static_cast<float>(p.under_way);
  --p.under_way;
  note_room(t.executor);
  if (!t.extra || !t.extra->listener) return;
  const auto of = of_listeners_.find(t.extra->listener);
  if (of == of_listeners_.end()) return;
  of->second.ns -= t.predicted_ns;
  if (--of->second.tasks == 0) of_listeners_.erase(of);
}

void workload::note_measured(const task_record& t) {
  if (!(t.marks & detail::mark_known)) return;
  executors_[t.executor].predicted_ns += static_cast<double>(t.predicted_ns);
  executors_[t.executor].measured_ns += static_cast<double>(t.measured_ns);
}

workload::load workload::given() const {
  load all;
  for (const executor_load& p : executors_) {
    if (p.kind == device_kind::node) continue;
    all.tasks += static_cast<std::uint64_t>(p.under_way);
    all.ns += p.outstanding_ns;
  }
  return all;
}

}  // namespace troupe::logic
