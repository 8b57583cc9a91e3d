// What this file is for: a call as it is said to another node: what it reads, writes and takes, what is sent for it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <troupe/error.hpp>

#include "actors/execution/call_values.hpp"
#include "actors/execution/graph_part.hpp"
#include "actors/execution/reexecution.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/reduction.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

// The gaps of a task that has more than so many are told before the task, in frames of their own.
constexpr std::size_t gaps_inside_max = 512;
// Calls on nodes are asked to stop by a message instead.
const std::atomic<bool> never_stops{false};

// True if a copy of a tile that the task writes is to come with its end: somebody here or on a third node waits for it.
// What a task that cannot be repeated writes comes home in any case.
bool is_to_be_copied(const task_record& t, std::size_t bytes) {
  return bytes <= wire::inline_max && t.extra && t.extra->read_elsewhere && is_repeatable(t);
}

// Partials that are larger are sent one by one: adding them up takes memory there, and the node's service meanwhile.
constexpr std::size_t added_up_max = 16u << 20;

// True if the task's partial for the access may be added to those of others before it is sent, which may hold up the
// task's end for a moment: nothing else comes of the task, and the other node knows the operator. Small partials come
// with the word that the task has ended.
bool may_be_added_up(const task_record& t, const access& x) {
  const region& r = *x.where;
  if (r.combiner->code == 0 || !r.partials || r.partials->id == 0 || t.kernel->repeat == purity::once) return false;
  const std::size_t bytes = static_cast<std::size_t>(r.partials->where.volume()) * x.array->spec.element;
  if (bytes <= wire::inline_max || bytes > added_up_max) return false;
  for (int i = 0; i < t.access_count; ++i)
    if (const access& other = t.accesses[i]; &other != &x && other.array && other.mode != access_mode::read)
      return false;
  return true;
}

void check_size(const wire::task_descriptor& c) {
  if (c.values.size() > wire::values_max)
    throw too_much("a call with " + std::to_string(c.values.size()) +
                   " values does not go to another node, which takes " + std::to_string(wire::values_max));
  for (std::size_t i = 0; i < c.values.size(); ++i)
    if (c.values[i].size() > wire::value_max)
      throw too_much("value " + std::to_string(i + 1) + " of the call has " + std::to_string(c.values[i].size()) +
                     " bytes, to another node go " + std::to_string(wire::value_max) + "; give it as an array, or");
  if (c.resources.size() > wire::resources_max)
    throw too_much("a call that holds " + std::to_string(c.resources.size()) +
                   " quantities does not go to another node, which takes " + std::to_string(wire::resources_max));
}

// Throws too_much for a view that is larger than the node accepts.
void check_size(const array_core& a, const logic::box4& view) {
  double bytes = static_cast<double>(a.spec.element);
  for (int d = 0; d < rank_max; ++d) bytes *= static_cast<double>(std::max<index_t>(view.size(d), 1));
  if (bytes > wire::bytes_max)
    throw too_much("what the task sees of array '" + a.spec.name +
                   "' is larger than what goes to another node; use smaller windows, or");
}

/// Asks the node to stop a task, when the task's stop token says so. The frame may arrive before the task does, or
/// after it has ended.
struct ask_to_stop {
  std::shared_ptr<net::session> to;
  std::uint64_t id;
  void operator()() const {
    net::writer frame;
    frame.fixed(wire::kind::cancel);
    frame.varint(id);
    to->send(frame.view());
  }
};

}  // namespace

// Has the node told of an array, with the next tasks, if it has not been.
void node_actor::know(array_core& a) {
  if (a.tile_count > wire::tiles_max)
    throw too_much("array '" + a.spec.name + "' has " + std::to_string(a.tile_count) + " tiles, to another node go " +
                   std::to_string(wire::tiles_max) + " of one; use larger tiles, or");
  if (const wire::array_descriptor* const c = known_.know(a)) frame_.add(*c);
}

