// What this file is for: workers, slots, spare threads, waits inside bodies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <troupe/error.hpp>

#include "actors/logic/ready_queue.hpp"
#include "actors/logic/resources.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/replay.hpp"
#include "actors/run_context.hpp"
#include "actors/task_errors.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {

constexpr std::size_t batch_max = 32;
// A batch is at most this much predicted work, so that long tasks spread over the workers.
constexpr float batch_ns = 20'000.0f;
// Bodies that are predicted to take this long are always timed.
constexpr float always_timed_ns = 1'000.0f;
// What it costs to move a task to another core: its record and its data's state travel.
constexpr float move_ns = 200.0f;
// Sleeping threads are woken for at least this much queued work each.
constexpr float wake_worth_ns = 10'000.0f;
// While somebody works, an idle thread leaves him what is worth less than this.
constexpr float share_worth_ns = 2'000.0f;
// While somebody works, one idle thread looks up this often, in case a body takes longer than anybody thought.
constexpr auto nap = std::chrono::milliseconds(1);
// Pauses (some 40 ns each) before an idle thread looks for mail again, at most.
constexpr int rest_max = 64;
// Bodies that wait for bodies run on one stack down to this depth; beyond, the waiter sleeps.
constexpr int depth_max = 128;
// How far from the end of the queue a waiter looks for the task it waits for.
constexpr std::size_t reach = 64;

class group;

/// What one thread of a group has. Others touch only `batch` (under its lock) and the counters.
struct thread_state {
  group* owner = nullptr;
  int number = 0;
  std::thread handle;

  spin_lock batch_lock;
  std::array<task_record*, batch_max> batch{};
  std::size_t batch_next = 0, batch_end = 0;
  std::atomic<std::size_t> batch_left{0};  // what others may look at without the lock

  scratch buffers;
  std::vector<std::unique_ptr<run_context>> contexts;  // by depth
  int depth = 0;
  bool active = false;  // counted as such by placement
  std::vector<task_record*> done;  // ran here, not reported yet; under batch_lock
  std::atomic<std::size_t> done_held{0};
  std::vector<task_record*> reporting;
  trace_lane lane;
  std::atomic<const task_record*> running{nullptr};

  std::atomic<std::uint64_t> tasks{0}, failed{0}, busy_ticks{0}, bytes{0};
  std::atomic<bool> ended{false};
};

thread_local thread_state* this_thread = nullptr;

