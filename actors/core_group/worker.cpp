// What this file is for: running bodies: claim, time, commit or roll back, retry, fulfil.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/worker.hpp"

#include <cxxabi.h>

#include <algorithm>

#include "actors/core_group/core_group.hpp"
#include "actors/execution/graph_part.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/execution/written_copies.hpp"
#include "actors/logic/scheduling/resources.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::detail {

namespace {
// Bodies that are predicted to take this long are always timed.
constexpr float always_timed_ns = 1'000.0f;
// True if a prediction was wrong, and not by what is done beside a body.
bool is_surprise(float predicted_ns, float took_ns) { return took_ns > 5'000.0f + 4.0f * predicted_ns; }

template <class T>
void bump(std::atomic<T>& counter, T by) {  // one writer
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// True if the body is to be timed: of the shortest, one in eight is, as reading the clock would cost more than they do.
inline bool is_timed(const task_record& t, logic::sampling& some) {
  return t.predicted_ns < 1.0f || t.predicted_ns >= always_timed_ns || some.next();
}

std::exception_ptr thread_ended(const task_record& t, const std::string& executor, int attempt) {
  return task_error(
      t, executor, attempt,
      std::make_exception_ptr(error(errc::task_failed, "the body ended its thread; it is to return or throw")));
}
}  // namespace

// Adds a context for a deeper body. Not inlined, so that `enter` is a few instructions.
[[gnu::noinline]] void worker::add_level() {
  bodies_.emplace_back();
  contexts_.push_back(
      std::make_unique<run_context>(at_.host, at_.rt, buffers_, at_.executor.c_str(), at_.stopping, context()));
  contexts_.back()->use_rooms();
}

inline run_context& worker::enter(task_record& t, standing body, task_record* run) {
  if (static_cast<std::size_t>(depth_) == contexts_.size()) add_level();
  bodies_[static_cast<std::size_t>(depth_)] = body;
  in_use_.store(body.slots, std::memory_order_relaxed);
  run_context& c = *contexts_[static_cast<std::size_t>(depth_++)];
  c.bind(t, run);
  return c;
}

void worker::show_slots(bool held) {
  const standing b = held && depth_ != 0 ? body() : standing{0};
  in_use_.store(held && depth_ != 0 ? b.slots : 0, std::memory_order_relaxed);
  holds_.slots.store(b.since != 0 ? b.slots : 0, std::memory_order_relaxed);
  holds_.since.store(b.since, std::memory_order_relaxed);
  holds_.predicted_ns.store(b.predicted_ns, std::memory_order_relaxed);
  holds_.early.store(b.early, std::memory_order_relaxed);
}

inline void worker::count(run_context& c, outcome o) {
  bump(counts_.tasks, static_cast<std::uint64_t>(o.bodies));
  if (const int threw = o.bodies - (o.fine ? 1 : 0); threw != 0)
    bump(counts_.failed, static_cast<std::uint64_t>(threw));
  if (const std::uint64_t moved = c.take_bytes_moved()) bump(counts_.bytes, moved);
}

// Adds the bodies that have run to the task's count, where there is a listener.
inline worker::outcome worker::note_bodies(task_record& t, outcome o) {
  if (t.extra && t.extra->listener) t.extra->bodies += o.bodies;
  return o;
}

bool worker::compare(float predicted_ns, float took_ns) {
  const bool surprise = is_surprise(predicted_ns, took_ns);
  if (surprise) timed_.suspect();
  return surprise;
}

bool worker::run(task_record& t) {
  const bool timed = is_timed(t, timed_) || lane.on();
  const std::uint64_t begin = timed ? ticks() : 0;
  run_context& c = enter(t, {logic::slots_needed(t), t.predicted_ns, begin, (t.marks & mark_early) != 0});
  const run_context* outer = running_.load(std::memory_order_relaxed);
  // The task is listed as running before it is claimed, and the runtime's end is looked for afterwards: a thread that
  // ends all tasks, and then lists those that run, misses none whose body begins.
  running_.store(&c, std::memory_order_release);
  const auto end_body = [&] {
    running_.store(outer, std::memory_order_release);
    leave();
  };
  if (!claim(t)) {  // cancelled meanwhile
    end_body();
    await_fulfilled(t);
    return false;
  }
  if (at_.ended.load(std::memory_order_seq_cst)) {
    end_body();
    at_.owner->refuse_claimed(t);
    return false;
  }
  if (timed) show_slots(true);
  const auto finish = [&](outcome o) __attribute__((always_inline)) {
    const std::uint64_t end =
        timed ? ticks() : static_cast<std::uint64_t>(static_cast<double>(t.predicted_ns) / at_.tick_ns);
    // The captures are destroyed before the task counts as done: a waiter may rely on that. Their destructors are
    // inside the task, and may wait as its body may.
    if (t.kind == task_kind::call && !t.body_gone) drop_body(t, at_.executor);
    end_body();
    if (timed) show_slots(depth_ != 0);
    count(c, o);
    bump(counts_.busy_ticks, end - begin);
    if (timed) {
      t.measured_ns = std::max(1.0f, static_cast<float>(static_cast<double>(end - begin) * at_.tick_ns));
      if (is_surprise(t.predicted_ns, t.measured_ns)) timed_.confirm();
    }
    if (lane.on()) lane.add(t.id, begin, end, name_of(t).c_str());
    const bool fine = o.fine && !t.error;  // a destructor may have thrown
    return fulfil(t, at_.board) && fine;
  };
  outcome end_of_body;
  try {
    end_of_body = run_body(c, t);
  } catch (...) {  // the thread ends, and every body on its stack with it
    if (!t.error) t.error = thread_ended(t, at_.executor, 1);
    finish(note_bodies(t, {}));
    at_.owner->report_last(*this, t);
    throw;
  }
  return finish(end_of_body);
}

bool worker::run_node(graph_run& g, std::uint32_t n) {
  replay_node& node = g.graph.nodes[n];
  if (node.poisoned.load(std::memory_order_acquire)) {
    if (g.graph.part) g.graph.part->left_out(n);
    return false;
  }
  task_record& t = *node.task;
  run_context& c = enter(t, {}, g.task);
  const std::uint64_t begin = lane.on() ? ticks() : 0;
  t.error = nullptr;
  outcome end_of_body;
  try {
    end_of_body = run_body(c, t);
  } catch (...) {
    g.fail(t.error);
    leave();
    count(c, {});
    throw;
  }
  if (!end_of_body.fine) {
    g.fail(t.error);
    if (g.graph.part) g.graph.part->left_out(n);
  }
  leave();
  if (begin) lane.add(t.id, begin, ticks(), name_of(t).c_str());
  count(c, end_of_body);
  return end_of_body.fine;
}

worker::outcome worker::run_body(run_context& c, task_record& t) {
  if (t.kind == task_kind::graph_run) {
    t.error = at_.owner->run_graph(*this, t);
    return note_bodies(t, {!t.error, 1});
  }
  if (t.extra && t.extra->watched) t.extra->listener->began(t);
  const int tries = 1 + (t.extra ? std::max(0, t.extra->options.retries) : 0);
  for (int attempt = 1;; ++attempt) {
    bool by_body = false;
    try {
      if (t.extra && (t.extra->options.stop.stop_requested() || is_past_deadline(t, t.extra->due != 0 ? ticks() : 0))) {
        t.error = stopped_error(t, at_.executor);
        return note_bodies(t, {false, attempt - 1});
      }
      if (t.kind == task_kind::combine) {
        combine_partials(t, at_.host, c);
      } else {
        by_body = true;
        t.ops->run(t, c);
        by_body = false;
      }
      c.commit();
      if (t.extra && !t.extra->written.empty()) make_written_copies(at_.rt, t);
      return note_bodies(t, {true, attempt});
    } catch (const abi::__forced_unwind&) {  // by pthread_exit: cannot be held up
      c.roll_back();
      t.error = thread_ended(t, at_.executor, attempt);
      throw;
    } catch (...) {
      c.roll_back();
      if (attempt < tries && !c.stop_requested()) {
        c.next_attempt();
        if (t.extra->listener) t.extra->listener->tried(t);
        continue;
      }
      const std::exception_ptr why = std::current_exception();
      t.error = task_error(t, at_.executor, attempt, why, by_body ? c.failure() : failure_code(why));
      return note_bodies(t, {false, attempt});
    }
  }
}

}  // namespace troupe::detail
