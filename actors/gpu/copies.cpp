// What this file is for: copies between a device's memory and the host's: before a task, after it, of tiles that go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/gpu/boxes.hpp"
#include "actors/gpu/memory.hpp"
#include "actors/logic/data/home_box.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

using logic::box4;
using logic::replica;

// ---- in -------------------------------------------------------------------------------------------------------------

void gpu_memory::fill_in(gpu_job& j) {
  const task_record& t = *j.task;
  for (const gpu_job::held& h : j.copies) {
    const access& x = t.accesses[h.access];
    const bool needs_contents = !h.whole || x.mode != access_mode::write;
    if (needs_contents && !h.copy->is_current(known_version(*h.copy->array, h.copy->tile))) bring_in(j, *h.copy);
    if (h.whole) view_tile(x, h.access, *h.copy, j.device);
  }
  bool host_bound = false;
  for (std::size_t i = 0; i < j.parts.size(); ++i) {
    gpu_job::part& p = j.parts[i];
    if (!p.from_tiles) {
      if (!std::exchange(host_bound, true)) j.host.bind(*j.task);
      assemble_from_host(j, p);
    } else if (p.memory || p.bytes == 0 || !view_inside_tile(j, p)) {
      start_assembly(j, i);
    }
  }
  if (!host_bound) j.host.bind(*j.task);
  // The job's lane waits for the memory and bytes of its copies: for the lanes that wrote them, and, where the job
  // writes, for those that read them.
  for (const gpu_job::held& h : j.copies) {
    const replica& r = *h.copy;
    lanes_.wait(j.route.lane, r.ready.lane, r.ready.until);
    if (r.ready.lane == lane_in) await_in(j, r.ready.until);
    if (h.written)
      for (const replica::use& u : r.read_by) lanes_.wait(j.route.lane, u.lane, u.until);
  }
  if (j.route.memory_ready != 0) {
    lanes_.wait(j.route.lane, lane_in, j.route.memory_ready);
    await_in(j, j.route.memory_ready);
  }
  finish_assembly(j);
}

// Notes bytes that the job waits for, so that it is timed when they are here.
void gpu_memory::await_in(gpu_job& j, devices::ticket until) const {
  if (!lanes_.has_reached(lane_in, until)) j.route.all_in = std::max(j.route.all_in, until);
}

void gpu_memory::bring_in(const gpu_job& j, replica& r) {
  array_core& a = *r.array;
  const box4 b = a.tile_box(r.tile);
  lanes_.wait(lane_in, r.ready.lane, r.ready.until);
  for (const replica::use& u : r.read_by) lanes_.wait(lane_in, u.lane, u.until);
  take_back(r);  // of an older version
  if (const auto loan = loan_of(j, a, r.tile)) {
    r.source = loan;
    copy_lent(*loan, {r.memory, 0}, packed_strides(b), b);
  } else {
    device_->copy_in(lane_in, {r.memory, 0}, packed_strides(b), host_tile(rt_, a, r.tile, false),
                     host_strides(a, r.tile), counts_of(b), a.spec.element);
    note_arrival(host_space, r.bytes);
  }
  r.filled = true;
  r.version = known_version(a, r.tile);
  r.note_write({lane_in, lanes_.promise(lane_in)});
}

void gpu_memory::view_tile(const access& x, int number, const replica& copy, gpu_context& to) {
  const array_core& a = *x.array;
  const box4 b = a.tile_box(x.tile);
  raw_view v;
  v.name = a.spec.name.c_str();
  v.data = static_cast<std::byte*>(copy.memory);
  v.lo = b.lo;
  v.hi = b.hi;
  v.stride = packed_strides(b);
  if (x.worker != 0)  // a sub-array that is exactly this tile: coordinates start at 0
    for (int d = 0; d < rank_max; ++d) {
      v.hi[d] -= v.lo[d];
      v.lo[d] = 0;
    }
  to.set_view(number, v);
}

