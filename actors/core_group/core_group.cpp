// What this file is for: the executor interface of a core group, and its threads.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/actor.hpp"

#include <cxxabi.h>

#include <algorithm>

#include "actors/logic/scheduling/resources.hpp"
#include "actors/placement/placement.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {
// Pauses (some 40 ns each) in which an idle thread looks at the queue only, before it lets another one have its core.
// Fewer if it polls the network, too.
constexpr int looking_pauses = 32, polling_pauses = 8;
// Pauses between two looks of a thread beside which another one looks.
constexpr int pauses_between_looks = 4;
// Most pauses before an idle thread looks for mail again.
constexpr int rest_max = 64;
// Threads that look for tiny tasks at the same time.
constexpr int tiny_lookers = 2;
// First trace lane of threads that help; workers and spares have those below.
constexpr int helper_lanes = 900;
// A body that is not predicted to end within so long keeps its thread from mail.
constexpr double soon_ns = 1'000'000;
}  // namespace

group_actor::group_actor(core_group_options o, placement& p, wait_table& b, open_runs& runs, devices::device& host,
                         runtime_state& rt, on_idle idle, void* context)
    : options_(std::move(o)),
      placement_(p),
      runs_(runs),
      idle_(idle),
      idle_context_(context),
      tick_ns_(ns_per_tick()),
      spin_ticks_(static_cast<std::uint64_t>(static_cast<double>(options_.spin.count()) / tick_ns_)),
      usable_cores_(options_.usable_cores != 0 ? options_.usable_cores : options_.facts.slots),
      core_quota_(options_.core_quota),
      may_move_(options_.cores.empty() && usable_cores_ > 1),
      stuck_ticks_(ticks_of(stuck)),
      workplace_{this,
                 host,
                 rt,
                 b,
                 options_.facts.name,
                 stopping_,
                 p.ended(),
                 tick_ns_,
                 logic::patience(longest_look()),
                 logic::patience(spin_ticks_)},
      threads_(
          workplace_, [this](worker& w, bool helps) { open_lane(w, helps); },
          [this](std::shared_ptr<worker> w) { return main_of(std::move(w)); }),
      queue_(options_.facts.slots),
      parking_(options_.facts.slots, options_.spare_threads_max, *this, ticks_of(devices::wake_up_time())),
      trial_(ticks_of(tiny)),
      outside_(ticks_of(network_patience), ticks_of(network_pause)),
      passers_(tick_ns_) {
  runs_.add(*this);
  watch_for_stalls(*this);
}

// ---- the executor ---------------------------------------------------------------------------------------------------

void group_actor::run_tasks(std::span<task_record* const> tasks, attention who) {
  const auto slots_of = [](const task_record* t) { return logic::slots_needed(*t); };
  std::size_t handed = tasks.size();
  if (std::all_of(tasks.begin(), tasks.end(), [&](const task_record* t) { return slots_of(t) == 1; })) {
    queue_.push(tasks);
  } else {
    for (task_record* const& t : tasks) {
      const int slots = slots_of(t);
      if (slots == 1) {
        queue_.push({&t, 1});
        continue;
      }
      slots == 0 ? run_without_slot(*t) : run_wide(*t, slots);
      --handed;
    }
    if (handed == 0) return;
  }
  call_threads(handed, who);
}

static_assert(side_turns::sides <= task_queue::handing_max);

void group_actor::run_own(task_record& t, std::size_t number, attention who) {
  queue_.hand(t, number);
  call_threads_for_one(number, who);
}

void group_actor::run_released(std::span<task_record* const> tasks) {
  queue_.push(tasks);
  call_threads(tasks.size(), attention::somebody);
  wake_owed();
}

void group_actor::after_turn() { wake_owed(); }

void group_actor::run_wide(task_record& t, int slots) {
  owed_.add_spares(parking_.give_wide(t, slots, t.extra->options.priority));
}

void group_actor::run_without_slot(task_record& t) { owed_.add_spares(parking_.give_slotless(t)); }

void group_actor::refuse_claimed(task_record& t) { placement_.refuse_claimed(t); }

std::size_t group_actor::unstarted() const {
  std::size_t n = queue_.size();
  threads_.each_own([&](const worker& w) { n += w.batch.size(); });
  return n;
}