template <class T>
void bump(std::atomic<T>& counter, T by) {  // one writer
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

class group final : public core_group, public std::enable_shared_from_this<group> {
 public:
  group(core_group_options o, placement& p, wait_board& b, devices::device& host, house_link& link, on_idle idle,
        void* context)
      : options_(std::move(o)),
        placement_(p),
        board_(b),
        host_(host),
        link_(link),
        idle_(idle),
        idle_context_(context),
        tick_ns_(ns_per_tick()),
        spin_ticks_(static_cast<std::uint64_t>(static_cast<double>(options_.spin.count()) / tick_ns_)) {}

  // ---- executor ------------------------------------------------------------------------------------------------------

  const executor_facts& facts() const override { return options_.facts; }

  void start() override {
    std::lock_guard hold(lock_);
    for (int i = 0; i < options_.facts.slots; ++i) add_thread();
  }

  void run_tasks(std::span<task_record* const> tasks, attention who) override {
    std::size_t slotless = 0;
    {
      std::lock_guard hold(queue_lock_);
      for (task_record* t : tasks) {
        if (t->extra && logic::without_slot(t->extra->options.resources)) {
          ++slotless;
          continue;
        }
        queue_.push(t, t->extra ? t->extra->options.priority : 0);
        queued_ns_ += worth_of(*t);
      }
      note_queue();
    }
    if (slotless != 0) run_without_slots(tasks);
    if (tasks.size() == slotless) return;
    // A wake-up costs as much as hundreds of small tasks: it is sent for work that is worth one, or when nobody would
    // look otherwise.
    auto threads = static_cast<std::size_t>(worth_.load(std::memory_order_relaxed) / wake_worth_ns);
    if (who == attention::nobody) threads = std::max<std::size_t>(threads, 1);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    if (threads != 0)
      wake(std::min(threads, tasks.size()));
    else if (who != attention::caller || tasks.size() - slotless > 1)
      keep_watch();
  }

  int sleepers() const override { return sleepers_.load(std::memory_order_seq_cst); }
  void wake_one() override { wake(1); }
  void keep_watch() override {
    if (napper_.load(std::memory_order_relaxed) || sleepers_.load(std::memory_order_seq_cst) == 0) return;
    {
      std::lock_guard hold(lock_);
      watch_wanted_ = true;
    }
    work_.notify_all();
  }
  std::size_t queued() const override { return queued_.load(std::memory_order_relaxed); }

  std::size_t take_back(std::span<task_record*> room) override {
    std::size_t n = 0;
    std::lock_guard hold(queue_lock_);
    while (n < room.size()) {
      task_record* t = queue_.pop();
      if (!t) break;
      room[n++] = t;
    }
    note_queue();
    return n;
  }

  executor_report report() const override {
    executor_report r;
    r.name = options_.facts.name;
    r.kind = options_.facts.kind;
    r.slots = options_.facts.slots;
    std::uint64_t busy = 0;
    std::lock_guard hold(lock_);
    const auto add = [&](const auto& t) {
      r.tasks += t->tasks.load(std::memory_order_relaxed);
      r.failed += t->failed.load(std::memory_order_relaxed);
      r.bytes_moved += t->bytes.load(std::memory_order_relaxed);
      busy += t->busy_ticks.load(std::memory_order_relaxed);
    };
    for (const auto& t : threads_) add(t);
    for (const auto& t : guests_) add(t);
    r.busy = std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(busy) * tick_ns_));
    return r;
  }

  // ---- core_group ----------------------------------------------------------------------------------------------------

  void request_stop() override {
    stopping_.store(true);
    std::lock_guard hold(lock_);
    closed_ = true;
    work_.notify_all();
    slot_free_.notify_all();
  }

  bool wait_ended(std::chrono::steady_clock::time_point deadline) override {
    std::unique_lock hold(lock_);
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

  std::vector<std::string> running(std::size_t n) const override {
    std::vector<std::string> names;
    std::lock_guard hold(lock_);
    for (const auto& t : threads_) {
      const task_record* r = t->running.load(std::memory_order_acquire);
      if (r && names.size() < n) names.push_back(logic::name_of(*r));
    }
    return names;
  }

  int threads() const override {
    std::lock_guard hold(lock_);
    return static_cast<int>(
        std::count_if(threads_.begin(), threads_.end(), [](const auto& t) { return !t->ended.load(); }));
  }

  bool help_with(task_record& awaited) override {
    if (queued_.load(std::memory_order_relaxed) == 0) return false;
    {
      std::lock_guard hold(queue_lock_);
      if (!queue_.take(&awaited, reach)) return false;
      note_queue();
    }
    task_record* t = &awaited;
    // A helping thread has no state of its own in the group: it borrows one, kept for the next time.
    std::unique_ptr<thread_state> guest = take_guest();
    thread_state* before = std::exchange(this_thread, guest.get());
    run(*guest, *t);
    keep_done(*guest, t);
    this_thread = before;
    report_done(*guest);
    give_guest(std::move(guest));
    return true;
  }

  // ---- for bodies ----------------------------------------------------------------------------------------------------

  bool wait_inside(thread_state& self, task_record& awaited, wait_board&, std::chrono::steady_clock::time_point);
  void give_slot(thread_state& self);
  void get_slot(thread_state& self);
  bool is_stopping() const { return stopping_.load(std::memory_order_relaxed); }

 private:
  friend struct thread_state;

  static float work_of(const task_record& t) { return t.predicted_ns > 0 ? t.predicted_ns : batch_ns; }
  // What another thread would save by running it: moving a task between cores costs more than a tiny body.
  static float worth_of(const task_record& t) {
    return t.predicted_ns > 0 ? std::max(0.0f, t.predicted_ns - move_ns) : batch_ns;
  }
  // With queue_lock_ held: what others may read of the queue without it.
  void note_queue() {
    if (queue_.empty()) queued_ns_ = 0;
    queued_.store(queue_.size(), std::memory_order_seq_cst);
    worth_.store(queued_ns_, std::memory_order_relaxed);
  }

  void add_thread();
  void thread_main(thread_state& self);
  bool work_once(thread_state& self);
  bool sleep_for_work(std::unique_lock<std::mutex>& hold);
  bool something_held() const;
  std::size_t pop(task_record** out, std::size_t room);
  bool steal(thread_state& self);
  void run_batch(thread_state& self);
  bool replay_once(thread_state& self);
  task_record* next_of_batch(thread_state& self, task_record* finished = nullptr);
  void keep_done(thread_state& self, task_record* finished);
  void return_batch(thread_state& self);
  void run(thread_state& self, task_record& t);
  bool run_body(thread_state& self, run_context& c, task_record& t);
  bool run_graph(thread_state& self, task_record& t);
  void run_nodes(thread_state& self, graph_run& g, bool owner);
  bool run_node(thread_state& self, graph_run& g, std::uint32_t node);
  void report_done(thread_state& self);
  void run_without_slots(std::span<task_record* const>);
  void wake(std::size_t n);
  void give_up_slot_if_asked(thread_state& self, std::unique_lock<std::mutex>& hold);
  std::unique_ptr<thread_state> take_guest();
  void give_guest(std::unique_ptr<thread_state>);

  const core_group_options options_;
  placement& placement_;
  wait_board& board_;
  devices::device& host_;
  house_link& link_;
  const on_idle idle_;
  void* const idle_context_;
  const double tick_ns_;
  const std::uint64_t spin_ticks_;
  std::atomic<bool> stopping_{false};

  alignas(64) spin_lock queue_lock_;
  logic::ready_queue<task_record*> queue_;
  float queued_ns_ = 0;
  alignas(64) std::atomic<std::size_t> queued_{0};
  std::atomic<float> worth_{0};  // predicted nanoseconds in the queue
  std::atomic<bool> napper_{false};
  std::atomic<int> awake_{0};
  std::atomic<const thread_state*> looking_{nullptr};
  std::atomic<int> replays_{0};
  spin_lock replay_lock_;
  std::vector<graph_run*> replaying_;
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> spares_hint_{0};
  std::atomic<int> slots_wanted_{0};  // bodies that have waited and want to go on

  mutable std::mutex lock_;  // everything below
  std::condition_variable work_, slot_free_, ended_;
  std::vector<std::shared_ptr<thread_state>> threads_;
  std::vector<std::unique_ptr<thread_state>> guests_;
  logic::ring<task_record*> slotless_;
  std::size_t tickets_ = 0;
  bool watch_wanted_ = false;
  int free_slots_ = 0, spare_idle_ = 0, spares_ = 0;
  bool closed_ = false;
};

