// What this file is for: an accelerator's thread: what it starts, what it waits for, what it reports.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <troupe/error.hpp>

#include "actors/gpu_context.hpp"
#include "actors/host_tiles.hpp"
#include "actors/logic/ready_queue.hpp"
#include "actors/logic/region.hpp"
#include "actors/logic/residency.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/run_context.hpp"
#include "actors/task_errors.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {

using devices::ticket;
using logic::box4;
using logic::replica;

constexpr int lane_in = 0, lane_out = 1;
// Who sleeps while others are busy looks up this often.
constexpr auto nap = std::chrono::milliseconds(1);
// A device that fails is opened again so often; a task is tried so often in all.
constexpr int restarts_max = 3, attempts_max = 3;

// The device can do no more.
bool is_fatal(const error& e) { return e.code() == errc::device_failed || e.code() == errc::device_lost; }

class actor final : public gpu, public std::enable_shared_from_this<actor> {
 public:
  actor(gpu_options o, std::unique_ptr<devices::accelerator> device, placement& p, wait_board& b, house_link& link)
      : options_(std::move(o)),
        placement_(p),
        board_(b),
        link_(link),
        tick_ns_(ns_per_tick()),
        spin_ticks_(static_cast<std::uint64_t>(static_cast<double>(options_.spin.count()) / tick_ns_)),
        deadline_ticks_(static_cast<std::uint64_t>(static_cast<double>(options_.deadline.count()) / tick_ns_)),
        compute_lanes_(device->facts().lanes - gpu_copy_lanes),
        memory_bytes_(device->facts().memory_bytes),
        device_(std::move(device)) {
    lanes_.resize(static_cast<std::size_t>(device_->facts().lanes));
    device_->listen([this] { ring(); });
    lane_.open(options_.sink, options_.lane, options_.facts.name);
  }

  // ---- executor -----------------------------------------------------------------------------------------------------

  const executor_facts& facts() const override { return options_.facts; }
  void start() override;
  void run_tasks(std::span<task_record* const>, attention) override;
  int sleepers() const override { return asleep_.load(std::memory_order_seq_cst) ? 1 : 0; }
  void wake_one() override { ring(); }
  void keep_watch() override {
    if (!watch_.exchange(true, std::memory_order_seq_cst) && sleepers() != 0) ring();
  }
  std::size_t queued() const override { return queued_count_.load(std::memory_order_relaxed); }
  std::size_t unstarted() const override { return queued(); }
  float queued_ns() const override { return 0; }  // nobody else has its memory
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override;
  executor_report report() const override;

  // ---- gpu ----------------------------------------------------------------------------------------------------------

  void request_stop() override {
    stopping_.store(true);
    ring();
  }
  bool wait_ended(std::chrono::steady_clock::time_point) override;
  std::vector<std::string> running(std::size_t n) const override;

 private:
  enum class outcome { started, no_room };

  // What one task holds while it is under way.
  struct held {
    replica* copy;
    bool written;
  };
  struct part {  // of a tile, or assembled: packed in device memory, its home is a host view
    int access;
    void* memory;
    raw_view host;
    box4 where;
    bool goes_out;
    std::byte* staged = nullptr;  // what goes out replaces what came in once all has gone well
  };
  struct job {
    job(house_link& link, const char* name, const std::atomic<bool>& stopping)
        : host(*link.host, link, buffers, name, stopping), device(name, stopping) {}
    task_record* task = nullptr;  // null: an eviction
    replica* leaving = nullptr;   // a copy to the host
    std::vector<held> copies;
    std::vector<part> parts;
    std::exception_ptr error;
    bool came_in = false;       // something was enqueued for it on the lane of copies in
    int lane = 0, compute = 0;  // that it ends on, that its kernel runs on
    ticket end = 0;
    std::uint64_t begin = 0;
    scratch buffers;
    run_context host;
    gpu_context device;
  };

