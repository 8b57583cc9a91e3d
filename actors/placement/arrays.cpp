// What this file is for: the end of an array: its copies elsewhere, its memory, the farewell of who lent that.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

void placement::free_if_unused(array_core& a) {
  if (!a.dropped || a.users != 0) return;
  if (a.coherence && !a.coherence->spaces.empty()) {
    if (a.is_borrowed() && transfers_.bring_home(a)) return;
    if (log_) log_->forget(a);
    transfers_.forget_copies(a);
    return;
  }
  if (log_) log_->forget(a);
  free(a);
}

void placement::free(array_core& a) {
  if (host_memory_) host_memory_->forget(a);
  task_record* const farewell = a.farewell;
  destroy(a);
  if (farewell) end_farewell(*farewell);
}

void placement::bid_farewell(task_record& t) {
  if (!farewells_.add(t) && claim(t)) fulfil(t, board_);
  mail_.post(mail(&t, mail::submitted));
}

void placement::end_farewell(task_record& t) {
  farewells_.remove(t);
  if (claim(t)) fulfil(t, board_);
  if (t.references.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(&t);
}

}  // namespace troupe::detail