// ---- threads ---------------------------------------------------------------------------------------------------------

// With lock_ held. The first threads start with a slot, later ones wait for one.
void group::add_thread() {
  auto state = std::make_shared<thread_state>();
  state->owner = this;
  state->number = static_cast<int>(threads_.size());
  if (options_.sink)
    state->lane.open(options_.sink, options_.first_lane + state->number,
                     options_.facts.name + " worker " + std::to_string(state->number));
  threads_.push_back(state);
  try {
    // The house stays as long as the thread: a body that does not return in time is left behind at shutdown.
    state->handle = std::thread([house = options_.house.lock(), self = shared_from_this(), state] {
      self->thread_main(*state);
    });
  } catch (...) {
    threads_.pop_back();
    throw;
  }
}

void group::thread_main(thread_state& self) {
  this_thread = &self;
  devices::name_this_thread(options_.facts.name + "/" + std::to_string(self.number));
  bool has_slot = self.number < options_.facts.slots;
  if (has_slot && static_cast<std::size_t>(self.number) < options_.cores.size())
    devices::bind_this_thread(options_.cores[static_cast<std::size_t>(self.number)]);
  std::uint64_t idle_since = 0;
  bool look = false;
  int rest = 0;
  const auto be_awake = [&](bool now) {
    if (now == self.active) return;
    self.active = now;
    awake_.fetch_add(now ? 1 : -1, std::memory_order_relaxed);
    now ? placement_.became_active() : placement_.became_idle();
  };
  for (;;) {
    if (has_slot && slots_wanted_.load(std::memory_order_acquire) == 0) {
      be_awake(true);
      const std::uint64_t now = ticks();
      // While others are busy, a thread that has run dry leaves them what is not worth the traffic between cores.
      if (look || idle_since == 0 || placement_.active() <= 1 || worth_.load(std::memory_order_relaxed) >= share_worth_ns ||
          (awake_.load(std::memory_order_relaxed) <= 1 && queued_.load(std::memory_order_relaxed) != 0) ||
          placement_.has_stale_mail(now) || replays_.load(std::memory_order_relaxed) != 0) {
        const std::uint64_t before = self.tasks.load(std::memory_order_relaxed);
        if (work_once(self) || (look && steal(self))) {
          idle_since = 0;
          look = false;
          // Who is faster than those who submit fetches their tasks one by one, and each fetch slows them down. A short
          // rest lets the next ones gather.
          const bool few = self.tasks.load(std::memory_order_relaxed) - before < 8;
          rest = few ? std::min(rest + 1, rest_max) : rest / 2;
          if (queued_.load(std::memory_order_relaxed) == 0)
            for (int i = 0; i < rest; ++i) spin_lock::pause();
          continue;
        }
        look = false;
      }
      if (!stopping_.load(std::memory_order_relaxed)) {
        // The thread that ran dry last keeps looking, its caches are warm; the one that looked before it goes to sleep.
        if (idle_since == 0) {
          idle_since = now;
          looking_.store(&self, std::memory_order_relaxed);
        }
        if (now - idle_since < spin_ticks_ && looking_.load(std::memory_order_relaxed) == &self) {
          for (int i = 0; i < 8; ++i) spin_lock::pause();
          continue;
        }
      }
      idle_since = 0;
      if (placement_.is_stale(ticks()) && steal(self)) continue;
    }
    be_awake(false);
    std::unique_lock hold(lock_);
    if (has_slot) {
      if (slots_wanted_.load(std::memory_order_relaxed) != 0 && free_slots_ == 0) {
        // A body that waited goes on instead of this thread.
        ++free_slots_;
        has_slot = false;
        slot_free_.notify_all();
        continue;
      }
      if (closed_) break;
      look = sleep_for_work(hold);
      continue;
    }
    // Spare: waits for a slot nobody uses, or for a task that needs none.
    ++spare_idle_;
    work_.wait(hold, [&] {
      return closed_ || !slotless_.empty() ||
             (free_slots_ > 0 && slots_wanted_.load(std::memory_order_relaxed) == 0);
    });
    --spare_idle_;
    if (!slotless_.empty()) {
      task_record* t = slotless_.pop_front();
      hold.unlock();
      run(self, *t);
      keep_done(self, t);
      report_done(self);
      continue;
    }
    if (closed_) break;
    --free_slots_;
    has_slot = true;
  }
  self.lane.flush();
  {
    std::lock_guard hold(lock_);
    if (has_slot) ++free_slots_;  // for a body that still waits for one
    slot_free_.notify_all();
    self.ended.store(true);
    ended_.notify_all();
  }
  this_thread = nullptr;
}

