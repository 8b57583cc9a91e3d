// What this file is for: mail, and the turns in which it is handled. The states of a task are in tasks.cpp, data before
// and after it in data.cpp, lost copies in losses.cpp, nodes in nodes.cpp and absent.cpp, rebalancing in balance.cpp,
// questions in queries.cpp. All else is in the parts; see README.md.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/placement.hpp"

#include <algorithm>

#include <troupe/error.hpp>

#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/prefetch.hpp"

namespace troupe::detail {

namespace {
// Time after which a turn counts as overdue: a thread that is awake comes back for mail within it, or is inside a body
// of unknown length.
constexpr double stale_after_ns = 5'000.0;
// Run time assumed for a task that was never measured, when it is to pass one that waits for more: it may if that one
// has to wait longer than this anyway.
constexpr double unknown_ns = 1e6;
// Longest wait for a card: ten years.
constexpr double wait_max_ns = 3e17;
// Most calls in the log before tiles are copied to host memory. Tiny calls soon reach it; the more there are, the more
// of them are not in caches when they are dropped.
constexpr std::size_t logged_calls_max = 32'000;
// Mail that makes a turn a long one: to time it costs some hundredths of it.
constexpr std::size_t long_turn = 8;
// Interval at which a thread that has a next task looks for mail.
constexpr double look_after_ns = 1'000.0;
}  // namespace

placement::placement(const options& o, runtime_state& rt, wait_table& board)
    : rt_(rt),
      board_(board),
      clock_(rt.clock),
      mail_(static_cast<std::uint64_t>(look_after_ns / clock_.ns_per_tick()),
            static_cast<std::uint64_t>(stale_after_ns / clock_.ns_per_tick())),
      turns_(static_cast<std::uint64_t>(stale_after_ns / clock_.ns_per_tick())),
      in_flight_(o.tasks_in_flight_max),
      deps_(*this),
      aside_(*this, deps_),
      turnless_(rt, deps_.graph(), turns_, in_flight_),
      assignment_(static_cast<float>(std::chrono::duration<double, std::nano>(o.window).count()), o.decisions_kept),
      admission_(o.resources,
                 static_cast<std::uint64_t>(
                     std::min(std::chrono::duration<double, std::nano>(o.card_wait).count(), wait_max_ns) /
                     clock_.ns_per_tick()),
                 static_cast<std::uint64_t>(unknown_ns / clock_.ns_per_tick())),
      executors_(o.memory_bytes != 0),
      host_memory_(o.memory_bytes != 0 ? new host_memory(o.memory_bytes, rt, deps_.graph(), *this) : nullptr),
      transfers_(rt, deps_.graph(), assignment_, executors_.all(), notifications_),
      gangs_(deps_.graph()),
      chains_(deps_.graph(), assignment_, executors_.all(), notifications_, gangs_, host_memory_.get()),
      reexecutions_(std::chrono::duration<double, std::nano>(o.cluster.replay_max).count()) {
  rt_.bounded = o.memory_bytes != 0;
  reexecutions_.report_to([this](std::span<task_record* const> done) { report_done(done, nullptr); });
  if (!o.eager_devices)
    assignment_.be_careful([this](std::size_t i, const kernel_info& k) { return executors_[i].is_ready_for(k); });
}

void placement::add(executor& e) {
  executors_.add(e);
  executors_changed();
  assignment_.add(e.facts());
  chains_.add(e.facts().space != host_space);
  releases_early_ = executors_.may_release_early();
  beside_devices_ = executors_.has_devices();
  if (executors_.size() > 1) assignment_.ask_before_choices([this] { know_unplaced(); });
  if (e.facts().space == host_space) return turnless_.know_groups(executors_.groups());
  if (!host_memory_) transfers_.bring_parts_home();
  // Half of the allowed cost is left for calls that run while a tile is on its way.
  if (e.facts().kind == device_kind::node && !log_) {
    log_ = std::make_unique<lineage_log>(
        logic::lineage_bounds{.calls = logged_calls_max, .cost_ns = reexecutions_.cost_max_ns() / 2}, rt_,
        deps_.graph(), assignment_, host_memory_.get());
    transfers_.log_to(*log_);
  }
  if (e.facts().kind == device_kind::node)
    assignment_.withdraw(e.facts().id);  // until a node has joined
  else
    admission_.add_device({e.facts().name, e.facts().kind, e.facts().index}, e.facts().card);
}

void placement::know_link(memory_space s, logic::edge_cost in, logic::edge_cost out) {
  assignment_.know_link(host_space, s, in);
  assignment_.know_link(s, host_space, out);
}

void placement::trace_to(trace_sink* sink, int lane) {
  if (!sink) return;
  trace_.open(*sink, lane, deps_.graph());
}

// ---- mail -----------------------------------------------------------------------------------------------------------

void placement::refuse_closed() const { throw error(errc::runtime_stopped, ending_.why_no_more()); }

void placement::collect_ends() {
  for (executor* e : executors_.near()) e->report_ended();
}

void placement::report_done(std::span<task_record* const> done, executor* self) {
  if (!releases_early()) return report_to_turn(done, self);
  while (!done.empty()) {
    task_record* left[turnless_ends::at_once];
    const std::size_t n = std::min(done.size(), turnless_ends::at_once);
    if (const std::size_t more = turnless_.retire(done.first(n), left); more != 0)
      report_to_turn({left, more}, self);
    else if (!turnless_.has_urgent_times())
      take_turn(self);
    else if (turns_.try_take())  // else the next one learns of them
      serve(self);
    done = done.subspan(n);
  }
}

void placement::report_to_turn(std::span<task_record* const> done, executor* self) {
  if (turns_.try_take()) {
    for (task_record* t : done) work_.to_retire(*t);
    serve(self);
    return;
  }
  mail_.post(done, mail::done);
  take_turn(self);  // the holder may just have left
}

void placement::run_released(std::span<task_record* const> tasks) {
  if (!releases_early()) return report_ready(tasks);  // the runtime has begun to end
  while (!tasks.empty()) {
    const std::uint16_t group = tasks.front()->executor;
    const auto other = std::ranges::find_if(tasks, [group](const task_record* t) { return t->executor != group; });
    const auto n = static_cast<std::size_t>(other - tasks.begin());
    executors_[group].run_released(tasks.first(n));
    tasks = tasks.subspan(n);
  }
}

void placement::report_ready(std::span<task_record* const> tasks) {
  mail_.post(tasks, mail::ready);
  take_turn(nullptr);
}

void placement::report_returned(std::span<task_record* const> tasks) {
  mail_.post(tasks, mail::returned);
  take_turn(nullptr);
}

void placement::drop(array_core* a) {
  mail_.post(mail(a));
  take_turn(nullptr);
}

bool placement::take_turn(executor* self) {
  if (!(has_mail() || (self && is_work_elsewhere(self))) || !turns_.try_take()) return false;
  return serve(self);
}

bool placement::take_turn_waiting() { return has_mail() && turns_.try_take() && serve(nullptr, true); }

void placement::look_again() {
  if (!farewells_.none()) collect_ends();
  turns_.take();
  alarm_.rang();
  look_at_farewells();
  free_unfreed();
  admission_.look_again();
  absent_.look_soon();
  serve(nullptr);  // leaves the turn
}

// Sees to it that ends are collected again while borrowed memory is waited for, less and less often.
void placement::look_at_farewells() {
  constexpr std::chrono::milliseconds first{1}, last{128};
  if (farewells_.none()) {
    farewells_next_ = {};
    return;
  }
  farewells_next_ = std::clamp(2 * farewells_next_, first, last);
  const std::uint64_t now = clock_.ticks();
  const double ns = std::chrono::duration<double, std::nano>(farewells_next_).count();
  alarm_.ring_at(now + static_cast<std::uint64_t>(ns / clock_.ns_per_tick()), now, clock_.ns_per_tick());
}

// Works off what has been fetched of the mail.
inline void placement::handle_mail() {
  std::vector<mail>& work = mail_.work();
  const std::size_t n = work.size();
  for (std::size_t i = 0; i < n; ++i) {
    // Prefetches in two steps ahead of the work: the records, then the arrays they name.
    if (i + 8 < n) {
      const auto* far = reinterpret_cast<const char*>(work[i + 8].task());
      prefetch<2>(far);
      __builtin_prefetch(far + 128);
    }
    if (i + 4 < n && work[i + 4].what() == mail::submitted) {
      const task_record& near = *work[i + 4].task();
      for (int k = 0; k < near.access_count && k < 3; ++k)
        if (const array_core* a = near.accesses[k].array) {
          prefetch<1>(a);
          __builtin_prefetch(reinterpret_cast<const char*>(a) + 64, 1);
          __builtin_prefetch(&a->tile_bytes_max);
        }
    }
    try {
      handle(work[i]);
    } catch (...) {  // what was not handled is left for those that end the runtime
      if (work[i].what() == mail::submitted) give_up(*work[i].task());
      work.erase(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      throw;
    }
  }
  work.clear();
  work_off();
}

// Hands outgoing tasks to their executors; true if there were any. `stale`: no thread may be looking for work.
inline bool placement::send_outgoing(executor* self, bool client, bool stale) {
  bool any = false;
  for (int e = next_to_send(0); e != logic::executor_set::end; e = next_to_send(e + 1)) {
    const auto i = static_cast<std::size_t>(e);
    std::vector<task_record*>& outgoing = assignment_.outgoing(i);
    const bool device = executors_[i].facts().space != host_space;
    if (device) chains_.send_held_back(i);
    if (outgoing.empty()) {
      assignment_.sent(i);
      continue;
    }
    any = true;
    if (device) chains_.hand_over(i);
    executors_[i].run_tasks(outgoing, &executors_[i] == self ? executor::attention::caller
                                      : device && client     ? executor::attention::client
                                      : stale                ? executor::attention::nobody
                                                             : executor::attention::somebody);
    notifications_.add(executors_[i]);
    assignment_.sent(i);
    if (device) continue;
    for (executor* other : executors_.near())  // their sleepers look now and then whether to relieve this one
      if (other != &executors_[i] && is_work_elsewhere(other)) other->keep_watch();
  }
  return any;
}

// Gives executors what is ready; true if there was something.
inline bool placement::hand_out(std::uint64_t begin, executor* self, bool client, bool stale) {
  bool any = false;
  do {  // parts of runs may go once others have been given to their nodes
    let_parts_go();
    if (chains_.has_postponed()) chains_.send_postponed();
    admit_waiting(begin);
    assignment_.refill();
    // Tasks that fail because their data is lost make room.
    while (executors_.limits_memory() && set_aside_for_data()) {
      work_off();
      admit_waiting(begin);
      assignment_.refill();
    }
    if (self && executors_.near().size() > 1) relieve_others(*self);
    if (send_outgoing(self, client, stale)) any = true;
  } while (gangs_.has_due() || chains_.has_postponed());
  return any;
}

// Sees to it that some thread comes for the mail, as this one leaves it. Threads that are awake look when their bodies
// have ended.
void placement::leave_mail_to_others() {
  const bool nobody = active() == 0;
  for (executor* e : executors_.near()) {
    if (e->sleepers() == 0) continue;
    if (!nobody) {
      e->keep_watch();
      continue;
    }
    e->wake_one();
    return;
  }
}

// Leaves the turn in which something was thrown, and reports that. The state may be half changed: the runtime ends.
bool placement::end_failed_turn(bool taken) {
  const bool first = taken && ending_.note_failure();
  if (taken) {
    turns_.aside().stop();
    turns_.leave();
  }
  if (first) tell_supervisor(std::current_exception());
  if (taken) turnless_.turn_left();
  return false;
}

bool placement::serve(executor* self, bool client) {
  bool any = false, taken = true;
  try {
    for (int rounds = 0;; ++rounds) {
      taken = true;
      const std::uint64_t begin = clock_.ticks();
      turns_.begin(begin);
      check_fault();
      const bool stale = turns_.was_stale() || active() == 0;
      if (work_.any_to_retire()) any = true;
      if (notes_.has_waits()) look_at_waits();
      if (executors_.has_devices())
        notes_.take_transfers(
            [&](auto from, auto to, auto bytes, float ns) { assignment_.learn_transfer(from, to, bytes, ns); });
      if (turns_.aside().are_wanted()) assignment_.note_foreseen(aside_.even_out());
      turnless_.take_times([&](const timed_call& c) { assignment_.learn(c); });
      note_outdated();
      work_off();
      // An executor's thread that has its next task already lets a little mail accumulate.
      // In the first round only: those who have posted since may rely on this thread.
      const bool later = rounds == 0 && self && assignment_.something_outgoing() && mail_.can_wait(begin);
      // What a turn that failed has left comes first.
      std::size_t lanes = 0;
      if (!later && mail_.work().empty() && mail_.maybe()) lanes = mail_.fetch(begin);
      const std::size_t fetched = mail_.work().size();
      if (fetched != 0) {
        any = true;
        handle_mail();
        look_at_sides(fetched, lanes);
      }
      place_anew();
      if (absent_.is_to_look()) look_at_absent(begin);
      if (hand_out(begin, self, client, stale)) any = true;
      if (spent_.count() >= spent_records::chain) spent_.give_back(rt_.records);
      in_flight_.publish();
      if (trace_.is_on() && any) trace_.add_turn(begin, clock_.ticks());
      settle_sides();
      if (const bool is_long = fetched >= long_turn; turns_.is_timed(is_long))
        turns_.end_timed(clock_.ticks(), is_long);
      taken = false;
      leave_turn();
      in_flight_.wake_waiters();
      // Goes on if mail came while the turn was held, or slots became free: no other thread may look at them.
      if (later || (mail_.count() == 0 && (assignment_.kept() == 0 || !notes_.has_waits()))) return any;
      if (rounds >= 4) {  // enough for one call
        leave_mail_to_others();
        return any;
      }
      if (!turns_.try_take()) return any;
    }
  } catch (...) {
    return end_failed_turn(taken);
  }
}

// Has assignment know which early tasks the cores have, once in a turn.
void placement::know_unplaced() {
  if (!releases_early() || !assignment_.has_foreseen()) return;
  if (std::exchange(unplaced_in_, turns_.count()) == turns_.count()) return;
  for (std::size_t i = 0; i < executors_.groups(); ++i) {
    const unplaced_load l = executors_[i].unplaced();
    assignment_.know_unplaced(i, l.tasks, l.ns);
  }
}

void placement::look_at_waits() {
  notes_.take_waits(executors_.near(),
                    [&](std::uint16_t id, int slots, float ns) { assignment_.know_waiting(id, slots, ns); });
}

void placement::handle(mail m) {
  switch (m.what()) {
    case mail::submitted:
      order(*m.task());
      break;
    case mail::done:
      work_.to_retire(*m.task());
      break;
    case mail::ready:
      make_ready(*m.task());
      break;
    case mail::returned:
      place_again(*m.task(), true);
      break;
    case mail::dropped:
      m.array()->dropped = true;
      if (host_memory_) host_memory_->dropped(*m.array());
      free_if_unused(*m.array());
      break;
  }
}

void placement::with_turn(const std::function<void()>& f) {
  turns_.take();
  f();
  leave_turn();
  take_turn(nullptr);
}

}  // namespace troupe::detail
