// What this file is for: calls to placement other than tasks: waits, explanations, reports, the end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <unordered_set>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/resumption.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::detail {

namespace {
// Bytes of records, and of what belongs to them, that an idle runtime keeps for the next burst of tasks.
constexpr std::size_t kept_idle = 4u << 20;
}  // namespace

// ---- questions ------------------------------------------------------------------------------------------------------

void placement::check_size(const task_record& t) const {
  if (host_memory_) host_memory_->check_size(t);
  if (!executors_.has_devices()) return;
  const auto& facts = assignment_.facts();
  logic::executor_set able = assignment_.all() & logic::able_to_run(*t.kernel, facts);
  if (t.extra) able &= t.extra->executors;
  std::uint64_t most = 0;
  for (const executor_facts& f : facts) {
    if (!able.contains(f.id)) continue;
    if (f.memory_bytes == 0) return;  // it uses the host's
    most = std::max(most, f.memory_bytes);
  }
  if (const std::uint64_t bytes = !able.empty() ? logic::bytes_at_once(t) : 0; bytes > most)
    throw error(errc::out_of_memory, "task '" + name_of(t) + "' needs " + std::to_string(bytes) +
                                         " bytes at once, and of " + logic::names_of(able, facts) +
                                         ", which may run it, none has more than " + std::to_string(most) +
                                         " bytes: use smaller tiles");
}

bool placement::wait_quiet(std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    if (is_quiet()) return true;
    if (in_flight_.given_up()) return false;
    if (!take_turn(nullptr)) return in_flight_.wait_until([this] { return is_quiet(); }, deadline);
  }
}

// True if the second task, or any if it is null, can only go on after the first one.
bool placement::reaches(task_record& from, const task_record* to) {
  const auto add_kept = [&](const task_record& before, const task_record& t, std::vector<task_record*>& kept) {
    gangs_.add_kept_behind(before, t, kept);
    if (&t == &from) admission_.add_excluded(from, kept);
  };
  return deps_.graph().reaches(from, to, add_kept);
}

bool placement::would_deadlock(task_record& inside, task_record& awaited, bool forever) {
  if (&inside == &awaited) return true;
  take_settled_turn();  // what was submitted before this question must have been ordered
  const bool yes = reaches(inside, &awaited) || admission_.excludes(inside, awaited);
  if (!yes && host_memory_) {
    if (const std::exception_ptr why = host_memory_->too_much_beside(inside, awaited))
      fail(awaited, task_error(awaited, "", 0, why, errc::out_of_memory), true);
    else if (forever)
      host_memory_->note_wait(inside, awaited);
  }
  serve(nullptr);  // leaves the turn
  return yes;
}

void placement::abandon_access(task_record& t) {
  bool granted = false;
  with_turn([&] {
    granted = (t.marks & mark_open) != 0;
    t.marks |= mark_given_up;
  });
  task_record* const one = &t;
  if (granted) report_done({&one, 1}, nullptr);
}

bool placement::is_behind(std::span<task_record* const> open, const task_record* awaited) {
  take_settled_turn();  // as above
  bool yes = false;
  for (task_record* t : open)
    yes = yes || reaches(*t, awaited) || (awaited && host_memory_ && host_memory_->too_much_beside(*t, *awaited));
  leave_turn();
  take_turn(nullptr);
  return yes;
}

namespace {
// Says of the executors that returned a task why they did, instead of what they had offered.
void tell_refusals(explanation& e, const task_record& t, std::span<const executor_facts> facts) {
  if (!t.extra || t.extra->refused_by.empty()) return;
  const auto entry_of = [&all = e.candidates](const std::string& name) -> candidate& {
    const auto at = std::ranges::find(all, name, &candidate::executor);
    return at != all.end() ? *at : all.emplace_back();
  };
  for (const auto& [id, why] : t.extra->refused_by)
    entry_of(facts[id].shown_name()) = {facts[id].shown_name(), {}, {}, {}, 0, 0, false, "could not run it: " + why};
  if (!e.executor.empty() && std::ranges::find(e.candidates, e.executor, &candidate::executor) == e.candidates.end())
    e.candidates.insert(e.candidates.begin(),
                        {e.executor, {}, {}, std::chrono::nanoseconds(static_cast<std::int64_t>(prediction_of(t)))});
  for (candidate& c : e.candidates) c.chosen = c.executor == e.executor && c.left_out.empty();
}
}  // namespace

void placement::remark(std::string text) {
  with_turn([&] { remarks_.add(std::move(text)); });
}

void placement::refuse_questions_here() const {
  if (decides_here())
    throw error(errc::would_deadlock,
                "a destructor that is called in the middle of a scheduling pass asks what waits for that pass");
}

explanation placement::explain(task_record& t) {
  refuse_questions_here();
  turns_.take();
  explanation e = assignment_.explain(t);
  tell_refusals(e, t, facts());
  if (is_fulfilled(t) && !is_left_behind(t) && t.measured_ns > 0)
    e.measured = std::chrono::nanoseconds(static_cast<std::int64_t>(t.measured_ns));
  leave_turn();
  take_turn(nullptr);
  return e;
}

std::vector<logic::remembered_time> placement::measured_times() {
  std::vector<logic::remembered_time> all;
  with_turn([&] { all = assignment_.measured_times(); });
  return all;
}

logic::cost_model::learned_edge placement::learned_link(memory_space from, memory_space to) {
  logic::cost_model::learned_edge e;
  with_turn([&] {
    notes_.take_transfers([&](auto f, auto t, auto bytes, float ns) { assignment_.learn_transfer(f, t, bytes, ns); });
    e = assignment_.learned(from, to);
  });
  return e;
}