// Sleeps until there is a reason to look. True: look even if it seems not to be worth it.
//
// While nobody works, a sleeper is woken by whoever posts work. While somebody does, he sees to what there is; one
// sleeper naps instead of sleeping, so that a body that takes longer than anybody thought holds up nobody.
bool group::sleep_for_work(std::unique_lock<std::mutex>& hold) {
  const int asleep = sleepers_.fetch_add(1, std::memory_order_seq_cst) + 1;
  const auto called = [&] { return tickets_ > 0 || closed_ || slots_wanted_.load(std::memory_order_relaxed) != 0; };
  bool look = false;
  while (!called()) {
    if (placement_.active() == 0) {
      // Whoever posts work looks at the sleepers after posting; who goes to sleep looks at the work after announcing it.
      look = placement_.has_mail_for_sleeper() || queued_.load(std::memory_order_seq_cst) != 0 || something_held();
      if (look) break;
      if (asleep == options_.facts.slots && idle_) idle_(idle_context_);
      watch_wanted_ = false;
      work_.wait(hold, [&] { return called() || watch_wanted_; });
    } else if (napper_.load(std::memory_order_relaxed)) {
      work_.wait(hold, [&] { return called() || !napper_.load(std::memory_order_relaxed); });
    } else {
      watch_wanted_ = false;
      napper_.store(true, std::memory_order_relaxed);
      const bool woken = work_.wait_for(hold, nap, called);
      napper_.store(false, std::memory_order_relaxed);
      if (woken) break;
      look = placement_.is_stale(ticks()) &&
             (placement_.has_mail() || queued_.load(std::memory_order_relaxed) != 0 || something_held() ||
              replays_.load(std::memory_order_relaxed) != 0);
      if (look) break;
    }
  }
  if (tickets_ > 0) --tickets_;
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return look;
}