bool group_actor::has_movable() const {
  bool any = queue_.has_movable();
  threads_.each_own(
      [&](const worker& w) { any = any || (w.is_batch_movable.load(std::memory_order_relaxed) && !w.batch.empty()); });
  return any;
}

std::size_t group_actor::take_back(std::span<task_record*> room,
                                   const std::function<bool(const task_record&)>& wanted) {
  // Tasks in a thread's batch may go, as long as it has not started them.
  threads_.each_own([&](worker& w) {
    if (queue_.size() < room.size()) return_batch(w, nullptr);
  });
  std::size_t n = queue_.take_newest(room, wanted);
  // Early tasks are for nobody else; all are taken when the runtime ends.
  if (!placement_.releases_early()) n += queue_.take_early(room.subspan(n), wanted);
  if (!queue_.empty()) parking_.keep_watch();
  const std::size_t more = parking_.take_unstarted(room.data() + n, room.size() - n, wanted);
  if (more != 0) owed_.add_spares(parking_.spares_due());
  return n + more;
}

unplaced_load group_actor::unplaced() const {
  unplaced_load all = queue_.unplaced();
  threads_.each([&](const worker& w) {
    const worker::holding& h = w.holds();
    if (h.slots.load(std::memory_order_relaxed) == 0 || !h.early.load(std::memory_order_relaxed)) return;
    ++all.tasks;
    all.ns += h.predicted_ns.load(std::memory_order_relaxed);
  });
  return all;
}

int group_actor::slots_in_use() const {
  int n = 0;
  threads_.each([&](const worker& w) { n += w.slots_in_use(); });
  return std::min(n, facts().slots);
}

bool group_actor::is_held_up() const {
  const std::uint64_t now = ticks();
  int n = 0;
  threads_.each([&](const worker& w) { n += w.is_held_up(now, soon_ns / tick_ns_, tick_ns_) ? w.slots_in_use() : 0; });
  return n >= facts().slots;
}

void group_actor::report_ended() {
  std::vector<task_record*> all;
  threads_.each_own([&](worker& w) {
    task_record* done[worker::ring::capacity];
    all.insert(all.end(), done, done + w.done.pop_all(done));
  });
  if (!all.empty()) placement_.report_done(all, nullptr);
}

executor_report group_actor::report() const {
  executor_report r = report_of_facts();
  std::uint64_t busy = 0;
  threads_.each([&](const worker& w) {
    const worker::counters& c = w.counts();
    r.tasks += c.tasks.load(std::memory_order_relaxed);
    r.failed += c.failed.load(std::memory_order_relaxed);
    r.bytes_moved += c.bytes.load(std::memory_order_relaxed);
    busy += c.busy_ticks.load(std::memory_order_relaxed);
  });
  r.busy = std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(busy) * tick_ns_));
  return r;
}

std::vector<task_record*> group_actor::running() const {
  std::vector<task_record*> tasks;
  threads_.each([&](const worker& w) {
    for (const run_context* c = w.running(); c; c = c->below()) tasks.push_back(c->task());
  });
  return tasks;
}

// ---- what sleeping threads ask -------------------------------------------------------------------------------------

bool group_actor::somebody_works() const { return placement_.active() != 0; }
bool group_actor::work_in_sight() const {
  // Tasks in batches count only while a thread is awake: only such a thread holds some.
  return placement_.has_mail_for_sleeper() || queue_.size_now() != 0 || runs_.has_nodes(options_.facts.id, false) ||
         has_fault() || (awake_.load(std::memory_order_seq_cst) != 0 && something_held());
}

bool group_actor::work_to_watch() const {
  return work_in_sight() || placement_.has_mail() || placement_.have_others_work(this);
}

bool group_actor::left_alone() const {
  return awake_.load(std::memory_order_seq_cst) == 0 &&
         (queue_.size_now() != 0 || runs_.has_nodes(options_.facts.id, true));
}

bool group_actor::work_overdue() const {
  // A recent turn is no proof: threads of other groups may take turns all the time and not look at this queue.
  const std::uint32_t takes = queue_.takes();
  const bool nobody_came = !queue_.empty() && takes == seen_takes_;
  seen_takes_ = takes;
  if (nobody_came || left_alone() || placement_.is_work_elsewhere(this)) return true;
  return placement_.is_stale(ticks()) &&
         (placement_.has_mail() || !queue_.empty() || something_held() || runs_.has_nodes(options_.facts.id, false));
}