runtime_report placement::report() {
  refuse_questions_here();
  collect_ends();
  take_settled_turn();  // what has been dropped or done by now is accounted for
  give_records_back();
  runtime_report r;
  r.spawned = in_flight_.submitted();
  r.finished = in_flight_.finished();
  r.scheduling_passes = turns_.count();
  r.scheduling_time = std::chrono::nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(turns_.held_ticks()) * clock_.ns_per_tick()));
  r.resources_free = admission_.free();
  r.remarks = remarks_.all();
  for (std::size_t i = 0; i < executors_.size(); ++i) {
    executor_report e = executors_[i].report();
    double predicted = assignment_.predicted_ns(i), measured = assignment_.measured_ns(i);
    if (i < executors_.groups()) {  // where early tasks run
      const turnless_ends::times turnless = turnless_.sum(i);
      predicted += turnless.predicted_ns;
      measured += turnless.measured_ns;
    }
    e.predicted = std::chrono::nanoseconds(static_cast<std::int64_t>(predicted));
    e.measured = std::chrono::nanoseconds(static_cast<std::int64_t>(measured));
    if (i == 0) {  // a core group: repeated bodies run on cores
      const reexecuted_bodies reexecuted = reexecutions_.bodies();
      e.tasks += reexecuted.run;
      e.failed += reexecuted.threw;
    }
    r.executors.push_back(std::move(e));
  }
  r.bytes_allocated = rt_.array_bytes.load();
  r.bytes_allocated_max = rt_.array_bytes_max.load();
  if (host_memory_) host_memory_->report(r);
  r.arrays = rt_.arrays.load();
  r.records = rt_.records.in_use();
  leave_turn();
  take_turn(nullptr);
  return r;
}

// ---- for tests ------------------------------------------------------------------------------------------------------

void placement::insist_on_sides() {
  with_turn([&] {
    side_policy_.insist();
    if (!turns_.aside().are_wanted()) begin_sides();
  });
  take_settled_turn();
  settle_sides();
  leave_turn();
}

std::uint64_t placement::ordered_aside() {
  std::uint64_t n = 0;
  with_turn([&] { n = aside_.ordered(); });
  return n;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void placement::refuse_claimed(task_record& t) {
  with_turn([&] { end_claimed(t); });
}

void placement::end_all(const std::string& why, const std::function<std::vector<task_record*>()>& running) {
  with_turn([&] { ending_.set_reason(why); });
  close();
  // A thread with a task in its hand either sees this, or its task is listed as running below.
  ending_.complete();
  abandon_queued();
  with_turn([&] { give_up_successors(running()); });
  give_up_waiting();
}

void placement::leave_behind(std::span<task_record* const> tasks) {
  std::vector<task_record*> left;
  for (task_record* t : tasks)
    if (detail::leave_behind(*t, board_)) left.push_back(t);
  give_up_successors(std::move(left));
}

std::vector<std::coroutine_handle<>> placement::take_unresumed() {
  std::vector<std::coroutine_handle<>> all;
  with_turn([&] { all = ending_.take_unresumed(); });
  return all;
}

std::uint64_t placement::abandon_queued() {
  turns_.take();
  ending_.begin();
  releases_early_ = false;
  turns_.aside().stop();
  chains_.stop();
  std::vector<task_record*> back(1024);
  const auto give_up = [&](task_record& t) {
    abandon(t);
    work_.to_retire(t);
  };
  for (executor* e : executors_.all()) {
    for (std::size_t got; (got = e->take_back(back, [](const task_record&) { return true; })) != 0;)
      for (std::size_t i = 0; i < got; ++i) give_up(*back[i]);
    notifications_.add(*e);
  }
  assignment_.drop_kept(give_up);
  admission_.drop_queued(give_up);
  gangs_.drop_kept(give_up);
  for (task_record* t : absent_.take([](task_record&) { return true; })) give_up(*t);
  if (host_memory_)
    for (task_record* t : host_memory_->take_waiting()) give_up(*t);
  serve(nullptr);
  settle_accounts();
  turns_.take();
  const std::uint64_t n = ending_.tasks();
  leave_turn();
  return n;
}

void placement::give_records_back() {
  spent_.give_back(rt_.records);
  turnless_.give_back();
}

void placement::settle_accounts() {
  take_settled_turn();
  give_records_back();
  leave_turn();
}

bool placement::tidy() {
  turns_.take();
  const auto is_large = [&] {
    return std::max({rt_.records.bytes(), rt_.regions.bytes(), rt_.access_blocks.bytes(), rt_.extras.bytes()}) >
           kept_idle;
  };
  if (is_large() && mail_.count() == 0 && (!host_memory_ || host_memory_->is_still()) && in_flight_.all_retired()) {
    give_records_back();
    aside_.forget_all();
    rt_.records.trim(kept_idle);
    rt_.regions.trim(kept_idle);
    rt_.access_blocks.trim(kept_idle);
    rt_.extras.trim(kept_idle);
  }
  const bool done = !is_large();
  leave_turn();
  take_turn(nullptr);
  return done;
}

void placement::flush_trace() {
  turns_.take();
  trace_.flush();
  leave_turn();
}

// A read of all of such an array comes after the combination of its partials; it counts as a task in flight.
void placement::combine_outside() {
  std::vector<array_core*> all;
  with_turn([&] {
    for (array_core* a : deps_.reduced_outside())
      if (a->keep()) all.push_back(a);
    for (array_core* a : all) {
      task_record* const t = make_look(rt_, *a);
      post({&t, 1}, true);
    }
  });
  for (array_core* a : all) let_go(a);
}

void placement::end_farewells() {
  with_turn([&] {  // no farewell ends meanwhile
    farewells_.end_all([&](task_record& t) {
      if (claim(t)) fulfil(t, board_);
    });
  });
}

}  // namespace troupe::detail
