// What this file is for: what happens to records and arrays at the end of their lives.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/record_pool.hpp"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/reduction.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/destruction.hpp"

namespace troupe::detail {

void release(task_record*) noexcept;

task_record* take_record(runtime_state& rt) {
  task_record* t = rt.records.take();
  t->pending.store(1, std::memory_order_relaxed);  // its submission
  t->successor_count.store(0, std::memory_order_relaxed);
  t->more_successors = nullptr;
  t->id = 0;
  t->ahead = 0;
  t->executor = 0;
  t->marks = 0;
  t->ops = nullptr;
  t->kernel = nullptr;
  t->extra = nullptr;
  t->accesses = t->own_accesses.data();
  t->rt = &rt;
  t->access_count = 0;
  t->kind = task_kind::call;
  t->body_gone = false;
  t->measured_ns = 0;
  t->references.store(1, std::memory_order_relaxed);
  t->phase.store(phase_waiting, std::memory_order_relaxed);
  return t;
}

task_extra& extra_of(task_record& t) {
  if (!t.extra) t.extra = ::new (t.rt->extras.take()->bytes.data()) task_extra;
  return *t.extra;
}

void drop_extra(task_record& t) noexcept {
  task_extra* const e = std::exchange(t.extra, nullptr);
  if (!e) return;
  std::destroy_at(e);
  t.rt->extras.give(reinterpret_cast<extra_room*>(e));  // its first member
}

void size_accesses(task_record& t, std::size_t count) {
  if (count > 0xffff)
    throw error(errc::bad_argument,
                "a task touches at most 65535 arrays and futures, and here are " + std::to_string(count));
  if (count > access_block::room) {
    t.accesses = new access[count];
  } else {
    access_block* const block = t.rt->access_blocks.take();
    block->accesses.fill({});
    t.accesses = block->accesses.data();
  }
  t.own_accesses[0].tile = static_cast<std::uint32_t>(count);  // unused otherwise: tells where they are from
}

void destroy(array_core& a) noexcept {
  runtime_state& rt = *a.rt;
  delete a.open;
  free_host_tiles(rt, a);
  rt.arrays.fetch_sub(1, std::memory_order_relaxed);
  delete &a;
  rt.release();
}

void drop_inputs(task_record& t) noexcept {
  if (t.extra) {
    t.extra->stop_watch.reset();
    t.extra->payload.reset();
    t.extra->loans.clear();
    t.extra->home_boxes.clear();
  }
  if (t.ops && !t.body_gone) {
    const destruction here;
    try {
      t.ops->drop_body(t);
    } catch (...) {  // the body never ran: no error is reported
    }
  }
  t.body_gone = true;
  for (int i = 0; i < t.access_count; ++i) {
    access& x = t.accesses[i];
    if (!x.array) {
      if (x.task) release(x.task);
      x.task = nullptr;
    } else if (x.where) {
      t.rt->regions.give(x.where);
      x.where = nullptr;
    }
  }
  if (t.accesses != t.own_accesses.data()) {
    if (t.own_accesses[0].tile <= access_block::room)
      t.rt->access_blocks.give(reinterpret_cast<access_block*>(t.accesses));  // its first member
    else
      delete[] t.accesses;
    t.accesses = t.own_accesses.data();
  }
  t.access_count = 0;
}

void drop_result(task_record& t) noexcept {
  if (!t.ops) return;
  const destruction here;
  std::exchange(t.ops, nullptr)->drop_result(t);
}

void clear(task_record& t) noexcept {
  drop_inputs(t);
  drop_result(t);
  t.error = nullptr;
  drop_extra(t);
  t.sequence.release(0);
}

void recycle(task_record* t) noexcept {
  runtime_state& rt = *t->rt;
  clear(*t);
  rt.records.give(t);
  // Futures that outlive the runtime hold the link by count; see engine.
  if (rt.the_engine.load(std::memory_order_acquire) == nullptr) rt.release();
}

}  // namespace troupe::detail