  void ring();
  void thread_main();
  bool step();
  bool collect();
  void check_deadline();
  bool start_some();
  outcome start_task(task_record&);
  outcome start_transfer(task_record&);
  bool reserve(job&);
  void fill_in(job&);
  void launch(job&);
  void wait_for(int lane, const replica&);
  void ask_to_be_woken();
  bool make_room();
  void send_home(replica&, job&);
  void finish(job&);
  void put_in_place(job&);
  void let_go(job&, bool fine);
  void end_task(task_record&, std::exception_ptr, std::uint64_t begin);
  std::uint64_t serve_time(const job&, std::uint64_t now) const;
  outcome forget(task_record&);
  void refuse(task_record& errand);
  void close_device();
  void drop(const replica&);
  void fail_device(std::exception_ptr);
  static bool may_run_again(task_record&);
  job& take_job();
  void give_job(job&);
  [[noreturn]] void complain_no_room(const job&) const;
  void publish_running();

  gpu_options options_;
  placement& placement_;
  wait_board& board_;
  house_link& link_;
  const double tick_ns_;
  const std::uint64_t spin_ticks_;
  const std::uint64_t deadline_ticks_;
  const int compute_lanes_;
  const std::uint64_t memory_bytes_;

  // Shared with other threads.
  mutable std::mutex lock_;
  std::condition_variable bell_;
  logic::ready_queue<task_record*> queue_;
  std::deque<task_record*> errands_;  // transfers and the like
  std::vector<const task_record*> running_;
  bool rung_ = false, ended_ = false;
  std::atomic<std::size_t> queued_count_{0};
  std::atomic<bool> asleep_{false}, watch_{false}, stopping_{false};
  std::atomic<std::uint64_t> tasks_{0}, failed_{0}, busy_ns_{0}, bytes_{0};
  std::thread thread_;

  // The actor's thread.
  std::unique_ptr<devices::accelerator> device_;
  std::exception_ptr broken_;  // why the device can do no more
  int failures_ = 0;
  logic::residency cache_;
  std::list<job> jobs_, idle_jobs_;
  bool jobs_changed_ = false;
  std::unordered_map<const kernel_info*, devices::kernel_id> kernels_;
  std::vector<task_record*> done_;
  int next_lane_ = 0;
  struct lane_state {
    ticket reached = 0, rings_at = 0;  // rings: the bell rings once it is reached
    std::uint64_t last_end = 0;        // ticks
    int ended = 0;                     // tasks, at the last look
  };
  std::vector<lane_state> lanes_;
  trace_lane lane_;
};

// ---- the executor ---------------------------------------------------------------------------------------------------

void actor::start() {
  thread_ = std::thread([house = options_.house.lock(), self = shared_from_this()] { self->thread_main(); });
}

void actor::run_tasks(std::span<task_record* const> tasks, attention) {
  {
    std::unique_lock hold(lock_);
    if (ended_) {  // only errands come now
      hold.unlock();
      for (task_record* t : tasks) refuse(*t);
      return;
    }
    for (task_record* t : tasks) {
      if (is_internal(t->kind)) {
        errands_.push_back(t);
        continue;
      }
      queue_.push(t, t->extra ? t->extra->options.priority : 0);
      queued_count_.fetch_add(1, std::memory_order_relaxed);
    }
    rung_ = true;
  }
  bell_.notify_one();
}

std::size_t actor::take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) {
  std::lock_guard hold(lock_);
  std::size_t n = 0;
  queue_.take_newest(
      room.size(), [&](const task_record* t) { return wanted(*t); }, [&](task_record* t) { room[n++] = t; });
  queued_count_.fetch_sub(n, std::memory_order_relaxed);
  return n;
}

executor_report actor::report() const {
  executor_report r;
  r.name = options_.facts.name;
  r.kind = options_.facts.kind;
  r.slots = options_.facts.slots;
  r.tasks = tasks_.load(std::memory_order_relaxed);
  r.failed = failed_.load(std::memory_order_relaxed);
  r.busy = std::chrono::nanoseconds(busy_ns_.load(std::memory_order_relaxed));
  r.bytes_moved = bytes_.load(std::memory_order_relaxed);
  return r;
}

bool actor::wait_ended(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock hold(lock_);
  const bool ended = bell_.wait_until(hold, deadline, [&] { return ended_; });
  hold.unlock();
  if (thread_.joinable()) {
    if (ended)
      thread_.join();
    else
      thread_.detach();  // its device does not answer; the actor lives until it does
  }
  return ended;
}

