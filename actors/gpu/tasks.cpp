// What this file is for: tasks on a device: what is started, on which lane, and what happens when it ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/actor.hpp"

#include <algorithm>

#include "actors/execution/task_errors.hpp"
#include "actors/gpu/boxes.hpp"
#include "actors/logic/data/home_box.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/chaining.hpp"

namespace troupe::detail {

using logic::replica;

namespace {
// A task that takes longer has a ticket of its own: a thread that waits for it need not wait for those behind it.
constexpr float own_ticket_ns = 20'000.0f;
// So many small ones share a ticket: those behind them are under way while more are enqueued.
constexpr int shared_ticket_max = 16;
}  // namespace

// ---- the end of tasks -----------------------------------------------------------------------------------------------

// True if the end of the job may take placement's turn: its task goes to others, or has lost what it changed with the
// device that lent it. A thread that drives the device for a moment may hold that turn already, and leaves the job to
// the device's own thread.
bool gpu_actor::is_for_own_thread(const job& j) { return j.failure.refused || !j.loans.empty(); }

// True if the device has completed the job, and this thread may end it.
bool gpu_actor::may_end(const job& j) const {
  return lanes_.has_reached(j.route.lane, j.route.end) && !(driven_by_this_thread_ == this && is_for_own_thread(j));
}

// Ends the jobs that the device has completed since the last look. Throws the device's errors.
bool gpu_actor::collect() {
  if (jobs_.empty()) return false;
  for (int l = 0; l < lanes_.size(); ++l)
    if (lanes_.is_behind(l)) lanes_.look(l);
  clocks_.begin_look();
  learn_link();
  bool any = false;
  for (job& j : jobs_) {
    note_bytes_in(j);
    if (!may_end(j)) continue;
    clocks_.count(j.route.compute);
    any = true;
  }
  if (any) {
    const std::uint64_t now = ticks();
    for (auto j = jobs_.begin(); j != jobs_.end();) {
      job& one = *j++;
      if (!may_end(one)) continue;
      one.begin = clocks_.served(one.route.compute, one.begin, now);
      finish(one);
    }
    clocks_.end_look(now);
  }
  if (time_.has_limit() && !jobs_.empty()) check_deadline();
  return any;
}

// Times how long the job has waited for bytes, once they are here; not for its kernel, which may have been compiled
// meanwhile. A job that is seen to have ended at the same look has waited until then at most.
void gpu_actor::note_bytes_in(job& j) const {
  if (j.route.all_in == 0 || !(lanes_.has_reached(lane_in, j.route.all_in) || may_end(j))) return;
  j.route.all_in = 0;
  if (!j.task || !j.task->extra) return;
  const std::uint64_t since = ticks() - j.begin;
  j.task->extra->data_wait_ns += static_cast<float>(time_.ns_of(since - std::min(since, j.route.launching)));
}

// Reports how long copies in took, if their end was seen as it happened.
void gpu_actor::learn_link() {
  const bool seen = clocks_.was_awake();
  memory_.each_arrival([&](memory_space from, std::uint64_t bytes, std::uint64_t number, std::uint64_t begun) {
    const std::uint64_t now = ticks(), since = clocks_.began(lane_in, begun);
    clocks_.ended(lane_in, now);
    if (from != host_space) trace_peers(from, since, now);
    if (seen)
      placement_.report_transfer(from, options_.facts.space, bytes / number,
                                 static_cast<float>(time_.ns_of((now - since) / number)));
  });
}

// Throws if the task that began first has passed its deadline.
void gpu_actor::check_deadline() {
  const job& j = jobs_.front();
  if (!time_.is_over_limit(clocks_.began(j.route.compute, j.begin), ticks())) return;
  device_->give_up();
  throw error(errc::device_failed,
              options_.facts.name + ": a task did not end within " + std::to_string(time_.limit().count()) + " ms");
}

void gpu_actor::finish(job& j) {
  if (j.leaving.copy) memory_.note_sent_home(j);
  task_record* const t = j.task;
  look_for_complaints(j);
  if (!gpu_memory::settle_loans(j)) return run_again(j);
  if (j.failure.spoiled) return give_up_result(j);
  if (j.failure.refused) return pass_on(j);
  if (t && !is_internal(t->kind)) {
    try {
      if (j.failure.error) {
        j.host.roll_back();
      } else {
        memory_.put_in_place(j);
        j.host.commit();
      }
    } catch (...) {
      ++failure_epoch_;
      j.failure.error = std::current_exception();
    }
  }
  memory_.let_go(j);
  const std::uint64_t begin = j.begin;
  const std::exception_ptr error = j.failure.error;
  const int attempts = t && !is_internal(t->kind) ? j.device.attempt() : 1;
  const std::optional<errc> code = j.failure.by_body;
  if (t && t->kind == task_kind::fetch) t->extra->home_boxes.front()->here = !error;
  if (t && (t->kind == task_kind::transfer || t->kind == task_kind::fetch))
    t->measured_ns = std::max(1.0f, static_cast<float>(time_.ns_of(ticks() - begin)));
  jobs_.give(j);
  if (t) end_task(*t, error, begin, attempts, code);
}

// A kernel went outside of its arrays, or read what such a kernel has written, which is known only now.
void gpu_actor::look_for_complaints(job& j) {
  if (j.launches.last < j.launches.first) return;
  std::exception_ptr why;
  if (j.launches.of_calls)
    why = complaint_of_call(j);
  else if (const std::string said = device_->complaint(j.launches.first, j.launches.last); !said.empty())
    why = std::make_exception_ptr(error(errc::out_of_bounds, said));
  if (j.failure.error || (!why && !j.failure.spoiled)) return;
  ++failure_epoch_;
  j.failure.error =
      j.failure.spoiled
          ? std::make_exception_ptr(error(errc::dependency_failed, "it read what a task that failed has written"))
          : why;
  spoil_readers(j);
}

// Tasks that are enqueued behind the one that failed are of no use where they read what it has written. Each of them
// looks again at its own end: until then placement takes it for one that will end well, and sends others behind it.
void gpu_actor::spoil_readers(const job& failed) {
  std::vector<const replica*> spoiled;
  const auto spoil = [&](const job& by) {
    for (const job::held& h : by.copies)
      if (h.written) spoiled.push_back(h.copy);
  };
  spoil(failed);
  for (job& one : jobs_.after(failed)) {
    if (!one.task || !one.launched) continue;
    for (const job::held& h : one.copies) {
      const auto at = std::ranges::find(spoiled, h.copy);
      if (at == spoiled.end()) continue;
      const access_mode mode =
          h.access < one.task->access_count ? one.task->accesses[h.access].mode : access_mode::read;
      if (mode == access_mode::write && h.whole)
        spoiled.erase(at);
      else
        one.failure.spoiled = true;
    }
    if (one.failure.spoiled) spoil(one);
  }
}

// Returns a task whose predecessor has failed: placement fails it.
void gpu_actor::give_up_result(job& j) {
  task_record* const t = j.task;
  j.host.roll_back();
  memory_.let_go(j);
  jobs_.give(j);
  t->phase.fetch_and(~(phase_mask | epoch_mask), std::memory_order_acq_rel);  // waiting again
  placement_.report_returned({&t, 1});
}

// Returns a task whose data does not fit here, before it begins: other executors may have room.
void gpu_actor::hand_back(task_record& t, std::exception_ptr why) {
  ++failure_epoch_;
  return_refused(t, std::move(why));
}

// Placement gives it to others, or to nobody.
void gpu_actor::pass_on(job& j) {
  task_record* const t = j.task;
  const std::string cause = text_of(j.failure.error);
  const std::exception_ptr why =
      task_error(*t, options_.facts.name, 0, std::exchange(j.failure.error, nullptr), errc::no_executor);
  j.host.roll_back();
  memory_.let_go(j);
  jobs_.give(j);
  if (kernels_.note_unfit(*t->kernel))
    placement_.remark("kernel '" + std::string(t->kernel->name) + "' cannot run on " + options_.facts.name +
                      " as it was called: " + cause + "; such calls go elsewhere if others may run them");
  t->phase.fetch_and(~(phase_mask | epoch_mask), std::memory_order_acq_rel);  // waiting again
  return_refused(*t, why);
}

// ---- starting them --------------------------------------------------------------------------------------------------

bool gpu_actor::start_some(bool small_only) {
  bool any = false;
  while (mail_.queued() != 0 && jobs_.has_room()) {
    task_record* const t = mail_.pop();
    if (!t) break;
    if ((!small_only || is_small(*t)) && start_task(*t) == outcome::started) {
      any = true;
      if (memory_.fills_up()) mail_.look_ahead();
      continue;
    }
    mail_.put_back(*t);
    break;
  }
  if (looks_ahead() && jobs_.empty() && mail_.rest()) jobs_.end_evicting();
  return any;
}

// Reserves memory for all that a task touches, and evicts for it. Returns what became of the task if it cannot start
// now; then its job has been given back.
std::optional<gpu_actor::outcome> gpu_actor::reserve_room(job& j, task_record& t) {
  const std::uint64_t begin = j.begin;
  try {
    while (!memory_.reserve(j)) {
      if (make_room(t)) continue;
      const bool unaccounted = memory_.has_unaccounted();
      if (jobs_.size() > 1 || unaccounted) {  // what is under way will end and leave room
        j.task = nullptr;
        jobs_.give(j);
        if (unaccounted) watchers_.ask_for_nap();  // nobody rings when placement has caught up
        return outcome::no_room;
      }
      // Nothing is left that could go, so the host has all there is. Tiles that boxes come from take more than boxes
      // do.
      if (std::exchange(j.from_host, true)) complain_no_room(j);
    }
  } catch (const error& e) {
    if (is_fatal(e)) throw;
    const std::exception_ptr why = std::current_exception();
    memory_.let_go(j);
    jobs_.give(j);
    if (e.code() == errc::out_of_memory && t.kind == task_kind::call) {
      hand_back(t, task_error(t, options_.facts.name, 0, why, errc::out_of_memory));
    } else if (claim(t)) {
      ++failure_epoch_;
      end_task(t, why, begin);
    } else {
      end_cancelled(t);
    }
    return outcome::started;
  }
  return {};
}

gpu_actor::outcome gpu_actor::start_task(task_record& t) {
  const std::uint32_t phase = t.phase.load(std::memory_order_acquire);
  if ((phase & phase_mask) != phase_waiting) {
    end_cancelled(t);
    return outcome::started;
  }
  if (is_past_deadline(t, ticks())) {
    if (claim(t)) {
      ++failure_epoch_;
      end_task(t, stopped_error(t, ""), ticks());
    } else {
      end_cancelled(t);
    }
    return outcome::started;
  }
  // A task that was sent ahead of its time goes back: what it comes after may not have been run well.
  if (repair_.is_given_up() || (is_chained(phase) && epoch_of(phase) != epoch_mark(failure_epoch_))) {
    give_back(t);
    return outcome::started;
  }
  const std::uint64_t begin = ticks();
  job& j = jobs_.take();
  j.task = &t;
  j.begin = begin;
  if (const auto over = reserve_room(j, t)) return *over;
  if (!gpu_memory::begin_loans(j)) {
    memory_.let_go(j);
    j.task = nullptr;
    jobs_.give(j);
    give_back(t);
    return outcome::started;
  }
  if (!gpu_memory::may_start(j)) {
    memory_.let_go(j);
    j.task = nullptr;
    jobs_.give(j);
    return outcome::no_room;
  }
  if (!claim(t)) {
    memory_.let_go(j);
    jobs_.give(j);
    end_cancelled(t);
    return outcome::started;
  }
  jobs_.count(j);
  if (is_chained(phase)) gpu_counters::add(counters_.chained);
  if (driven_by_this_thread_ == this) gpu_counters::add(counters_.by_waiters);
  enqueue(j);
  return outcome::started;
}

void gpu_actor::enqueue(job& j) {
  j.route.lane = j.route.compute = lane_for(j);
  j.launches.first = device_->launched() + 1;
  try {
    memory_.fill_in(j);
    const std::uint64_t begin = j.route.all_in != 0 ? ticks() : 0;
    launch(j);
    if (begin != 0) j.route.launching = ticks() - begin;
  } catch (const devices::cannot_run&) {
    j.failure.error = std::current_exception();
    j.failure.refused = j.task->kind == task_kind::call;  // of a graph's calls some may have run
  } catch (const error& e) {
    if (is_fatal(e)) throw;
    j.failure.error = std::current_exception();
  } catch (...) {
    j.failure.error = std::current_exception();
  }
  if (j.launches.last == 0) j.launches.last = device_->launched();
  if (j.failure.error) {
    // All work enqueued for the job by now must have passed before its memory is released.
    ++failure_epoch_;
    for (const int lane : {lane_in, lane_out}) lanes_.wait(j.route.lane, lane, lanes_.promise(lane));
    j.route.end = lanes_.promise(j.route.lane);
  } else if (j.task->predicted_ns > own_ticket_ns || lanes_.owed(j.route.lane) >= shared_ticket_max) {
    lanes_.keep_promise(j.route.lane);
  }
}

// Behind what writes what it reads, if that is still under way; else the next in turn.
int gpu_actor::lane_for(const job& j) {
  int best = 0;
  for (const job::held& h : j.copies) {
    const replica::use& u = h.copy->ready;
    if (u.lane >= gpu_copy_lanes && !lanes_.has_reached(u.lane, u.until)) best = u.lane;
  }
  if (best != 0) return best;
  return jobs_.next_lane(j.task->predicted_ns > own_ticket_ns);
}

void gpu_actor::launch(job& j) {
  const task_record& t = *j.task;
  if (t.kind == task_kind::graph_run)
    launch_graph(j);
  else if (const routine_fn routine = t.kernel->routines[static_cast<std::size_t>(options_.facts.kind)])
    call_routine(j, routine);
  else
    launch_text(*j.task, j.device, j.route.lane);
  memory_.note_launched(j);
  if (memory_.send_out(j)) j.route.lane = lane_out;
  j.route.end = lanes_.promise(j.route.lane);
}

void gpu_actor::call_routine(job& j, routine_fn routine) {
  struct call final : device_call {
    call(gpu_actor& a, job& of) : at(a), one(of) {}
    device_kind kind() const override { return at.options_.facts.kind; }
    int device() const override { return at.device_->facts().index; }
    void* lane() const override { return at.device_->native_lane(one.route.lane); }
    void* scratch(std::size_t bytes) override {
      if (bytes == 0) return nullptr;
      if (void* memory = at.memory_.scratch(one, bytes)) return memory;
      failure = errc::out_of_memory;
      throw error(failure, at.options_.facts.name + ": no room for " + std::to_string(bytes) +
                               " bytes that a routine needs beside its arguments");
    }
    bool stop_requested() const override { return one.device.stop_requested(); }
    std::shared_ptr<void>& slot(const void* key) override { return at.kernels_.handle(key); }
    gpu_actor& at;
    job& one;
    errc failure = errc::task_failed;  // of a body that throws
  };
  call c(*this, j);
  const int retries = j.task->extra ? j.task->extra->options.retries : 0;
  if (retries > 0) memory_.keep_updates(j);
  for (;;) {
    try {
      (void)c.lane();  // makes its device the thread's current one
      j.device.use(routine, c);
      j.task->ops->run(*j.task, j.device);
      return;
    } catch (const error& e) {
      if (is_fatal(e)) throw;
      if (j.device.attempt() > retries || j.device.stop_requested()) {
        j.failure.by_body = c.failure;
        throw;
      }
    } catch (...) {
      if (j.device.attempt() > retries || j.device.stop_requested()) {
        j.failure.by_body = c.failure;
        throw;
      }
    }
    c.failure = errc::task_failed;
    memory_.put_updates_back(j);
    j.device.next_attempt();
    if (j.task->extra->listener) j.task->extra->listener->tried(*j.task);
  }
}

// Placement decides anew.
void gpu_actor::give_back(task_record& t) {
  ++failure_epoch_;
  task_record* const back = &t;
  placement_.report_returned({&back, 1});
}

void gpu_actor::complain_no_room(const job& j) const {
  throw error(errc::out_of_memory,
              options_.facts.name + ": the task needs " + std::to_string(gpu_memory::bytes_of(*j.task)) +
                  " bytes at once, the device has " + std::to_string(memory_.bytes()) +
                  (j.task->kind == task_kind::graph_run ? "; the run of a graph has all of its tiles there"
                                                        : "; use smaller tiles"));
}

// A kernel that has been compiled, on tiles that are there: no copies, no code of the user's.
bool gpu_actor::is_small(const task_record& t) {
  if (t.kind != task_kind::call || t.kernel->routines[static_cast<std::size_t>(options_.facts.kind)] ||
      !kernels_.contains(*t.kernel) || (t.extra && !t.extra->loans.empty()))
    return false;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    if (x.where) return false;
    const logic::replica* const r = memory_.find(*x.array, x.tile);
    if (!r || r->loan || (x.mode != access_mode::write && !r->is_current(known_version(*x.array, x.tile))))
      return false;
  }
  return true;
}

}  // namespace troupe::detail