// With lock_ held: a sibling has finished or waiting tasks that only it knows of.
bool group::something_held() const {
  for (const auto& t : threads_)
    if (t->batch_left.load(std::memory_order_seq_cst) != 0 || t->done_held.load(std::memory_order_seq_cst) != 0)
      return true;
  return false;
}

void group::wake(std::size_t n) {
  const int asleep = sleepers_.load(std::memory_order_seq_cst);
  if (asleep <= 0) return;
  std::size_t give;
  {
    std::lock_guard hold(lock_);
    const auto room = static_cast<std::size_t>(std::max(0, sleepers_.load(std::memory_order_relaxed)));
    give = tickets_ >= room ? 0 : std::min(n, room - tickets_);
    tickets_ += give;
  }
  // Spare threads sleep on the same condition, so waking exactly one could wake the wrong one.
  if (give == 0) return;
  if (spares_hint_.load(std::memory_order_relaxed) == 0 && give == 1)
    work_.notify_one();
  else
    work_.notify_all();
}

// ---- work ------------------------------------------------------------------------------------------------------------

bool group::work_once(thread_state& self) {
  task_record* got[batch_max];
  const std::size_t n = pop(got, batch_max);
  if (n != 0) {
    if (n > 1 || queued_.load(std::memory_order_relaxed) != 0) keep_watch();
    if (n == 1) {
      run(self, *got[0]);
      keep_done(self, got[0]);
    } else {
      {
        std::lock_guard hold(self.batch_lock);
        std::copy(got, got + n, self.batch.begin());
        self.batch_next = 0;
        self.batch_end = n;
        self.batch_left.store(n, std::memory_order_relaxed);
      }
      run_batch(self);
    }
    report_done(self);
    return true;
  }
  if (placement_.take_turn(this)) return true;
  return replays_.load(std::memory_order_relaxed) != 0 && replay_once(self);
}

// A fair share of what is queued, and not much more than batch_ns of it.
std::size_t group::pop(task_record** out, std::size_t room) {
  if (queued_.load(std::memory_order_relaxed) == 0) return 0;
  std::lock_guard hold(queue_lock_);
  const std::size_t share = std::max<std::size_t>(1, queue_.size() / (2 * static_cast<std::size_t>(options_.facts.slots)));
  const std::size_t most = std::min(room, share);
  std::size_t n = 0;
  float work = 0;
  while (n < most) {
    task_record* t = queue_.pop();
    if (!t) break;
    out[n++] = t;
    // Unknown kernels go one at a time.
    work += work_of(*t);
    queued_ns_ -= worth_of(*t);
    if (work >= batch_ns) break;
  }
  note_queue();
  return n;
}

task_record* group::next_of_batch(thread_state& self, task_record* finished) {
  std::lock_guard hold(self.batch_lock);
  if (finished) {
    self.done.push_back(finished);
    self.done_held.store(self.done.size(), std::memory_order_seq_cst);
  }
  if (self.batch_next == self.batch_end) return nullptr;
  task_record* t = self.batch[self.batch_next++];
  self.batch_left.store(self.batch_end - self.batch_next, std::memory_order_relaxed);
  return t;
}

void group::run_batch(thread_state& self) {
  task_record* t = next_of_batch(self);
  while (t) {
    run(self, *t);
    t = next_of_batch(self, t);
  }
}

void group::keep_done(thread_state& self, task_record* finished) {
  std::lock_guard hold(self.batch_lock);
  self.done.push_back(finished);
  self.done_held.store(self.done.size(), std::memory_order_seq_cst);
}

