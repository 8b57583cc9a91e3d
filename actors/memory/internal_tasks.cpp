// What this file is for: making the tasks that the runtime has for itself.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/internal_tasks.hpp"

#include <utility>

#include <troupe/detail/engine.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/home_box.hpp"
#include "actors/logic/data/reduction.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/peer_loan.hpp"

namespace troupe::detail {

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
  extra_of(*t).payload = std::make_shared<std::exception_ptr>(std::move(lost));
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
  extra_of(*t).loans.push_back(std::move(loan));
  return t;
}

task_record* make_fetch(runtime_state& rt, array_core& a, std::shared_ptr<home_box> box) {
  static constexpr task_ops ops = nothing_to_run("fetch", 0xfe7c);
  task_record* t = make_internal(rt, ops, task_kind::fetch, a, box->tile, access_mode::read);
  extra_of(*t).home_boxes.push_back(std::move(box));
  return t;
}

namespace {
// Has the task's access, which is one of the first tile, cover the whole array.
void cover_all(runtime_state& rt, task_record& t) {
  const array_core& a = *t.accesses[0].array;
  if (a.tile_count == 1 && !a.whole_box().empty()) return;
  region* where = rt.regions.take();
  *where = {};
  where->hi = a.spec.size;
  where->limit_hi = a.spec.size;
  where->edge = border::refuse;
  t.accesses[0].where = where;
}
}  // namespace

task_record* make_look(runtime_state& rt, array_core& a) {
  static constexpr task_ops ops = nothing_to_run("look at borrowed memory", 0x100c);
  task_record* t = make_internal(rt, ops, task_kind::join, a, 0, access_mode::read);
  cover_all(rt, *t);
  return t;
}

task_record* make_farewell(runtime_state& rt, array_core& a) {
  static constexpr task_ops ops = nothing_to_run("end of borrowed memory", 0xfa4e);
  // A write comes after all other accesses, whether their tasks failed or not.
  task_record* t = make_internal(rt, ops, task_kind::farewell, a, 0, access_mode::write);
  cover_all(rt, *t);
  return t;
}

task_record* make_gate(runtime_state& rt) {
  task_record* t = take_record(rt);
  t->kind = task_kind::gate;
  t->body_gone = true;
  return t;
}

}  // namespace troupe::detail