void gpu_memory::show_call(const task_record& call, const gpu_job& j, gpu_context& to) {
  to.bind(call);
  std::size_t window = 0;
  for (int i = 0; i < call.access_count; ++i) {
    const access& x = call.accesses[i];
    if (!x.array) continue;
    if (x.where)
      show_window(call, i, x.mode == access_mode::read ? j.windows->memory[window++] : nullptr, j.route.lane, to);
    else
      view_tile(x, i, *cache_.find(x.array->id, x.tile), to);
  }
}

// ---- out ------------------------------------------------------------------------------------------------------------

void gpu_memory::note_launched(gpu_job& j) {
  const replica::use here{j.route.compute, lanes_.promise(j.route.compute)};
  for (gpu_job::held& h : j.copies) {
    replica& r = *h.copy;
    if (!h.written) {
      r.note_read(here);
      continue;
    }
    const std::uint32_t known = known_version(*r.array, r.tile);
    take_back(r);  // all that read it have ended
    r.version = (r.is_current(known) ? r.version : known) + 1;
    r.filled = true;
    r.dirty = true;
    r.note_write(here);
    h.write = r.write = ++writes_;
  }
  j.launched = true;
}

bool gpu_memory::send_out(gpu_job& j) {
  bool any = false;
  for (gpu_job::part& p : j.parts) {
    if (!p.goes_out || !p.memory) continue;
    const access& x = j.task->accesses[p.access];
    if (!any) lanes_.wait(lane_out, j.route.lane, lanes_.promise(j.route.lane));
    any = true;
    if (x.mode != access_mode::write) p.staged = j.buffers.take(p.bytes, *x.array);
    const counts packed = packed_strides(p.where);
    if (p.staged)
      device_->copy_out(lane_out, p.staged, packed, {p.memory, 0}, packed, counts_of(p.where), x.array->spec.element);
    else
      device_->copy_out(lane_out, p.host.data, p.host.stride, {p.memory, 0}, packed, counts_of(p.where),
                        x.array->spec.element);
    count_out(p.bytes);
  }
  return any;
}

void gpu_memory::put_in_place(gpu_job& j) {
  for (const gpu_job::part& p : j.parts)
    if (p.staged)
      rt_.host->copy(p.host.data, p.host.stride, p.staged, packed_strides(p.where), counts_of(p.where),
                     j.task->accesses[p.access].array->spec.element);
}

void gpu_memory::send_home(replica& r, gpu_job& j) {
  array_core& a = *r.array;
  const box4 b = a.tile_box(r.tile);
  std::byte* to = host_tile(rt_, a, r.tile, true);
  lanes_.wait(lane_out, r.ready.lane, r.ready.until);
  device_->copy_out(lane_out, to, host_strides(a, r.tile), {r.memory, 0}, packed_strides(b), counts_of(b),
                    a.spec.element);
  count_out(r.bytes);
  j.leaving.copy = &r;
  j.leaving.version = r.version;
  j.route.lane = lane_out;
  j.route.end = lanes_.promise(lane_out);
  r.leaving = true;
  leaving_bytes_ += r.bytes;
  r.note_read({lane_out, j.route.end});
}

void gpu_memory::send_part_home(replica& r, home_box& box, gpu_job& j) {
  const array_core& a = *r.array;
  const box4 b = a.tile_box(r.tile);
  const auto stride = packed_strides(b);
  lanes_.wait(lane_out, r.ready.lane, r.ready.until);
  device_->copy_out(lane_out, box.bytes.get(), packed_strides(box.where),
                    {r.memory, static_cast<std::size_t>(offset_in(b, stride, box.where.lo)) * a.spec.element}, stride,
                    counts_of(box.where), a.spec.element);
  count_out(bytes_in(box.where, a));
  j.route.lane = lane_out;
  j.route.end = lanes_.promise(lane_out);
  r.note_read({lane_out, j.route.end});
}

void gpu_memory::note_sent_home(gpu_job& j) {
  replica& r = *j.leaving.copy;
  r.leaving = false;
  leaving_bytes_ -= r.bytes;
  if (r.version == j.leaving.version) r.dirty = false;  // else written again meanwhile
  j.leaving.copy = nullptr;
}

}  // namespace troupe::detail