// A thread that waits inside a body must not sit on tasks that others could run.
void group::return_batch(thread_state& self) {
  std::size_t n = 0;
  while (task_record* t = next_of_batch(self)) {
    std::lock_guard hold(queue_lock_);
    queue_.push_front(t, t->extra ? t->extra->options.priority : 0);
    queued_ns_ += worth_of(*t);
    note_queue();
    ++n;
  }
  if (n != 0) wake(n);
}

// From a sibling whose current body takes longer than was predicted: what it has not started, and what it has finished
// and not reported.
bool group::steal(thread_state& self) {
  std::shared_ptr<thread_state> victim;
  {
    std::unique_lock look(lock_, std::try_to_lock);
    if (!look) return true;  // look again before sleeping
    for (const auto& other : threads_) {
      if (other.get() == &self) continue;
      if (other->batch_left.load(std::memory_order_seq_cst) == 0 && other->done_held.load(std::memory_order_seq_cst) == 0)
        continue;
      victim = other;
      break;
    }
  }
  if (!victim) return false;
  {
    std::lock_guard hold(victim->batch_lock);
    self.reporting.swap(victim->done);
    victim->done_held.store(0, std::memory_order_relaxed);
  }
  if (!self.reporting.empty()) {
    placement_.report_done(self.reporting, this);
    self.reporting.clear();
  }
  if (task_record* t = next_of_batch(*victim)) {
    run(self, *t);
    keep_done(self, t);
    report_done(self);
  }
  return true;
}

void group::report_done(thread_state& self) {
  {
    std::lock_guard hold(self.batch_lock);
    if (self.done.empty()) return;
    self.reporting.swap(self.done);
    self.done_held.store(0, std::memory_order_relaxed);
  }
  placement_.report_done(self.reporting, this);
  self.reporting.clear();
}

void group::run(thread_state& self, task_record& t) {
  if (!claim(t)) {  // cancelled meanwhile
    await_verdict(t);
    return;
  }
  if (static_cast<std::size_t>(self.depth) == self.contexts.size())
    self.contexts.push_back(std::make_unique<run_context>(host_, link_, self.buffers, options_.facts.name.c_str(), stopping_));
  run_context& c = *self.contexts[static_cast<std::size_t>(self.depth++)];
  c.bind(t);
  const task_record* outer = self.running.load(std::memory_order_relaxed);
  self.running.store(&t, std::memory_order_relaxed);
  // Of the shortest bodies one in eight is timed: reading the clock would cost more than they do.
  const bool timed = t.predicted_ns < 1.0f || t.predicted_ns >= always_timed_ns || (t.id & 7) == 0 || self.lane.on();
  const std::uint64_t begin = timed ? ticks() : 0;
  const bool fine = run_body(self, c, t);
  const std::uint64_t end = timed ? ticks() : static_cast<std::uint64_t>(static_cast<double>(t.predicted_ns) / tick_ns_);
  self.running.store(outer, std::memory_order_release);
  --self.depth;
  bump(self.tasks, std::uint64_t{1});
  bump(self.busy_ticks, end - begin);
  if (!fine) bump(self.failed, std::uint64_t{1});
  if (const std::uint64_t moved = c.take_bytes_moved()) bump(self.bytes, moved);
  if (timed) t.measured_ns = std::max(1.0f, static_cast<float>(static_cast<double>(end - begin) * tick_ns_));
  if (self.lane.on()) self.lane.add(t.id, begin, end, logic::name_of(t).c_str());
  // What the body captured goes before anybody learns that it is done: a waiter may then count on it.
  if (t.kind == task_kind::call && !t.body_gone) {
    t.ops->drop_body(t);
    t.body_gone = true;
  }
  fulfil(t, board_);
}