// ---- threads --------------------------------------------------------------------------------------------------------

bool group_actor::is_stalled() const { return left_alone() && !stopping_.load() && parking_.has_slot_for_nobody(); }

// True if an idle thread is to look for work. While others are busy, it leaves them what is not worth the traffic
// between cores.
bool group_actor::is_worth_looking() const {
  return placement_.active() <= 1 || placement_.took_last_turn() ||
         queue_.stealable_ns() >= task_queue::worth_sharing_ns ||
         (awake_.load(std::memory_order_relaxed) <= 1 && !queue_.empty()) || placement_.has_stale_mail(ticks()) ||
         runs_.any(options_.facts.id) || placement_.is_work_elsewhere(this);
}

// Looks for work a little longer; false: the thread has looked long enough. The thread that ran dry last looks in any
// case, as its caches are warm. Others do if that is cheaper than a wake-up, and if all that are awake have a core: the
// latest waits of a thread that does were short, mostly, so that it may look longer.
bool group_actor::looks_on(worker& self) {
  if (stopping_.load(std::memory_order_relaxed)) return false;
  const std::uint64_t now = ticks();
  if (self.search.dry_since == 0) self.search.dry_since = now;
  if (self.search.looks_since == 0) {
    self.search.looks_since = now;
    lookers_.fetch_add(1, std::memory_order_relaxed);
    looking_.store(&self, std::memory_order_relaxed);
  }
  const bool is_last = looking_.load(std::memory_order_relaxed) == &self;
  // Threads that look for tiny tasks slow down those that add them by more than they save, if there are many.
  const bool are_enough =
      are_tiny_.load(std::memory_order_relaxed) && lookers_.load(std::memory_order_relaxed) > tiny_lookers;
  // The next run of a recorded graph wakes as many threads as it needs, for which those that look have to make room.
  const auto patience = [&] {
    if (are_enough || placement_.active() > usable_cores_ || is_over_quota()) return std::uint64_t{0};
    const std::uint64_t wake_up = parking_.wake_up();
    const std::uint64_t for_work = self.search.ran_graph ? self.search.brief.looks_for(wake_up)
                                                         : self.search.patience.looks_for(threads_held_up * wake_up);
    // To sleep, and go on with what comes next, takes this thread and the network's own to each other and back.
    return self.network.polls ? std::max(for_work, std::min(longest_look(), wakes_of_network * wake_up)) : for_work;
  };
  const std::uint64_t limit = std::max(is_last && !is_over_quota() ? spin_ticks_ : 0, patience());
  if (now - self.search.looks_since >= limit) return false;
  if (outside_.poll(self.network, now, self.search.looks_since)) {
    self.search.looks_since = ticks();  // more may come
    return true;
  }
  const int pauses = self.network.polls ? polling_pauses : looking_pauses;
  // One of them sees a single task at once; if all did, those who add tasks would wait for the cache lines.
  const int between = is_last ? 1 : pauses_between_looks;
  for (int i = 0; i < pauses; ++i) {
    if (i % between == 0 && queue_.stealable_ns() >= task_queue::worth_sharing_ns) break;
    spin_lock::pause();
    if (i % polling_pauses == polling_pauses - 1 && placement_.has_mail()) break;
  }
  // A thread that this one has just woken may have been put on its core.
  self.parking_state.looks.set(now, devices::current_cpu());
  std::this_thread::yield();
  return true;
}