std::vector<std::string> actor::running(std::size_t n) const {
  std::vector<std::string> names;
  std::lock_guard hold(lock_);
  for (const task_record* t : running_)
    if (names.size() < n) names.push_back(logic::name_of(*t));
  return names;
}

// ---- the thread -----------------------------------------------------------------------------------------------------

void actor::ring() {
  {
    std::lock_guard hold(lock_);
    rung_ = true;
  }
  bell_.notify_all();
}

void actor::thread_main() {
  devices::name_this_thread(options_.facts.name);
  bool active = false;
  const auto be_active = [&](bool now) {
    if (now != active) now ? placement_.became_active() : placement_.became_idle();
    active = now;
  };
  std::uint64_t idle_since = 0;
  for (;;) {
    be_active(true);
    if (step() || placement_.take_turn(this)) {
      idle_since = 0;
      continue;
    }
    if (stopping_.load() && jobs_.empty()) break;
    const std::uint64_t now = ticks();
    if (idle_since == 0) idle_since = now;
    if (now - idle_since < spin_ticks_) {
      std::this_thread::yield();
      continue;
    }
    idle_since = 0;
    try {
      ask_to_be_woken();
    } catch (...) {
      fail_device(std::current_exception());
      continue;
    }
    be_active(false);
    asleep_.store(true, std::memory_order_seq_cst);
    {
      std::unique_lock hold(lock_);
      const auto wanted = [&] { return rung_; };
      if (!placement_.has_mail_for_sleeper()) {
        if (watch_.exchange(false, std::memory_order_relaxed))
          bell_.wait_for(hold, nap, wanted);
        else if (deadline_ticks_ != 0 && !jobs_.empty())
          bell_.wait_for(hold, options_.deadline / 4, wanted);
        else
          bell_.wait(hold, wanted);
      }
      rung_ = false;
    }
    asleep_.store(false, std::memory_order_seq_cst);
  }
  be_active(false);
  close_device();
  lane_.flush();
  std::deque<task_record*> late;  // errands that came after the last look
  {
    std::lock_guard hold(lock_);
    ended_ = true;
    late.swap(errands_);
  }
  bell_.notify_all();
  for (task_record* t : late) refuse(*t);
}

// Nothing is left to bring home or to free.
void actor::refuse(task_record& errand) {
  task_record* const one = &errand;
  if (claim(errand)) fulfil(errand, board_);
  placement_.report_done({&one, 1}, nullptr);
}

// Memory of the caller holds what was computed; the rest goes with the device.
void actor::close_device() {
  try {
    if (device_)
      cache_.each([&](replica& r) {
        if (r.dirty && r.array->spec.adopted) send_home(r, take_job());
      });
    while (!jobs_.empty())
      if (!collect()) std::this_thread::yield();
  } catch (...) {
    fail_device(std::current_exception());
  }
  cache_.each([&](const replica& r) { cache_.erase(r); });
  device_.reset();
}

// Polling is faster while something is about to end; now the device is to ring.
void actor::ask_to_be_woken() {
  for (const job& j : jobs_) {
    lane_state& l = lanes_[static_cast<std::size_t>(j.lane)];
    if (j.end > l.rings_at) l.rings_at = device_->record(j.lane, true);
  }
}

bool actor::step() {
  bool any = false;
  try {
    any = collect();
    any = start_some() || any;
  } catch (...) {
    fail_device(std::current_exception());
    any = true;
  }
  if (jobs_changed_) publish_running();
  if (!done_.empty()) {
    placement_.report_done(done_, this);
    done_.clear();
    any = true;
  }
  return any;
}

void actor::publish_running() {
  jobs_changed_ = false;
  std::lock_guard hold(lock_);
  running_.clear();
  for (const job& j : jobs_)
    if (j.task && !is_internal(j.task->kind)) running_.push_back(j.task);
}

