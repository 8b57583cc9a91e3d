// What this file is for: task records from the caller's side: taking, filling, submitting, giving back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <new>
#include <span>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/execution/graph_run.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/destruction.hpp"
#include "actors/protocol/successors.hpp"
#include "actors/protocol/task_name.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

task_record* new_task(engine& the_engine) try {
  task_record* t = take_record(the_engine.state());
  t->references.store(2, std::memory_order_relaxed);
  return t;
} catch (const std::bad_alloc&) {
  throw_no_memory();
}

namespace {
void check_belongs(target to, const task_record& t) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (x.array) continue;  // checked when the access was filled in
    if (x.task->rt != t.rt)
      throw error(errc::bad_argument, "a future that the call waits for belongs to another runtime");
    if (is_recorded(x.task->kind) != (to.recorded != nullptr))
      throw error(errc::bad_argument, to.recorded ? "a recorded call can only wait for calls of the same recording"
                                                  : "the future stands for a recorded call: run the graph instead");
  }
}

void check_size(target to, const task_record& t) {
  if (to.the_engine->placement_actor().limits_size()) to.the_engine->placement_actor().check_size(t);
}

void put_on(recording& recorded, task_record* t) {
  // Keeps the arrays: the caller may drop its handles before the recording ends.
  for (int i = 0; i < t->access_count; ++i)
    if (array_core* a = t->accesses[i].array; a && recorded.arrays.insert(a).second) retain(a);
  t->kind = t->kind == task_kind::join ? task_kind::recorded_join : task_kind::recorded;
  recorded.tasks.push_back(t);
}
}  // namespace

namespace {
bool is_never_held_back(target to) { return !to.waits || current_task() != nullptr || destruction::is_here(); }
}  // namespace

void submit(target to, task_record* t) {
  try {
    check_belongs(to, *t);
    if (to.recorded) {
      put_on(*to.recorded, t);
      return;
    }
    to.the_engine->placement_actor().check_open();
    check_size(to, *t);
  } catch (...) {
    discard(t);
    throw;
  }
  to.the_engine->placement_actor().submit(t, is_never_held_back(to));
}

bool wait_for_room(target to, std::chrono::steady_clock::time_point deadline) {
  return to.recorded || current_task() || destruction::is_here() ||
         to.the_engine->placement_actor().wait_for_room(deadline);
}

void submit_all(target to, std::span<task_record* const> chunks, task_record* join) {
  try {
    for (const task_record* t : chunks) check_belongs(to, *t);
    if (!to.recorded) to.the_engine->placement_actor().check_open();
    if (!to.recorded) {
      for (const task_record* t : chunks) check_size(to, *t);
      task_extra& all = extra_of(*join);
      all.chunks = chunks.size();
      all.chunks_at.resize(to.the_engine->placement_actor().facts().size());
      if (!chunks.empty()) all.options.name = name_of(*chunks.front());
    }
  } catch (...) {
    for (task_record* t : chunks) {
      discard(t);
      release(t);
    }
    discard(join);
    throw;
  }
  const bool inside = is_never_held_back(to);
  for (task_record* t : chunks) {
    if (to.recorded)
      put_on(*to.recorded, t);
    else
      to.the_engine->placement_actor().submit(t, inside);
    release(t);  // no future refers to a single chunk
  }
  if (to.recorded)
    put_on(*to.recorded, join);
  else
    to.the_engine->placement_actor().submit(join, inside);
}

namespace {
// Recycles a record; not in a child by fork, where the pools may be locked for ever.
void put_back(task_record* t) noexcept {
  if (t->rt->birth.is_here()) recycle(t);
}
}  // namespace

void discard(task_record* t) noexcept {
  // The task was never submitted: the runtime's reference is dropped; the caller's, if a future took it, follows.
  if (!t->ops) t->body_gone = true;
  if (t->references.fetch_sub(1, std::memory_order_acq_rel) == 1) put_back(t);
}

void retain(task_record* t) noexcept { t->references.fetch_add(1, std::memory_order_relaxed); }
void release(task_record* t) noexcept {
  if (t->references.fetch_sub(1, std::memory_order_acq_rel) == 1) put_back(t);
}

region* new_region(engine& the_engine) {
  region* r = the_engine.state().regions.take();
  r->combiner = nullptr;
  r->partials = nullptr;
  return r;
}

const kernel_info* intern(engine& the_engine, const kernel_info& k) { return the_engine.kernels().intern(k); }

void add_join_edge(task_record& chunk, task_record& join) {
  // Early, also of a chunk that is not: all of them count the join down, wherever they end. It has no accesses, so that
  // nobody else writes its count.
  chunk.successors[0] = successor{.task = &join, .data = true, .early = true}.edge();
  chunk.successor_count.store(1, std::memory_order_relaxed);
  chunk.marks |= mark_chunk;
  join.pending.store(join.pending.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

engine& engine_of(const task_record& t) {
  engine* the_engine = t.rt->the_engine.load(std::memory_order_acquire);
  if (!the_engine) throw error(errc::runtime_stopped, "the future's runtime is gone");
  the_engine->check_process();
  return *the_engine;
}

}  // namespace troupe::detail
