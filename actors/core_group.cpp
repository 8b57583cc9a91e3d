// What this file is for: the threads of a core group: what they do next, how they share, waits inside bodies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include <troupe/error.hpp>

#include "actors/logic/resources.hpp"
#include "actors/parking.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/prefetch.hpp"
#include "actors/replay.hpp"
#include "actors/task_queue.hpp"
#include "actors/worker.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {

// Sleeping threads are woken for at least this much queued work each.
constexpr float wake_worth_ns = 10'000.0f;
// While somebody works, an idle thread leaves him what is worth less than this.
constexpr float share_worth_ns = 2'000.0f;
// Pauses (some 40 ns each) before an idle thread looks for mail again, at most.
constexpr int rest_max = 64;
// Trace lanes of threads that help; workers and spares have those below.
constexpr int guest_lanes = 900;
// Bodies that wait for bodies run on one stack down to this depth; beyond, the waiter sleeps.
constexpr int depth_max = 128;

class group final : public core_group, public std::enable_shared_from_this<group>, private parking::outlook {
 public:
  group(core_group_options o, placement& p, wait_board& b, devices::device& host, house_link& link, on_idle idle,
        void* context)
      : options_(std::move(o)),
        placement_(p),
        idle_(idle),
        idle_context_(context),
        tick_ns_(ns_per_tick()),
        spin_ticks_(static_cast<std::uint64_t>(static_cast<double>(options_.spin.count()) / tick_ns_)),
        workplace_{this, host, link, b, options_.facts.name, stopping_, tick_ns_},
        queue_(options_.facts.slots),
        parking_(options_.facts.slots, options_.spare_threads_max, *this) {}

  // ---- executor -----------------------------------------------------------------------------------------------------

  const executor_facts& facts() const override { return options_.facts; }

  void start() override {
    for (int i = 0; i < options_.facts.slots; ++i) add_thread();
  }

  void run_tasks(std::span<task_record* const> tasks, attention who) override;
  int sleepers() const override { return parking_.sleepers(); }
  void wake_one() override { parking_.wake(1, parking::nearness::far); }
  void keep_watch() override { parking_.keep_watch(); }
  std::size_t queued() const override { return queue_.size(); }

  std::size_t unstarted() const override;
  float queued_ns() const override { return queue_.worth_ns(); }
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override;

  executor_report report() const override;

  // ---- core_group ---------------------------------------------------------------------------------------------------

  void request_stop() override {
    stopping_.store(true);
    parking_.close();
  }
  bool wait_ended(std::chrono::steady_clock::time_point deadline) override;
  std::vector<std::string> running(std::size_t n) const override;
  int threads() const override;
  bool help_with(task_record& awaited) override;

  bool wait_inside(worker&, task_record& awaited, wait_board&, std::chrono::steady_clock::time_point) override;
  void give_slot(worker&) override;
  void take_slot(worker&) override;
  std::exception_ptr run_graph(worker&, task_record&) override;

 private:
  // outlook
  bool somebody_works() const override { return placement_.active() != 0; }
  bool work_in_sight() const override {
    return placement_.has_mail_for_sleeper() || queue_.size_now() != 0 || something_held();
  }
  bool work_overdue() const override {
    if (placement_.is_work_elsewhere(this)) return true;
    return placement_.is_stale(ticks()) && (placement_.has_mail() || queue_.size() != 0 || something_held() ||
                                            replays_.load(std::memory_order_relaxed) != 0);
  }
  void all_asleep() override {
    if (idle_) idle_(idle_context_);
  }

  void add_thread();
  bool add_spare();
  void make_spare() {
    if (!add_spare()) parking_.no_spare();
  }
  void thread_main(worker&);
  void be_awake(worker&, bool);
  bool is_worth_looking() const;
  bool work_once(worker&);
  void run_batch(worker&);
  bool steal(worker&);
  bool something_held() const;
  void run_and_report(worker&, task_record&);
  void report_done(worker&);
  bool return_batch(worker&, const task_record* awaited);
  bool join_graph(worker&);
  void run_nodes(worker&, graph_run&, bool owner);
  void run_without_slot(task_record&);
  void run_wide(task_record&, int slots);
  std::unique_ptr<worker> take_guest();
  void give_guest(std::unique_ptr<worker>);