// What has ended since the last look. Throws what the device has to complain about.
bool actor::collect() {
  if (jobs_.empty()) return false;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    lanes_[l].reached = device_->completed(static_cast<int>(l));
    lanes_[l].ended = 0;
  }
  const auto has_ended = [&](const job& j) {
    return j.end != 0 && j.end <= lanes_[static_cast<std::size_t>(j.lane)].reached;
  };
  for (const job& j : jobs_) lanes_[static_cast<std::size_t>(j.compute)].ended += has_ended(j) ? 1 : 0;
  const std::uint64_t now = ticks();
  bool any = false;
  for (auto j = jobs_.begin(); j != jobs_.end();) {
    job& one = *j++;
    if (!has_ended(one)) continue;
    one.begin = serve_time(one, now);
    finish(one);
    any = true;
  }
  if (any)
    for (lane_state& l : lanes_)
      if (l.ended != 0) l.last_end = now;
  if (deadline_ticks_ != 0 && !jobs_.empty()) check_deadline();
  return any;
}

// Of the task that began first.
void actor::check_deadline() {
  const job& j = jobs_.front();
  const std::uint64_t began = std::max(j.begin, lanes_[static_cast<std::size_t>(j.compute)].last_end);
  if (ticks() - began <= deadline_ticks_) return;
  device_->give_up();
  throw error(errc::device_failed,
              options_.facts.name + ": a task did not end within " +
                  std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(options_.deadline).count()) +
                  " ms");
}

bool actor::start_some() {
  bool any = false;
  // Errands free memory and let others go on: they are always started, those that must wait are looked at again.
  std::deque<task_record*> errands;
  {
    std::lock_guard hold(lock_);
    errands.swap(errands_);
  }
  const auto put_back = [&] {
    std::lock_guard hold(lock_);
    errands_.insert(errands_.begin(), errands.begin(), errands.end());
  };
  std::size_t left = errands.size();
  try {
    for (; left != 0; --left) {
      task_record& t = *errands.front();
      errands.pop_front();
      if (start_transfer(t) == outcome::no_room)
        errands.push_back(&t);
      else
        any = true;
    }
  } catch (...) {
    put_back();
    throw;
  }
  if (!errands.empty()) put_back();
  while (jobs_.size() < static_cast<std::size_t>(2 * compute_lanes_ + gpu_copy_lanes)) {
    task_record* t;
    {
      std::lock_guard hold(lock_);
      t = queue_.pop();
      if (!t) break;
      queued_count_.fetch_sub(1, std::memory_order_relaxed);
    }
    if (start_task(*t) == outcome::started) {
      any = true;
      continue;
    }
    std::lock_guard hold(lock_);
    queue_.push_front(t, t->extra ? t->extra->options.priority : 0);
    queued_count_.fetch_add(1, std::memory_order_relaxed);
    break;
  }
  return any;
}

// ---- one task -------------------------------------------------------------------------------------------------------

actor::outcome actor::start_task(task_record& t) {
  const auto waits = [&] { return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_waiting; };
  const std::uint64_t begin = ticks();
  if (!waits()) {  // cancelled meanwhile
    await_verdict(t);
    done_.push_back(&t);
    return outcome::started;
  }
  if (broken_) {
    task_record* const back = &t;
    placement_.report_returned({&back, 1});
    return outcome::started;
  }
  job& j = take_job();
  j.task = &t;
  j.begin = begin;
  try {
    while (!reserve(j)) {
      if (make_room()) continue;
      if (jobs_.size() > 1) {  // what is under way will end and leave room
        j.task = nullptr;
        give_job(j);
        return outcome::no_room;
      }
      complain_no_room(j);
    }
  } catch (const error& e) {
    if (is_fatal(e)) throw;
    const std::exception_ptr why = std::current_exception();
    let_go(j, false);
    give_job(j);
    if (claim(t))
      end_task(t, why, begin);
    else {
      await_verdict(t);
      done_.push_back(&t);
    }
    return outcome::started;
  }
  if (!claim(t)) {
    let_go(j, false);
    give_job(j);
    await_verdict(t);
    done_.push_back(&t);
    return outcome::started;
  }
  j.lane = j.compute = gpu_copy_lanes + next_lane_++ % compute_lanes_;
  try {
    fill_in(j);
    launch(j);
  } catch (const error& e) {
    if (is_fatal(e)) throw;
    j.error = std::current_exception();
  } catch (...) {
    j.error = std::current_exception();
  }
  // Whatever has been enqueued for it by now must have passed before it lets go of anything.
  if (j.error) {
    device_->wait(j.lane, lane_in, device_->record(lane_in, false));
    j.end = device_->record(j.lane, false);
  }
  return outcome::started;
}