bool group::run_body(thread_state& self, run_context& c, task_record& t) {
  if (t.kind == task_kind::graph_run) return run_graph(self, t);
  if (t.kind == task_kind::settle) {
    try {
      settle_reduction(t, host_, c);
      c.commit();
      return true;
    } catch (...) {
      c.roll_back();
      t.error = task_error(t, options_.facts.name, 1, std::current_exception());
      return false;
    }
  }
  const int tries = 1 + (t.extra ? std::max(0, t.extra->options.retries) : 0);
  for (int attempt = 1;; ++attempt) {
    try {
      if (t.extra && t.extra->options.stop.stop_requested()) {
        t.error = cancelled_error(t, options_.facts.name);
        return false;
      }
      t.ops->run(t, c);
      c.commit();
      return true;
    } catch (...) {
      c.roll_back();
      if (attempt < tries && !c.stop_requested()) {
        c.next_attempt();
        continue;
      }
      t.error = task_error(t, options_.facts.name, attempt, std::current_exception());
      return false;
    }
  }
}

void group::run_without_slots(std::span<task_record* const> tasks) {
  std::lock_guard hold(lock_);
  for (task_record* t : tasks) {
    if (!t->extra || !logic::without_slot(t->extra->options.resources)) continue;
    slotless_.push_back(t);
    if (static_cast<std::size_t>(spare_idle_) < slotless_.size() && spares_ < options_.spare_threads_max) {
      ++spares_;
      spares_hint_.store(spares_, std::memory_order_relaxed);
      add_thread();
    }
  }
  work_.notify_all();
}

// ---- recorded graphs -------------------------------------------------------------------------------------------------

// One thread runs the graph's task; others of the group that have nothing else to do join in.
bool group::run_graph(thread_state& self, task_record& t) {
  auto graph = std::static_pointer_cast<recorded_graph>(t.extra->payload);
  graph_run g(*graph);
  {
    std::lock_guard hold(replay_lock_);
    replaying_.push_back(&g);
  }
  replays_.fetch_add(1, std::memory_order_seq_cst);
  wake(std::min<std::size_t>(static_cast<std::size_t>(options_.facts.slots) - 1, graph->roots.size()));
  run_nodes(self, g, true);
  {
    std::lock_guard hold(replay_lock_);
    std::erase(replaying_, &g);
  }
  replays_.fetch_sub(1, std::memory_order_relaxed);
  g.wait_for_guests();
  if (!g.error) return true;
  t.error = g.error;
  return false;
}

