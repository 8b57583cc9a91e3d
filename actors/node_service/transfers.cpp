// What this file is for: steps that the other files share: host accesses for bytes, tasks and arrays let go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

const kernel_info access_kernel{.name = "access from another node", .key = 2};

void node_service_actor::check(const array_core& a, const wire::gap& g) {
  if (g.tile >= a.tile_count || g.where.empty() || !a.tile_box(g.tile).contains(g.where))
    refuse_peer("a box that is not in its tile");
  if (!g.bytes.empty() && g.bytes.size() != static_cast<std::uint64_t>(g.where.volume()) * a.spec.element)
    refuse_peer("a box with bytes of another size");
}

// Makes the host access of a transfer, which is submitted when the lock is released.
transfer& node_service_actor::begin(array_core& a, access_mode mode, const logic::box4& where,
                                    std::unique_ptr<transfer> x) {
  task_record* const t = new_task(engine_);
  t->kind = task_kind::host_access;
  t->kernel = &access_kernel;
  t->body_gone = true;
  try {
    describe(engine_, t->accesses[0], a, mode, where.lo, where.hi, {}, a.spec.size, border::refuse, nullptr, 0,
             nullptr);
    t->access_count = 1;
    extra_of(*t).listener = this;
    x->task = t;
    x->element = a.spec.element;
    x->context = std::make_unique<run_context>(*rt_.host, rt_, x->buffers, "host", never_stopping_);
    x->context->bind(*t);
    transfer& added = transfers_.add(std::move(x));
    later_.submit(*t);
    return added;
  } catch (...) {
    discard(t);
    release(t);
    throw;
  }
}

// Ends the transfer's host access: its box may change again. The record is released once it has retired.
void node_service_actor::close(transfer& x) {
  if (!std::exchange(x.open, false)) return;
  try {
    x.context->commit();
  } catch (...) {
    x.context->roll_back();
  }
  later_.close(*x.task);
}

// Returns the memory for bytes that come. One at a time: when they have come, other tasks use the memory.
net::pieces node_service_actor::give_room(transfer& x, std::uint64_t bytes) {
  if (x.writing) refuse_peer("a transfer into a place where another one is being written");
  net::pieces to = rows_of(x.view, x.element);
  std::uint64_t room = 0;
  for (const auto& piece : to) room += piece.size();
  if (room != bytes) refuse_peer("a transfer of another size than what was asked for");
  x.placed = x.writing = true;
  return to;
}

void node_service_actor::drop(std::unordered_map<std::uint64_t, array_core*>::iterator a) {
  later_.drop(*a->second);
  arrays_.erase(a);
}

// Removes a task that nothing waits for any more, with its arrays.
void node_service_actor::remove(remote_task& r) {
  for (array_core* a : r.arrays) later_.drop(*a);
  tasks_.remove(r);
}

void node_service_actor::tell_end(const wire::task_end& e) {
  if (!left_) out_.tell_end(e);
}

void node_service_actor::tell_not_sent(std::uint64_t number, errc code, const std::exception_ptr& why) {
  if (left_) return;
  net::writer frame;
  frame.fixed(wire::kind::not_sent);
  frame.varint(number);
  frame.varint(static_cast<std::uint64_t>(code));
  frame.text(text_of(why).substr(0, wire::text_max));
  session_->send(frame.view());
}

}  // namespace troupe::detail