// Room for everything, or for nothing.
bool actor::reserve(job& j) {
  const task_record& t = *j.task;
  j.device.bind(t);
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    array_core& a = *x.array;
    const bool written = x.mode == access_mode::write || x.mode == access_mode::update;
    if (!x.where) {
      replica* r = cache_.find(a.id, x.tile);
      if (!r) {
        const std::size_t bytes = static_cast<std::size_t>(a.tile_box(x.tile).volume()) * a.spec.element;
        void* memory = device_->allocate(lane_in, bytes);
        if (!memory) {
          let_go(j, false);
          return false;
        }
        j.came_in = true;
        replica fresh;
        fresh.array = &a;
        fresh.array_id = a.id;
        fresh.tile = x.tile;
        fresh.memory = memory;
        fresh.bytes = bytes;
        r = &cache_.add(fresh);
      }
      ++r->pins;
      cache_.touch(*r);
      j.copies.push_back({r, written});
      continue;
    }
    const box4 where = x.mode == access_mode::reduce ? x.where->partials->where : logic::view_box(*x.where);
    void* memory = nullptr;
    if (const auto bytes = static_cast<std::size_t>(where.volume()) * a.spec.element; bytes != 0) {
      memory = device_->allocate(lane_in, bytes);
      if (!memory) {
        let_go(j, false);
        return false;
      }
      j.came_in = true;
    }
    j.parts.push_back({i, memory, {}, where, written || x.mode == access_mode::reduce});
  }
  return true;
}

// Copies in, and the views.
void actor::fill_in(job& j) {
  task_record& t = *j.task;
  j.host.bind(t);
  std::size_t copy = 0;
  for (int i = 0; i < t.access_count; ++i) {
    access& x = t.accesses[i];
    if (!x.array || x.where) continue;
    array_core& a = *x.array;
    replica& r = *j.copies[copy++].copy;
    const box4 b = a.tile_box(x.tile);
    raw_view v;
    v.name = a.spec.name.c_str();
    v.data = static_cast<std::byte*>(r.memory);
    v.lo = b.lo;
    v.hi = b.hi;
    v.stride = packed_strides(b);
    const std::uint32_t version = a.homes->tiles[x.tile].version.load(std::memory_order_relaxed);
    if (x.mode != access_mode::write && r.version != version) {
      std::array<index_t, rank_max> count;
      for (int d = 0; d < rank_max; ++d) count[d] = b.size(d);
      device_->copy_in(lane_in, {r.memory, 0}, v.stride, host_tile(link_, a, x.tile, false), host_strides(a, b), count,
                       a.spec.element);
      bytes_.fetch_add(r.bytes, std::memory_order_relaxed);
      j.came_in = true;
      r.version = version;
      r.lane = lane_in;
      r.ready = device_->record(lane_in, false);
    }
    if (x.worker != 0)  // a sub-array that is exactly this tile: coordinates start at 0
      for (int d = 0; d < rank_max; ++d) {
        v.hi[d] -= v.lo[d];
        v.lo[d] = 0;
      }
    j.device.set_view(i, v);
  }
  for (part& p : j.parts) {
    const access& x = t.accesses[p.access];
    p.host = j.host.view_of(p.access);
    raw_view v = p.host;
    v.data = static_cast<std::byte*>(p.memory);
    v.stride = packed_strides(p.where);
    j.device.set_view(p.access, v);
    if (!p.memory || x.mode == access_mode::write) continue;
    std::array<index_t, rank_max> count;
    for (int d = 0; d < rank_max; ++d) count[d] = p.where.size(d);
    device_->copy_in(lane_in, {p.memory, 0}, v.stride, p.host.data, p.host.stride, count, x.array->spec.element);
    bytes_.fetch_add(static_cast<std::uint64_t>(p.where.volume()) * x.array->spec.element, std::memory_order_relaxed);
  }
}