// Puts the bytes of a box into the task's message, if they are few, and the node keeps what it has not asked for. They
// are read now: nothing here is held until the task has ended.
bool node_actor::put_inside(wire::gap& g, array_core& a) {
  if (!pushes_.is_allowed()) return false;
  const std::size_t bytes = static_cast<std::size_t>(g.where.volume()) * a.spec.element;
  if (bytes > wire::inline_max || frame_.inside() + bytes > wire::inline_task_max) return false;
  g.bytes.reserve(bytes);
  for (const auto& row : rows_of(rt_, a, g.tile, g.where, false)) g.bytes.insert(g.bytes.end(), row.begin(), row.end());
  frame_.add_inside(bytes);
  counts_.add_bytes_out(bytes);
  return true;
}

// Adds gaps for what of the box is not there. What the task is promised is pulled from who is about to write it.
void node_actor::need(job& j, wire::access_descriptor& w, array_core& a, const logic::box4& touched) {
  if (w.mode != access_mode::read || !lends_.has_promised()) return need_known(j, w, a, touched);
  a.each_tile(touched, [&](std::uint32_t tile, const logic::box4& all) {
    const logic::box4 part = intersect(touched, all);
    if (!pull_promised(j, w, a, tile, part)) need_known(j, w, a, part);
  });
}

// Adds gaps for what of the box is not there: each is pulled from a third node, pushed with the task, or asked for.
void node_actor::need_known(job& j, wire::access_descriptor& w, array_core& a, const logic::box4& touched) {
  const auto runs = [&](std::uint64_t id) { return jobs_.find(id) != nullptr; };
  known_.need(a, touched, j.id, runs, [&](std::uint32_t tile, const logic::box4& where, bool in_use) {
    wire::gap& g = w.gaps.emplace_back();
    g.tile = tile;
    g.where = where;
    if (w.mode == access_mode::read) ask_to_lend(j, g, a);
    if (g.lent != 0) return;
    if (put_inside(g, a)) return;
    if (!in_use) push_with(j, g, a);  // into memory that tasks there still use, a push would have to be kept twice
    known_.note_asker(a, tile, j.id, runs);
  });
}

// Sends the gaps of a task ahead of it if there are many, of small tiles or of parts of them: one frame would not hold
// them. Gaps are filled in the order in which they are told, so it does not matter that the task comes after all of
// them.
void node_actor::send_gaps(wire::task_descriptor& c) {
  std::size_t count = 0;
  for (const wire::access_descriptor& x : c.accesses) count += x.gaps.size();
  if (count <= gaps_inside_max) return;
  if (count > wire::gaps_max)
    throw too_much("what the task reads is in " + std::to_string(count) + " pieces elsewhere, to one node go " +
                   std::to_string(wire::gaps_max) + " for a task; use larger tiles, or");
  flush();  // the arrays have to be known, and what is before it comes before it
  for (wire::access_descriptor& x : c.accesses) {
    net::writer frame;
    for (const wire::gap& g : x.gaps) {
      if (frame.empty()) {
        frame.fixed(wire::kind::gaps);
        frame.varint(x.array);
      }
      wire::put(frame, g);
      if (frame.size() < task_frame::bytes_max) continue;
      occupant_.send(frame);
      frame.clear();
    }
    if (!frame.empty()) occupant_.send(frame);
    x.gaps.clear();
  }
}

// Adds what the caller has asked for, and has the node told when a stop is requested.
void node_actor::put_options(job& j, wire::task_descriptor& c) {
  const task_record& t = *j.task;
  const task_options& o = t.extra->options;
  c.watched = t.extra->attempt.load(std::memory_order_relaxed) > 1;
  c.name = o.name;
  c.priority = o.priority;
  c.retries = static_cast<std::uint32_t>(o.retries);
  c.resources.assign(o.resources.begin(), o.resources.end() - static_cast<std::ptrdiff_t>(t.kernel->resource_count));
  if (o.stop.stop_possible())
    j.stop_watch = std::make_shared<std::stop_callback<ask_to_stop>>(o.stop, ask_to_stop{occupant_.session(), j.id});
}