// Ends the thread's looking; false: work for which it counted as coming has just been queued.
bool group_actor::stops_looking(worker& self) {
  self.parking_state.looks.clear();
  if (self.search.looks_since == 0) return true;
  self.search.looks_since = 0;
  lookers_.fetch_sub(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // a thread that queues work reads the count afterwards
  if (stopping_.load(std::memory_order_relaxed)) return true;
  return queue_.stealable_ns() < wake_worth_ns() && !runs_.has_nodes(options_.facts.id, false);
}

void group_actor::open_lane(worker& w, bool helps) {
  if (!options_.sink) return;
  w.lane.open(options_.sink, options_.first_lane + (helps ? helper_lanes : 0) + w.number,
              options_.facts.name + (helps ? " helper " : " worker ") + std::to_string(w.number));
}

// Makes what a thread runs. The thread keeps the engine alive: a body that does not return in time is left behind at
// shutdown.
std::function<void()> group_actor::main_of(std::shared_ptr<worker> w) {
  return [alive = options_.keep_alive.lock(), self = shared_from_this(), w = std::move(w)] { self->thread_main(*w); };
}

void group_actor::thread_main(worker& self) {
  this_worker = &self;
  self.system_thread.store(devices::current_thread(), std::memory_order_relaxed);
  devices::name_this_thread(options_.facts.name + "/" + std::to_string(self.number));
  parking::thread& own = self.parking_state;
  own.has_slot = self.number < options_.facts.slots;  // the first threads start with a slot, and are never dismissed
  if (own.has_slot && static_cast<std::size_t>(self.number) < options_.cores.size())
    devices::bind_this_thread(options_.cores[static_cast<std::size_t>(self.number)]);
  try {
    work_on(self);
  } catch (const abi::__forced_unwind&) {  // a body has ended this thread: another one takes its place
    be_awake(self, false);
    parking_.ended(own);
    threads_.try_add();
    end_thread(self);
    throw;
  } catch (...) {  // an error of the group itself
    return_batch(self, nullptr);
    report_done(self, nullptr);
    stops_looking(self);
    outside_.rest(self.network);
    be_awake(self, false);
    parking_.ended(own);
    end_thread(self);
    return tell_supervisor(std::current_exception());
  }
  parking_.ended(own);
  end_thread(self);
}

void group_actor::work_on(worker& self) {
  parking::thread& own = self.parking_state;
  int rest = 0;
  for (;;) {
    if (own.restless != 0) parking_.calm(own);
    if (std::exchange(own.at_once, false)) {
      be_awake(self, true);
      if (work_once(self)) continue;
    }
    if (own.has_slot && parking_.slot_wanted() && pass_line(self)) continue;
    if (own.has_slot && !parking_.slot_wanted()) {
      be_awake(self, true);
      if (own.look || is_worth_looking()) {
        const std::uint64_t before = self.counts().tasks.load(std::memory_order_relaxed);
        if (work_once(self) || (own.look && steal(self))) {
          own.look = false;
          // A worker that is faster than the submitters fetches their tasks one by one, and each fetch slows them down.
          // A short rest lets the next tasks accumulate; not what other nodes wait for.
          const bool few = self.counts().tasks.load(std::memory_order_relaxed) - before < 8;
          rest = few ? std::min(rest + 1, rest_max) : rest / 2;
          if (queue_.empty() && !self.network.polls)
            for (int i = 0; i < rest && queue_.stealable_ns() < task_queue::worth_sharing_ns; ++i) spin_lock::pause();
          continue;
        }
        own.look = false;
      }
      if (looks_on(self) || !stops_looking(self)) continue;
      if (placement_.is_stale(ticks()) && steal(self)) continue;
    }
    stops_looking(self);
    outside_.rest(self.network);
    self.search.has_slept = true;
    be_awake(self, false);
    check_fault();
    const parking::woken why = parking_.park(own);
    if (why == parking::woken::to_end) break;
    make_spares(std::exchange(own.spares_due, 0));
    if (why != parking::woken::for_task) continue;
    self.search.dry_since = 0;
    self.search.ran_graph = false;
    be_awake(self, own.has_slot);
    run_and_report(self, *own.task, own.has_slot ? this : nullptr);
    if (own.more == 0) continue;
    make_spares(parking_.give_slots(std::exchange(own.more, 0)));
    work_once(self);  // small tasks do not wait for the end of a series of wide ones
  }
}

void group_actor::end_thread(worker& self) {
  self.lane.flush();
  this_worker = nullptr;
  threads_.ended(self);
}

std::shared_ptr<core_group> make_core_group(core_group_options o, placement& p, wait_table& b, open_runs& runs,
                                            devices::device& host, runtime_state& rt, on_idle idle, void* context) {
  return std::make_shared<group_actor>(std::move(o), p, b, runs, host, rt, idle, context);
}

}  // namespace troupe::detail