void actor::launch(job& j) {
  task_record& t = *j.task;
  t.ops->run(t, j.device);  // hands its arguments over
  const kernel_text& text = t.kernel->texts[static_cast<std::size_t>(options_.facts.kind)];
  auto known = kernels_.find(t.kernel);
  if (known == kernels_.end())
    known = kernels_.emplace(t.kernel, device_->load({t.kernel->name, text.text, text.entry})).first;
  if (j.came_in) {
    device_->wait(j.lane, lane_in, device_->record(lane_in, false));
  } else {
    for (const held& h : j.copies) wait_for(j.lane, *h.copy);
  }
  for (const held& h : j.copies)
    if (j.came_in && h.copy->lane != lane_in) wait_for(j.lane, *h.copy);
  const auto arguments = j.device.arguments();
  device_->launch(j.lane, known->second, j.device.shape(text), arguments);
  const bool goes_out =
      std::any_of(j.parts.begin(), j.parts.end(), [](const part& p) { return p.goes_out && p.memory; });
  if (!goes_out) {
    j.end = device_->record(j.lane, false);
    return;
  }
  device_->wait(lane_out, j.lane, device_->record(j.lane, false));
  for (part& p : j.parts) {
    if (!p.goes_out || !p.memory) continue;
    const access& x = t.accesses[p.access];
    if (x.mode != access_mode::write)
      p.staged = j.buffers.take(static_cast<std::size_t>(p.where.volume()) * x.array->spec.element);
    std::array<index_t, rank_max> count;
    for (int d = 0; d < rank_max; ++d) count[d] = p.where.size(d);
    const devices::strides packed = packed_strides(p.where);
    if (p.staged)
      device_->copy_out(lane_out, p.staged, packed, {p.memory, 0}, packed, count, x.array->spec.element);
    else
      device_->copy_out(lane_out, p.host.data, p.host.stride, {p.memory, 0}, packed, count, x.array->spec.element);
    bytes_.fetch_add(static_cast<std::uint64_t>(p.where.volume()) * x.array->spec.element, std::memory_order_relaxed);
  }
  j.lane = lane_out;
  j.end = device_->record(lane_out, false);
}

void actor::wait_for(int lane, const replica& r) {
  if (r.ready > lanes_[static_cast<std::size_t>(r.lane)].reached) device_->wait(lane, r.lane, r.ready);
}

void actor::finish(job& j) {
  if (j.leaving) {
    j.leaving->leaving = false;
    j.leaving->dirty = false;
  }
  task_record* const t = j.task;
  std::exception_ptr error = j.error;
  if (t && !is_internal(t->kind)) {
    try {
      if (error) {
        j.host.roll_back();
      } else {
        put_in_place(j);
        j.host.commit();
      }
    } catch (...) {
      error = std::current_exception();
    }
  }
  let_go(j, !error);
  const std::uint64_t begin = j.begin;
  if (t && t->kind == task_kind::transfer)
    t->measured_ns = std::max(1.0f, static_cast<float>(static_cast<double>(ticks() - begin) * tick_ns_));
  give_job(j);
  if (t) end_task(*t, error, begin);
}

void actor::put_in_place(job& j) {
  for (const part& p : j.parts) {
    if (!p.staged) continue;
    std::array<index_t, rank_max> count;
    for (int d = 0; d < rank_max; ++d) count[d] = p.where.size(d);
    link_.host->copy(p.host.data, p.host.stride, p.staged, packed_strides(p.where), count,
                     j.task->accesses[p.access].array->spec.element);
  }
}

// When the device began with it: it may have waited for the one before it on its lane. Those that are seen to have ended
// together share the time.
std::uint64_t actor::serve_time(const job& j, std::uint64_t now) const {
  const lane_state& l = lanes_[static_cast<std::size_t>(j.compute)];
  return now - (now - std::max(j.begin, l.last_end)) / static_cast<std::uint64_t>(std::max(l.ended, 1));
}

// Gives back what the task holds. `fine`: what it wrote is the newest version.
void actor::let_go(job& j, bool fine) {
  for (const held& h : j.copies) {
    replica& r = *h.copy;
    --r.pins;
    if (h.written && fine) {
      const tile_home& home = r.array->homes->tiles[r.tile];
      r.version = home.version.load(std::memory_order_relaxed) + 1;
      r.dirty = true;
    } else if (h.written && j.end != 0) {
      r.version = 0;  // half written
    } else if (r.version == 0 && r.pins == 0 && !r.dirty) {
      drop(r);  // never filled in
    }
  }
  j.copies.clear();
  for (const part& p : j.parts) {
    if (p.memory && device_) device_->deallocate(lane_in, p.memory);
    if (p.staged) j.buffers.give_back(p.staged);
  }
  j.parts.clear();
  j.leaving = nullptr;
}

