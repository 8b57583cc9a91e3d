// What this file is for: calls that were gathered under a lock are made without it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/deferred_calls.hpp"

#include "actors/placement/placement.hpp"

namespace troupe::detail {

deferred_calls::batch deferred_calls::take() {
  batch fresh;
  fresh.close.reserve(calls_.close.size());
  fresh.submit.reserve(calls_.submit.size());
  fresh.released.reserve(calls_.released.size());
  fresh.dropped.reserve(calls_.dropped.size());
  return std::exchange(calls_, std::move(fresh));
}

void deferred_calls::batch::make(placement& p) const {
  if (!close.empty()) p.report_done(close, nullptr);
  for (task_record* t : submit) p.submit(t, true);
  for (task_record* t : released) detail::release(t);
  for (array_core* a : dropped) detail::release(a);
}

}  // namespace troupe::detail
