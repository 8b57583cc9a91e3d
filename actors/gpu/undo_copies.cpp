// What this file is for: what a routine updates in place, kept on the device for another attempt.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Only routines need it: a kernel as text runs as a whole or not at all, and a device that fails takes its copies
// along, so that what it was to update is read from elsewhere or is lost.
#include <troupe/error.hpp>

#include "actors/gpu/boxes.hpp"
#include "actors/gpu/memory.hpp"
#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

void gpu_memory::keep_updates(gpu_job& j) {
  const auto keep = [&](void* memory, std::size_t bytes, const logic::box4& where, std::size_t element) {
    void* const before = scratch(j, bytes);
    if (!before)
      throw error(errc::out_of_memory, device_->facts().name + ": no room for " + std::to_string(bytes) +
                                           " bytes that task_options::retries keeps beside the arguments");
    const counts packed = packed_strides(where);
    device_->copy(j.route.lane, {before, 0}, packed, {memory, 0}, packed, counts_of(where), element);
    j.updates.push_back({memory, before, where, element});
  };
  for (const gpu_job::held& h : j.copies)
    if (h.written && j.task->accesses[h.access].mode == access_mode::update)
      keep(h.copy->memory, h.copy->bytes, h.copy->array->tile_box(h.copy->tile), h.copy->array->spec.element);
  for (const gpu_job::part& p : j.parts)
    if (p.memory && p.goes_out && j.task->accesses[p.access].mode != access_mode::write)
      keep(p.memory, p.bytes, p.where, j.task->accesses[p.access].array->spec.element);
}

void gpu_memory::put_updates_back(gpu_job& j) {
  for (const gpu_job::kept& k : j.updates) {
    const counts packed = packed_strides(k.where);
    device_->copy(j.route.lane, {k.memory, 0}, packed, {k.before, 0}, packed, counts_of(k.where), k.element);
  }
}

}  // namespace troupe::detail