void actor::end_task(task_record& t, std::exception_ptr error, std::uint64_t begin) {
  const std::uint64_t end = ticks();
  if (!is_internal(t.kind)) {
    tasks_.fetch_add(1, std::memory_order_relaxed);
    if (error) failed_.fetch_add(1, std::memory_order_relaxed);
    busy_ns_.fetch_add(static_cast<std::uint64_t>(static_cast<double>(end - begin) * tick_ns_),
                       std::memory_order_relaxed);
    t.measured_ns = std::max(1.0f, static_cast<float>(static_cast<double>(end - begin) * tick_ns_));
    if (error) t.error = task_error(t, options_.facts.name, 1, error);
    if (!t.body_gone) {
      t.ops->drop_body(t);
      t.body_gone = true;
    }
  } else {
    t.error = error;
  }
  if (lane_.on()) lane_.add(t.id, begin, end, logic::name_of(t).c_str());
  fulfil(t, board_);
  done_.push_back(&t);
}

// ---- transfers ------------------------------------------------------------------------------------------------------

actor::outcome actor::start_transfer(task_record& t) {
  const std::uint64_t begin = ticks();
  if (t.kind == task_kind::forget) return forget(t);
  const access& x = t.accesses[0];
  const bool discard = x.mode == access_mode::write;
  replica* r = cache_.find(x.array->id, x.tile);
  if (r && r->leaving) return outcome::no_room;  // it is on its way
  claim(t);
  if (!r || !r->dirty) {  // evicted before: the host's copy is current; or lost, which placement has been told
    end_task(t, nullptr, begin);
    return outcome::started;
  }
  if (discard) {
    r->dirty = false;
    r->version = 0;
    if (r->pins == 0) drop(*r);
    end_task(t, nullptr, begin);
    return outcome::started;
  }
  job& j = take_job();
  j.task = &t;
  j.begin = begin;
  try {
    send_home(*r, j);
  } catch (const error& e) {
    if (is_fatal(e)) throw;
    const std::exception_ptr why = std::current_exception();
    give_job(j);
    end_task(t, why, begin);
  }
  return outcome::started;
}

void actor::send_home(replica& r, job& j) {
  array_core& a = *r.array;
  const box4 b = a.tile_box(r.tile);
  std::byte* to = host_tile(link_, a, r.tile, true);
  wait_for(lane_out, r);
  std::array<index_t, rank_max> count;
  for (int d = 0; d < rank_max; ++d) count[d] = b.size(d);
  device_->copy_out(lane_out, to, host_strides(a, b), {r.memory, 0}, packed_strides(b), count, a.spec.element);
  bytes_.fetch_add(r.bytes, std::memory_order_relaxed);
  j.leaving = &r;
  j.lane = lane_out;
  j.end = device_->record(lane_out, false);
  r.leaving = true;
  r.lane = lane_out;
  r.ready = j.end;
}

// True if there is more room now, or soon: then try again.
bool actor::make_room() {
  replica* r = cache_.victim();
  if (!r) return false;
  if (!r->dirty) {
    drop(*r);
    return true;
  }
  job& j = take_job();
  j.begin = ticks();
  try {
    send_home(*r, j);
  } catch (...) {
    give_job(j);
    throw;
  }
  return false;
}

actor::outcome actor::forget(task_record& t) {
  const std::uint64_t id = t.accesses[0].array->id;
  bool leaving = false;
  cache_.each([&](const replica& r) {
    if (r.array_id != id) return;
    if (r.leaving)
      leaving = true;
    else
      drop(r);
  });
  if (leaving) return outcome::no_room;  // until then the array's memory must stay
  claim(t);
  end_task(t, nullptr, ticks());
  return outcome::started;
}

void actor::drop(const replica& r) {
  if (device_) device_->deallocate(lane_in, r.memory);
  cache_.erase(r);
}

// ---- trouble --------------------------------------------------------------------------------------------------------