  const core_group_options options_;
  placement& placement_;
  const on_idle idle_;
  void* const idle_context_;
  const double tick_ns_;
  const std::uint64_t spin_ticks_;
  std::atomic<bool> stopping_{false};
  const workplace workplace_;
  task_queue queue_;
  parking parking_;
  std::atomic<int> awake_{0};
  std::atomic<const worker*> looking_{nullptr};  // the thread that ran dry last

  std::atomic<int> replays_{0};
  spin_lock replay_lock_;
  std::vector<graph_run*> replaying_;

  mutable std::mutex threads_lock_;
  std::condition_variable ended_;
  std::vector<std::shared_ptr<worker>> threads_;
  std::vector<std::unique_ptr<worker>> guests_;
  int guests_made_ = 0;
};

// ---- the executor ---------------------------------------------------------------------------------------------------

void group::run_tasks(std::span<task_record* const> tasks, attention who) {
  const auto slots_of = [](const task_record* t) {
    return t->extra ? logic::slots_of(t->extra->options.resources) : 1;
  };
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
  if (parking_.sleepers() == 0) return;
  // A wake-up costs as much as hundreds of small tasks: it is sent for work that is worth one, or when nobody would
  // look otherwise.
  const auto threads = static_cast<std::size_t>(queue_.worth_ns() / wake_worth_ns);
  if (threads != 0)
    parking_.wake(std::min(threads, handed), parking::nearness::far);
  else if (who == attention::nobody)
    parking_.wake(1, parking::nearness::near);
  else if (who != attention::caller || handed > 1)
    parking_.keep_watch();
}

void group::run_wide(task_record& t, int slots) {
  if (parking_.give_wide(t, slots, t.extra->options.priority)) make_spare();
}

void group::run_without_slot(task_record& t) {
  if (!parking_.give_slotless(t) || add_spare()) return;
  if (!parking_.no_spare()) return;
  // The system gives no more threads: better late on a worker than never.
  task_record* back[1];
  const auto slotless = [](const task_record& x) { return logic::slots_of(x.extra->options.resources) == 0; };
  while (parking_.take_unstarted(back, 1, slotless) != 0) queue_.push(back);
}

std::size_t group::unstarted() const {
  std::size_t n = queue_.size();
  std::lock_guard hold(threads_lock_);
  for (const auto& t : threads_) n += t->batch.size();
  return n;
}

std::size_t group::take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) {
  {
    // What a thread has taken along is anybody's, as long as it has not come to it.
    std::lock_guard hold(threads_lock_);
    for (const auto& t : threads_)
      if (queue_.size() < room.size()) return_batch(*t, nullptr);
  }
  const std::size_t n = queue_.take_newest(room, wanted);
  const std::size_t more = parking_.take_unstarted(room.data() + n, room.size() - n, wanted);
  if (more != 0 && parking_.spare_due()) make_spare();
  return n + more;
}

executor_report group::report() const {
  executor_report r;
  r.name = options_.facts.name;
  r.kind = options_.facts.kind;
  r.slots = options_.facts.slots;
  std::uint64_t busy = 0;
  std::lock_guard hold(threads_lock_);
  const auto add = [&](const auto& t) {
    const worker::counters& c = t->counts();
    r.tasks += c.tasks.load(std::memory_order_relaxed);
    r.failed += c.failed.load(std::memory_order_relaxed);
    r.bytes_moved += c.bytes.load(std::memory_order_relaxed);
    busy += c.busy_ticks.load(std::memory_order_relaxed);
  };
  for (const auto& t : threads_) add(t);
  for (const auto& t : guests_) add(t);
  r.busy = std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(busy) * tick_ns_));
  return r;
}

bool group::wait_ended(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock hold(threads_lock_);
  const bool all = ended_.wait_until(hold, deadline, [&] {
    return std::all_of(threads_.begin(), threads_.end(), [](const auto& t) { return t->ended.load(); });
  });
  for (auto& t : threads_) {
    if (!t->handle.joinable()) continue;
    if (t->ended.load())
      t->handle.join();
    else
      t->handle.detach();  // its body does not return; the group lives until it does
  }
  return all;
}

std::vector<std::string> group::running(std::size_t n) const {
  std::vector<std::string> names;
  std::lock_guard hold(threads_lock_);
  for (const auto& t : threads_) {
    const task_record* r = t->running();
    if (r && names.size() < n) names.push_back(logic::name_of(*r));
  }
  return names;
}