void node_actor::encode(job& j) {
  task_record& t = *j.task;
  wire::task_descriptor& c = frame_.blank_card();
  c.id = j.id;
  c.kernel = t.kernel->key;
  if (t.extra) put_options(j, c);
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    array_core& a = *x.array;
    know(a);
    wire::access_descriptor& w = c.accesses.emplace_back();
    w.array = a.id;
    w.mode = x.mode;
    if (logic::is_whole(x)) {
      w.where = a.tile_box(x.tile);
      w.limit = x.worker != 0 ? w.where : a.whole_box();
      if (x.mode != access_mode::write) need(j, w, a, w.where);
      w.copied = logic::writes(x) && is_to_be_copied(t, a.bytes_of(x.tile));
      if (w.copied) j.copied.push_back(static_cast<std::uint32_t>(c.accesses.size() - 1));
      continue;
    }
    const region& r = *x.where;
    w.where = {r.lo, r.hi};
    check_size(a, w.where);
    w.limit = {r.limit_lo, r.limit_hi};
    w.edge = r.edge;
    w.fill = r.fill;
    if (logic::uses_copies(x)) {
      logic::each_touched(r, [&](const logic::box4& b) { need(j, w, a, b); });
      continue;
    }
    w.returns = true;
    w.fresh = x.mode == access_mode::reduce;
    if (w.fresh && pushes_.is_allowed() && may_be_added_up(t, x)) {
      w.group = j.group = r.partials->id;
      w.op = r.combiner->code;
    }
    if (x.mode == access_mode::update) logic::each_touched(r, [&](const logic::box4& b) { need(j, w, a, b); });
    add_returned(j, w, i, static_cast<int>(c.accesses.size()) - 1);
  }
  if (j.data) j.data->awaited = j.data->to.size();
  call_values values(c.values);
  t.ops->run(t, values);  // hands its values over
  check_size(c);
  send_gaps(c);
  const std::span<const std::byte> bytes = frame_.add(c);
  try {
    remember(t, c, bytes);
    j.last_write = known_.note_written(t, j.id, j.wrote);
  } catch (...) {  // for want of memory: then it is not sent, or its end would be told of what is no task any more
    frame_.drop_last();
    throw;
  }
}

// Has the bytes that the task writes for an access sent back, to memory of this node.
void node_actor::add_returned(job& j, wire::access_descriptor& w, int access, int number) {
  task_record& t = *j.task;
  const auto& x = t.accesses[access];
  const array_core& a = *x.array;
  if (!j.data) {
    j.data = std::make_unique<job::returns>(rt_, facts_.name.c_str(), never_stops);
    j.data->context.bind(t);
  }
  job::back& b = j.data->to.emplace_back();
  b.access = access;
  b.element = a.spec.element;
  b.number = number;
  if (w.fresh) {
    b.partial = new_view_bytes(static_cast<std::size_t>(w.where.volume()) * b.element, a.spec.name);
    b.to.data = b.partial.get();
    b.to.lo = w.where.lo;
    b.to.hi = w.where.hi;
    b.to.stride = packed_strides(w.where);
  } else {
    b.to = j.data->context.view_of(access);
    b.is_update = x.mode == access_mode::update;
  }
}

// Keeps the call, as it is sent, of a task that writes tiles there: it may have to be repeated when they are lost. Parts
// of graphs cannot be repeated alone.
void node_actor::remember(task_record& t, wire::task_descriptor& c, std::span<const std::byte> sent) {
  if (is_graph_part(t)) return;
  bool writes = false;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    writes = writes || (x.array && logic::is_whole(x) && logic::writes(x));
  }
  if (!writes) return;
  auto call = std::make_shared<repeatable_call>();
  call->shapes.reserve(c.accesses.size());
  call->arrays.reserve(c.accesses.size());
  for (const wire::access_descriptor& x : c.accesses) {
    call->shapes.push_back(known_.shape(x.array));
    call->arrays.push_back(known_.find(x.array));
  }
  net::writer bare;  // what it was to be sent is no part of the call
  if (std::ranges::any_of(c.accesses, [](const wire::access_descriptor& x) { return !x.gaps.empty(); })) {
    for (wire::access_descriptor& x : c.accesses) x.gaps.clear();
    wire::put(bare, c);
    sent = bare.view();
  }
  call->descriptor.assign(sent.begin(), sent.end());
  t.extra->call = std::move(call);
}

}  // namespace troupe::detail
