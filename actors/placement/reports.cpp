// What this file is for: what an executor tells placement at one time is accounted for in the order that keeps it true.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/placement.hpp"
#include "actors/protocol/report_batch.hpp"

namespace troupe::detail {

// The order of the steps:
// - Done tasks come first: what they wrote is among what is lost, so their writes must be in the directory by then.
// - Lost and overtaken tiles and refusals come before the returned tasks: placement may place a task again as soon as
//   it is returned, and must know by then what the task cannot have there, and where it must not go.
// - A failure comes last: it withdraws the executor, and what was returned before is not one of its setbacks.
void placement::report(executor& self, report_batch&& b) {
  if (!b.done.empty()) report_done(b.done, &self);
  if (!b.lost.empty()) report_lost(self, b.lost, b.lost_why);
  if (!b.overtaken.empty()) report_overtaken(self, b.overtaken);
  note_refusals(b.refusals);
  if (!b.returned.empty()) report_returned(b.returned);
  make_extras(b.need_extra);
  if (b.failed) report_failure(self, b.failed->lost, b.failed->why, b.failed->for_good);
}

}  // namespace troupe::detail