int group::threads() const {
  std::lock_guard hold(threads_lock_);
  return static_cast<int>(
      std::count_if(threads_.begin(), threads_.end(), [](const auto& t) { return !t->ended.load(); }));
}

// ---- threads --------------------------------------------------------------------------------------------------------

void group::add_thread() {
  std::lock_guard hold(threads_lock_);
  auto w = std::make_shared<worker>(workplace_, static_cast<int>(threads_.size()));
  if (options_.sink)
    w->lane.open(options_.sink, options_.first_lane + w->number,
                 options_.facts.name + " worker " + std::to_string(w->number));
  threads_.push_back(w);
  try {
    // The house stays as long as the thread: a body that does not return in time is left behind at shutdown.
    w->handle = std::thread([house = options_.house.lock(), self = shared_from_this(), w] { self->thread_main(*w); });
  } catch (...) {
    threads_.pop_back();
    throw;
  }
}

bool group::add_spare() {
  try {
    add_thread();
    return true;
  } catch (const std::system_error&) {
    return false;  // no more threads: those that exist must do
  }
}

void group::be_awake(worker& self, bool now) {
  if (now == self.active) return;
  self.active = now;
  awake_.fetch_add(now ? 1 : -1, std::memory_order_relaxed);
  now ? placement_.became_active() : placement_.became_idle();
}

// While others are busy, a thread leaves them what is not worth the traffic between cores: to the one who is at it.
bool group::is_worth_looking() const {
  return placement_.active() <= 1 || placement_.took_last_turn() || queue_.worth_ns() >= share_worth_ns ||
         (awake_.load(std::memory_order_relaxed) <= 1 && queue_.size() != 0) || placement_.has_stale_mail(ticks()) ||
         replays_.load(std::memory_order_relaxed) != 0 || placement_.is_work_elsewhere(this);
}

void group::thread_main(worker& self) {
  this_worker = &self;
  devices::name_this_thread(options_.facts.name + "/" + std::to_string(self.number));
  parking::thread& place = self.place;
  place.has_slot = self.number < options_.facts.slots;  // the first threads start with one
  if (place.has_slot && static_cast<std::size_t>(self.number) < options_.cores.size())
    devices::bind_this_thread(options_.cores[static_cast<std::size_t>(self.number)]);
  std::uint64_t idle_since = 0;
  int rest = 0;
  for (;;) {
    if (place.has_slot && !parking_.slot_wanted()) {
      be_awake(self, true);
      if (place.look || is_worth_looking()) {
        const std::uint64_t before = self.counts().tasks.load(std::memory_order_relaxed);
        if (work_once(self) || (place.look && steal(self))) {
          idle_since = 0;
          place.look = false;
          // Who is faster than those who submit fetches their tasks one by one, and each fetch slows them down. A short
          // rest lets the next ones gather.
          const bool few = self.counts().tasks.load(std::memory_order_relaxed) - before < 8;
          rest = few ? std::min(rest + 1, rest_max) : rest / 2;
          if (queue_.size() == 0)
            for (int i = 0; i < rest; ++i) spin_lock::pause();
          continue;
        }
        place.look = false;
      }
      if (!stopping_.load(std::memory_order_relaxed)) {
        // The thread that ran dry last keeps looking, its caches are warm; the one that looked before it goes to sleep.
        const std::uint64_t now = ticks();
        if (idle_since == 0) {
          idle_since = now;
          looking_.store(&self, std::memory_order_relaxed);
        }
        if (now - idle_since < spin_ticks_ && looking_.load(std::memory_order_relaxed) == &self) {
          // Whoever this thread has just woken may have been put on its core.
          for (int i = 0; i < 8; ++i) spin_lock::pause();
          std::this_thread::yield();
          continue;
        }
      }
      idle_since = 0;
      if (placement_.is_stale(ticks()) && steal(self)) continue;
    }
    be_awake(self, false);
    const parking::woken why = parking_.park(place);
    if (why == parking::woken::to_end) break;
    if (why != parking::woken::for_task) continue;
    if (std::exchange(place.spare_due, false)) make_spare();
    be_awake(self, place.has_slot);
    run_and_report(self, *place.task);
    if (place.more == 0) continue;
    if (parking_.give_slots(std::exchange(place.more, 0))) make_spare();
    work_once(self);  // small tasks are not to wait for the end of a row of these
  }
  self.lane.flush();
  parking_.ended(place);
  this_worker = nullptr;
  std::lock_guard hold(threads_lock_);
  self.ended.store(true);
  ended_.notify_all();
}

