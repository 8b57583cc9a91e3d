// What this file is for: what happens to records and arrays at the end of their lives.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/record_pool.hpp"

#include <string>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/logic/data/home_box.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/protocol/peer_loan.hpp"

#include "actors/logic/data/array_core.hpp"

namespace troupe::detail {

void release(task_record*) noexcept;

task_record* take_record(runtime_state& rt) {
  task_record* t = rt.records.take();
  t->pending = 1;  // its submission
  t->successor_count = 0;
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

task_record* make_combine(runtime_state& rt, array_core& a, reduction& r) {
  static constexpr task_ops ops{nullptr, [](task_record&) noexcept {}, [](task_record&) noexcept {},
                                [](task_record&) noexcept -> void* { return nullptr; },
                                kernel_info{.name = "combine reduction", .key = 0x5e771e}};
  task_record* t = take_record(rt);
  t->ops = &ops;
  t->kernel = &ops.closure;
  t->kind = task_kind::combine;
  t->access_count = 1;
  access& x = t->accesses[0];
  x = {};
  x.array = &a;
  x.mode = access_mode::update;
  region* where = rt.regions.take();
  *where = {};
  where->lo = r.where.lo;
  where->hi = r.where.hi;
  where->limit_lo = r.where.lo;
  where->limit_hi = r.where.hi;
  where->edge = border::refuse;
  where->fill = r.identity;
  where->combiner = r.combiner;
  where->partials = &r;
  x.where = where;
  return t;
}

namespace {
task_record* make_internal(runtime_state& rt, const task_ops& ops, task_kind kind, array_core& a, std::uint32_t tile,
                           access_mode mode) {
  task_record* t = take_record(rt);
  t->ops = &ops;
  t->kernel = &ops.closure;
  t->kind = kind;
  t->access_count = 1;
  access& x = t->accesses[0];
  x = {};
  x.array = &a;
  x.tile = tile;
  x.mode = mode;
  return t;
}
constexpr task_ops nothing_to_run(const char* name, std::uint64_t key) {
  return {nullptr, [](task_record&) noexcept {}, [](task_record&) noexcept {},
          [](task_record&) noexcept -> void* { return nullptr; }, kernel_info{.name = name, .key = key, .kinds = 0}};
}
}  // namespace

task_record* make_transfer(runtime_state& rt, array_core& a, std::uint32_t tile, bool discard) {
  static constexpr task_ops ops = nothing_to_run("transfer", 0x7a45);
  return make_internal(rt, ops, task_kind::transfer, a, tile, discard ? access_mode::write : access_mode::read);
}

task_record* make_rescue(runtime_state& rt, array_core& a, std::uint32_t tile, std::exception_ptr lost) {
  static constexpr task_ops ops = nothing_to_run("rescue", 0x4e5c);
  task_record* t = make_internal(rt, ops, task_kind::transfer, a, tile, access_mode::update);
  t->extra = new task_extra;
  t->extra->payload = std::make_shared<std::exception_ptr>(std::move(lost));
  return t;
}

task_record* make_spill(runtime_state& rt, array_core& a, std::uint32_t tile) {
  static constexpr task_ops ops = nothing_to_run("spill", 0x5b11);
  return make_internal(rt, ops, task_kind::spill, a, tile, access_mode::read);
}

task_record* make_load(runtime_state& rt, array_core& a, std::uint32_t tile) {
  static constexpr task_ops ops = nothing_to_run("load", 0x10ad);
  return make_internal(rt, ops, task_kind::load, a, tile, access_mode::write);
}

task_record* make_forget(runtime_state& rt, array_core& a) {
  static constexpr task_ops ops = nothing_to_run("forget", 0xf0a6);
  return make_internal(rt, ops, task_kind::forget, a, 0, access_mode::read);
}

task_record* make_lend(runtime_state& rt, std::shared_ptr<peer_loan> loan) {
  static constexpr task_ops ops = nothing_to_run("lend", 0x1e4d);
  task_record* t = make_internal(rt, ops, task_kind::lend, *loan->array, loan->tile, access_mode::read);
  t->extra = new task_extra;
  t->extra->loans.push_back(std::move(loan));
  return t;
}

task_record* make_fetch(runtime_state& rt, array_core& a, std::shared_ptr<home_box> box) {
  static constexpr task_ops ops = nothing_to_run("fetch", 0xfe7c);
  task_record* t = make_internal(rt, ops, task_kind::fetch, a, box->tile, access_mode::read);
  t->extra = new task_extra;
  t->extra->home_boxes.push_back(std::move(box));
  return t;
}

task_record* make_farewell(runtime_state& rt, array_core& a) {
  static constexpr task_ops ops = nothing_to_run("end of borrowed memory", 0xfa4e);
  // A write comes after all other accesses, whether their tasks failed or not.
  task_record* t = make_internal(rt, ops, task_kind::farewell, a, 0, access_mode::write);
  if (a.tile_count == 1 && !a.whole_box().empty()) return t;
  region* where = rt.regions.take();
  *where = {};
  where->hi = a.spec.size;
  where->limit_hi = a.spec.size;
  where->edge = border::refuse;
  t->accesses[0].where = where;
  return t;
}

void destroy(array_core& a) noexcept {
  runtime_state& rt = *a.rt;
  delete a.open;
  std::size_t bytes = 0;
  if (!a.spec.adopted) {
    for (std::uint32_t t = 0; t < a.tile_count; ++t) {
      std::byte* data = a.bytes[t].data.load(std::memory_order_acquire);
      if (!data) continue;
      const std::size_t size = static_cast<std::size_t>(a.tile_box(t).volume()) * a.spec.element;
      give_back_bytes(rt, data, size);
      bytes += size;
    }
  }
  rt.array_bytes.fetch_sub(bytes, std::memory_order_relaxed);
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

void recycle(task_record* t) noexcept {
  runtime_state& rt = *t->rt;
  drop_inputs(*t);
  if (t->ops) t->ops->drop_result(*t);
  t->ops = nullptr;
  t->error = nullptr;
  delete t->extra;
  t->extra = nullptr;
  t->sequence = 0;
  rt.records.give(t);
  // Futures that outlive the runtime hold the link by count; see engine.
  if (rt.the_engine.load(std::memory_order_acquire) == nullptr) rt.release();
}

}  // namespace troupe::detail