bool group::replay_once(thread_state& self) {
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

void group::run_nodes(thread_state& self, graph_run& g, bool owner) {
  graph_run::hand mine;
  for (;;) {
    std::uint32_t node;
    if (!g.next(mine, node, owner)) return;
    const bool shared = g.finished(mine, node, run_node(self, g, node));
    if (shared && sleepers_.load(std::memory_order_seq_cst) != 0) wake(1);
  }
}

bool group::run_node(thread_state& self, graph_run& g, std::uint32_t n) {
  replay_node& node = g.graph.nodes[n];
  if (node.poisoned.load(std::memory_order_acquire)) return false;
  task_record& t = *node.task;
  if (static_cast<std::size_t>(self.depth) == self.contexts.size())
    self.contexts.push_back(
        std::make_unique<run_context>(host_, link_, self.buffers, options_.facts.name.c_str(), stopping_));
  run_context& c = *self.contexts[static_cast<std::size_t>(self.depth++)];
  c.bind(t);
  const std::uint64_t begin = self.lane.on() ? ticks() : 0;
  t.error = nullptr;
  const bool fine = run_body(self, c, t);
  if (!fine) g.fail(t.error);
  --self.depth;
  if (begin) self.lane.add(t.id, begin, ticks(), logic::name_of(t).c_str());
  bump(self.tasks, std::uint64_t{1});
  if (!fine) bump(self.failed, std::uint64_t{1});
  if (const std::uint64_t moved = c.take_bytes_moved()) bump(self.bytes, moved);
  return fine;
}

// ---- waiting inside a body -------------------------------------------------------------------------------------------

void group::give_slot(thread_state& self) {
  return_batch(self);
  report_done(self);  // tasks that this thread has finished must not be held back while it waits
  if (self.active) {
    placement_.became_idle();
    awake_.fetch_sub(1, std::memory_order_relaxed);
  }
  std::lock_guard hold(lock_);
  ++free_slots_;
  if (slots_wanted_.load(std::memory_order_relaxed) != 0) {
    slot_free_.notify_all();
  } else if (spare_idle_ == 0 && spares_ < options_.spare_threads_max && !closed_) {
    ++spares_;
    spares_hint_.store(spares_, std::memory_order_relaxed);
    add_thread();
  } else {
    work_.notify_all();
  }
}

void group::get_slot(thread_state& self) {
  if (self.active) {
    placement_.became_active();
    awake_.fetch_add(1, std::memory_order_relaxed);
  }
  std::unique_lock hold(lock_);
  if (free_slots_ > 0) {
    --free_slots_;
    return;
  }
  slots_wanted_.fetch_add(1, std::memory_order_seq_cst);
  work_.notify_all();  // a sleeping thread with a slot gives it up
  slot_free_.wait(hold, [&] { return free_slots_ > 0; });
  --free_slots_;
  slots_wanted_.fetch_sub(1, std::memory_order_seq_cst);
}

bool group::wait_inside(thread_state& self, task_record& awaited, wait_board& board,
                        std::chrono::steady_clock::time_point deadline) {
  const auto done = [&] { return (awaited.phase.load(std::memory_order_acquire) & phase_mask) == phase_done; };
  // Run it here if it is ready and nobody has it: the same order on the stack as a plain call.
  report_done(self);
  placement_.take_turn(this);
  if (done()) return true;
  if (self.depth < depth_max) {
    bool mine = false;
    {
      std::lock_guard hold(queue_lock_);
      mine = queue_.take(&awaited, reach);
      note_queue();
    }
    if (!mine) {
      std::lock_guard hold(self.batch_lock);
      const auto begin = self.batch.begin() + static_cast<std::ptrdiff_t>(self.batch_next);
      const auto end = self.batch.begin() + static_cast<std::ptrdiff_t>(self.batch_end);
      const auto at = std::find(begin, end, &awaited);
      if (at != end) {
        std::move(at + 1, end, at);
        --self.batch_end;
        self.batch_left.store(self.batch_end - self.batch_next, std::memory_order_relaxed);
        mine = true;
      }
    }
    if (mine) {
      run(self, awaited);
      keep_done(self, &awaited);
      report_done(self);
      return true;
    }
  }
  if (task_record* here = self.contexts[static_cast<std::size_t>(self.depth - 1)]->task();
      placement_.would_deadlock(*here, awaited))
    throw error(errc::would_deadlock, "task '" + logic::name_of(*here) + "' waits for '" + logic::name_of(awaited) +
                                          "', which can only go on after it: wait outside the task");
  if (done()) return true;
  give_slot(self);
  const bool finished = board.wait(awaited, deadline);
  get_slot(self);
  return finished;
}

// ---- helping threads -------------------------------------------------------------------------------------------------

std::unique_ptr<thread_state> group::take_guest() {
  std::lock_guard hold(lock_);
  if (!guests_.empty()) {
    auto g = std::move(guests_.back());
    guests_.pop_back();
    return g;
  }
  auto g = std::make_unique<thread_state>();
  g->owner = this;
  return g;
}

void group::give_guest(std::unique_ptr<thread_state> g) {
  std::lock_guard hold(lock_);
  guests_.push_back(std::move(g));
}

}  // namespace

// ---- the outside -----------------------------------------------------------------------------------------------------

std::shared_ptr<core_group> make_core_group(core_group_options o, placement& p, wait_board& b, devices::device& host,
                                            house_link& link, on_idle idle, void* context) {
  return std::make_shared<group>(std::move(o), p, b, host, link, idle, context);
}

task_context* current_context() noexcept {
  thread_state* s = this_thread;
  return s && s->depth > 0 ? s->contexts[static_cast<std::size_t>(s->depth - 1)].get() : nullptr;
}

task_record* current_task() noexcept {
  thread_state* s = this_thread;
  return s && s->depth > 0 ? s->contexts[static_cast<std::size_t>(s->depth - 1)]->task() : nullptr;
}

bool wait_inside(task_record& awaited, wait_board& board, std::chrono::steady_clock::time_point deadline) {
  return this_thread->owner->wait_inside(*this_thread, awaited, board, deadline);
}

void* leave_slot() {
  if (!current_task()) return nullptr;
  this_thread->owner->give_slot(*this_thread);
  return this_thread->owner;
}

void take_slot(void* token) {
  if (token) static_cast<group*>(token)->get_slot(*this_thread);
}

}  // namespace troupe::detail