// ---- work -----------------------------------------------------------------------------------------------------------

bool group::work_once(worker& self) {
  task_record* got[task_queue::batch_max];
  if (const std::size_t n = queue_.take_batch(got)) {
    if (n > 1 || queue_.size() != 0) parking_.keep_watch();
    for (std::size_t i = 1; i < n; ++i) self.batch.push(got[i]);
    // Another core filled the records in: the next one is fetched while a body runs.
    const auto fetch = [&](std::size_t i) {
      if (i < n) prefetch<sizeof(task_record) / 64>(got[i]);
    };
    fetch(1);
    self.run(*got[0]);
    if (n == 1) {
      placement_.report_done({got, 1}, this);
      return true;
    }
    self.done.push(got[0]);
    std::size_t i = 1;
    while (task_record* t = self.batch.pop()) {
      fetch(++i);
      self.run(*t);
      self.done.push(t);
    }
    report_done(self);
    return true;
  }
  if (placement_.take_turn(this)) return true;
  return replays_.load(std::memory_order_relaxed) != 0 && join_graph(self);
}

void group::run_and_report(worker& self, task_record& t) {
  self.run(t);
  task_record* done = &t;
  placement_.report_done({&done, 1}, this);
}

void group::report_done(worker& self) {
  task_record* done[worker::ring::capacity];
  if (const std::size_t n = self.done.pop_all(done)) placement_.report_done({done, n}, this);
}

// A thread that waits inside a body must not sit on tasks that others could run. True if the awaited one was among
// them: it stays with this thread.
bool group::return_batch(worker& self, const task_record* awaited) {
  task_record* back[worker::ring::capacity];
  bool found = false;
  for (std::size_t i = self.batch.pop_all(back); i != 0; --i) {
    if (back[i - 1] == awaited)
      found = true;
    else
      queue_.put_back(*back[i - 1]);
  }
  return found;
}

// From a sibling whose current body takes longer than was predicted: what it has not started, and what it has finished
// and not reported.
bool group::steal(worker& self) {
  std::shared_ptr<worker> victim;
  {
    std::unique_lock look(threads_lock_, std::try_to_lock);
    if (!look) return true;  // look again before sleeping
    for (const auto& other : threads_) {
      if (other.get() == &self || (other->batch.empty() && other->done.empty())) continue;
      victim = other;
      break;
    }
  }
  if (!victim) return false;
  report_done(*victim);
  if (task_record* t = victim->batch.pop()) run_and_report(self, *t);
  return true;
}

bool group::something_held() const {
  std::lock_guard hold(threads_lock_);
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const auto& t) { return !t->batch.empty() || !t->done.empty(); });
}

// ---- recorded graphs ------------------------------------------------------------------------------------------------

// One thread runs the graph's task; others of the group that have nothing else to do join in.
std::exception_ptr group::run_graph(worker& self, task_record& t) {
  auto graph = std::static_pointer_cast<recorded_graph>(t.extra->payload);
  graph_run g(*graph);
  {
    std::lock_guard hold(replay_lock_);
    replaying_.push_back(&g);
  }
  replays_.fetch_add(1, std::memory_order_seq_cst);
  parking_.wake(std::min<std::size_t>(static_cast<std::size_t>(options_.facts.slots) - 1, graph->roots.size()),
                parking::nearness::far);
  run_nodes(self, g, true);
  {
    std::lock_guard hold(replay_lock_);
    std::erase(replaying_, &g);
  }
  replays_.fetch_sub(1, std::memory_order_relaxed);
  g.wait_for_guests();
  return g.error;
}

bool group::join_graph(worker& self) {
  graph_run* g = nullptr;
  {
    std::lock_guard hold(replay_lock_);
    if (replaying_.empty()) return false;
    g = replaying_.front();
    if (!g->join()) return false;
  }
  run_nodes(self, *g, false);
  g->leave();
  return true;
}

