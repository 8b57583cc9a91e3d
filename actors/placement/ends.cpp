// What this file is for: how tasks that do not run end: failed, refused, given up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_set>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/resumption.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::detail {

void placement::fail(task_record& t, std::exception_ptr why, bool own) {
  if (!claim(t)) {
    if (t.marks & mark_chained) fates_.fail_if_returned(t, std::move(why));
    return;
  }
  t.error = std::move(why);
  if (!own) t.measured_ns = never_ran;
  if (t.marks & mark_early) t.predicted_ns = 0;  // see was_placed
  // A join stays claimed until it is ready: other chunks may be running.
  if (t.kind != task_kind::join) fulfil(t, board_);
}

void placement::end_failed_join(task_record& t) {
  if (t.kind == task_kind::join && is_claimed(t)) fulfil(t, board_);
}

void placement::refuse(task_record& t, std::exception_ptr why) {
  const std::exception_ptr refusal = t.extra ? t.extra->refusal : nullptr;
  fail(t, refusal ? refusal : std::move(why), true);
  retire_ended(t);
}

// Fails a task that has not begun, at the executor that was to run it.
void placement::fail_unstarted(task_record& t, const std::exception_ptr& why) {
  fail(t,
       task_error(t, t.kind == task_kind::host_access ? "host" : assignment_.facts()[t.executor].shown_name(), 0, why,
                  failure_code(why)),
       true);
  retire_ended(t);
}

void placement::abandon(task_record& t) {
  if (!give_up(t)) await_fulfilled(t);
}

bool placement::give_up(task_record& t) {
  end_failed_join(t);
  if (!claim(t)) return false;
  end_claimed(t);
  return true;
}

void placement::end_claimed(task_record& t) {
  const std::string name = name_of(t);
  t.error = std::make_exception_ptr(task_failed(
      errc::runtime_stopped, "task '" + name + "' did not run: " + ending_.why_not_run(), name, "", name, 0, nullptr));
  const std::coroutine_handle<> waits = waits_for(t);
  fulfil(t, board_);
  if (!is_internal(t.kind)) ending_.note(waits);
}

// Gives up all tasks that come after these, which run. They are in no queue, but for those that were released just now;
// they stay in the order, and retire when these bodies end, if ever.
void placement::give_up_successors(std::vector<task_record*> next) {
  std::unordered_set<const task_record*> seen(next.begin(), next.end());
  while (!next.empty()) {
    task_record* const t = next.back();
    next.pop_back();
    deps_.graph().each_successor(*t, [&](task_record& after, bool) {
      if (!seen.insert(&after).second) return;
      if (after.kind != task_kind::gate) give_up(after);
      next.push_back(&after);
    });
  }
}

}  // namespace troupe::detail