void actor::complain_no_room(const job& j) const {
  std::uint64_t bytes = 0;
  const task_record& t = *j.task;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    const box4 b = !x.where                        ? x.array->tile_box(x.tile)
                   : x.mode == access_mode::reduce ? x.where->partials->where
                                                   : logic::view_box(*x.where);
    bytes += static_cast<std::uint64_t>(b.volume()) * x.array->spec.element;
  }
  throw error(errc::out_of_memory, options_.facts.name + ": the task needs " + std::to_string(bytes) +
                                       " bytes at once, the device has " + std::to_string(memory_bytes_) +
                                       "; use smaller tiles");
}

// The device can do no more, and its memory is gone. What was under way is placed again where that is harmless; data
// with a copy elsewhere is read from there. Then the device is opened anew, a few times.
void actor::fail_device(std::exception_ptr why) {
  device_.reset();  // from here on nothing touches the host's memory
  kernels_.clear();
  for (lane_state& l : lanes_) l = {};
  ++failures_;
  bool for_good = failures_ > restarts_max || stopping_.load();
  if (!for_good) {
    try {
      device_ = options_.open();
      device_->listen([this] { ring(); });
    } catch (...) {
      why = std::current_exception();
      for_good = true;
    }
  }
  if (for_good) broken_ = why;

  std::vector<std::pair<array_core*, std::uint32_t>> lost;
  cache_.each([&](const replica& r) {
    if (r.dirty) lost.emplace_back(r.array, r.tile);
  });
  if (!done_.empty()) placement_.report_done(done_, this);  // what they wrote is among what is lost
  done_.clear();
  placement_.report_failure(*this, lost, why, for_good);

  std::vector<task_record*> returned;
  while (!jobs_.empty()) {
    job& j = jobs_.front();
    task_record* const t = j.task;
    if (t && !is_internal(t->kind)) j.host.roll_back();
    j.copies.clear();
    for (const part& p : j.parts)
      if (p.staged) j.buffers.give_back(p.staged);
    j.parts.clear();
    j.leaving = nullptr;
    const std::uint64_t begin = j.begin;
    give_job(j);
    if (!t) continue;
    if (is_internal(t->kind)) {
      const access& x = t->accesses[0];
      end_task(*t,
               std::make_exception_ptr(error(
                   errc::data_lost, "array '" + x.array->spec.name + "', tile " + std::to_string(x.tile) +
                                        ": its only copy went with " + options_.facts.name + ": " + text_of(why))),
               begin);
    } else if (may_run_again(*t)) {
      t->phase.fetch_and(~phase_mask, std::memory_order_acq_rel);  // waiting again
      returned.push_back(t);
    } else {
      claim(*t);
      end_task(*t, why, begin);
    }
  }
  cache_.each([&](const replica& r) { cache_.erase(r); });
  {
    // What waits here was sent for data that was here.
    std::lock_guard hold(lock_);
    while (task_record* t = queue_.pop()) returned.push_back(t);
    queued_count_.store(0, std::memory_order_relaxed);
  }
  placement_.report_returned(returned);
}

// Whoever has been under way in several failures may be what causes them.
bool actor::may_run_again(task_record& t) {
  if (t.kernel->repeat == purity::once) return false;
  if (!t.extra) t.extra = new task_extra;
  return t.extra->attempt.fetch_add(1, std::memory_order_relaxed) < attempts_max;
}

actor::job& actor::take_job() {
  if (idle_jobs_.empty()) idle_jobs_.emplace_back(link_, options_.facts.name.c_str(), stopping_);
  jobs_.splice(jobs_.end(), idle_jobs_, idle_jobs_.begin());
  jobs_changed_ = true;
  job& j = jobs_.back();
  j.task = nullptr;
  j.leaving = nullptr;
  j.error = nullptr;
  j.end = 0;
  j.compute = lane_out;
  j.came_in = false;
  return j;
}

void actor::give_job(job& j) {
  const auto at = std::find_if(jobs_.begin(), jobs_.end(), [&](const job& x) { return &x == &j; });
  idle_jobs_.splice(idle_jobs_.end(), jobs_, at);
  jobs_changed_ = true;
}

}  // namespace

std::shared_ptr<gpu> make_gpu(gpu_options o, placement& p, wait_board& b, house_link& link) {
  auto device = o.open();
  return std::make_shared<actor>(std::move(o), std::move(device), p, b, link);
}

}  // namespace troupe::detail