void group::run_nodes(worker& self, graph_run& g, bool owner) {
  graph_run::hand mine;
  for (std::uint32_t node; g.next(mine, node, owner);) {
    const bool shared = g.finished(mine, node, self.run_node(g, node));
    if (shared && parking_.sleepers() != 0) parking_.wake(1, parking::nearness::far);
  }
}

// ---- waiting inside a body ------------------------------------------------------------------------------------------

void group::give_slot(worker& self) {
  return_batch(self, nullptr);
  if (const std::size_t n = queue_.size(); n != 0) parking_.wake(n, parking::nearness::far);
  report_done(self);  // tasks that this thread has finished must not be held back while it waits
  if (self.active) {
    placement_.became_idle();
    awake_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (parking_.give_slots(self.place.slots())) make_spare();
}

void group::take_slot(worker& self) {
  if (self.active) {
    placement_.became_active();
    awake_.fetch_add(1, std::memory_order_relaxed);
  }
  parking_.take_slots(self.place.slots());
  if (parking_.spare_due()) make_spare();
}

bool group::wait_inside(worker& self, task_record& awaited, wait_board& board,
                        std::chrono::steady_clock::time_point deadline) {
  report_done(self);
  placement_.take_turn(this);
  if (is_fulfilled(awaited)) return true;
  // Run it here if it is ready and nobody has it: the same order on the stack as a plain call.
  if (self.depth() < depth_max && (return_batch(self, &awaited) || queue_.take(awaited))) {
    run_and_report(self, awaited);
    return true;
  }
  if (task_record* here = self.context()->task();
      here->home == awaited.home && placement_.would_deadlock(*here, awaited))
    throw error(errc::would_deadlock, "task '" + logic::name_of(*here) + "' waits for '" + logic::name_of(awaited) +
                                          "', which can only go on after it: wait outside the task");
  if (is_fulfilled(awaited)) return true;
  give_slot(self);
  const bool finished = board.wait(awaited, deadline);
  take_slot(self);
  return finished;
}

// ---- helping threads ------------------------------------------------------------------------------------------------

bool group::help_with(task_record& awaited) {
  if (queue_.size() == 0 || !parking_.borrow_slot()) return false;
  const bool mine = queue_.take(awaited);
  if (mine) {
    // A helping thread has no place in the group: it borrows one, kept for the next time.
    std::unique_ptr<worker> guest = take_guest();
    worker* before = std::exchange(this_worker, guest.get());
    guest->run(awaited);
    this_worker = before;
    give_guest(std::move(guest));
  }
  parking_.return_slot();
  if (mine) {
    task_record* done = &awaited;
    placement_.report_done({&done, 1}, nullptr);
  }
  return mine;
}

std::unique_ptr<worker> group::take_guest() {
  std::lock_guard hold(threads_lock_);
  if (guests_.empty()) {
    auto g = std::make_unique<worker>(workplace_, guests_made_++);
    g->place.has_slot = true;  // a borrowed one
    if (options_.sink)
      g->lane.open(options_.sink, options_.first_lane + guest_lanes + g->number,
                   options_.facts.name + " guest " + std::to_string(g->number));
    return g;
  }
  auto g = std::move(guests_.back());
  guests_.pop_back();
  return g;
}

void group::give_guest(std::unique_ptr<worker> g) {
  g->lane.flush();  // it has no thread that would do so at the end
  std::lock_guard hold(threads_lock_);
  guests_.push_back(std::move(g));
}

}  // namespace

// ---- the outside ----------------------------------------------------------------------------------------------------

std::shared_ptr<core_group> make_core_group(core_group_options o, placement& p, wait_board& b, devices::device& host,
                                            house_link& link, on_idle idle, void* context) {
  return std::make_shared<group>(std::move(o), p, b, host, link, idle, context);
}

task_context* current_context() noexcept { return this_worker ? this_worker->context() : nullptr; }

task_record* current_task() noexcept {
  const run_context* c = this_worker ? this_worker->context() : nullptr;
  return c ? c->task() : nullptr;
}

bool wait_inside(task_record& awaited, wait_board& board, std::chrono::steady_clock::time_point deadline) {
  return this_worker->owner().wait_inside(*this_worker, awaited, board, deadline);
}

bool leave_slot() {
  if (!current_task()) return false;
  this_worker->owner().give_slot(*this_worker);
  return true;
}

void take_slot() { this_worker->owner().take_slot(*this_worker); }

}  // namespace troupe::detail
