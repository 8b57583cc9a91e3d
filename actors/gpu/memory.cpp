// What this file is for: room in a device's memory: what a task holds there, what may go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/memory.hpp"

#include <algorithm>
#include <iterator>

#include "actors/execution/graph_run.hpp"
#include "actors/gpu/boxes.hpp"
#include "actors/logic/data/reduction.hpp"

namespace troupe::detail {

using logic::box4;
using logic::replica;

namespace {
box4 box_of(const access& x) {
  return !x.where                        ? x.array->tile_box(x.tile)
         : x.mode == access_mode::reduce ? x.where->partials->where
                                         : logic::view_box(*x.where);
}
}  // namespace

void gpu_memory::use(devices::accelerator* device) { device_ = device; }

namespace {
const recorded_graph* graph_of(const task_record& run) {
  return static_cast<const recorded_graph*>(run.extra->payload.get());
}
}  // namespace

std::span<const std::uint64_t> gpu_memory::windows_of(const task_record& t) {
  if (t.kind != task_kind::graph_run) return {};
  return graph_of(t)->windows;
}

namespace {
// As devices give them.
std::uint64_t rounded(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }
}  // namespace

std::uint64_t gpu_memory::bytes_of(const task_record& t) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t w : windows_of(t)) bytes += rounded(w);
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (x.array) bytes += rounded(bytes_in(box_of(x), *x.array));
  }
  return bytes;
}

void gpu_memory::drop_windows(graph_windows& w) {
  for (void* memory : w.memory)
    if (memory && device_) device_->deallocate(lane_in, memory);
  w.memory.clear();
}

// Gives back the memory for windows of graphs that are gone.
void gpu_memory::forget_old_windows() {
  for (auto one = windows_.begin(); one != windows_.end();) {
    const bool gone = one->second.graph.expired() && one->second.users == 0;
    if (gone) drop_windows(one->second);
    one = gone ? windows_.erase(one) : std::next(one);
  }
}

// Gives back the memory for windows of a graph that does not run; false: there is none.
bool gpu_memory::drop_idle_windows() {
  const auto idle =
      std::ranges::find_if(windows_, [](const auto& w) { return w.second.users == 0 && !w.second.memory.empty(); });
  if (idle == windows_.end()) return false;
  drop_windows(idle->second);
  return true;
}

// Null: no room.
void* gpu_memory::allocate(int lane, std::size_t bytes) {
  void* memory = device_->allocate(lane, bytes);
  while (!memory && drop_idle_windows()) memory = device_->allocate(lane, bytes);
  if (!memory) return nullptr;
  const std::uint64_t used = device_->memory_used();
  fills_up_ = used > device_->facts().memory_bytes / 2;
  if (used > used_max()) used_max_.store(used, std::memory_order_relaxed);
  return memory;
}

// ---- copies ---------------------------------------------------------------------------------------------------------

replica* gpu_memory::find(const array_core& a, std::uint32_t tile) { return cache_.find(a.id, tile); }

namespace {
// Returns true if a replica may be evicted: placement knows of its version (until then the next task that is enqueued
// finds its bytes here only), and no other device copies it.
bool is_accounted(const replica& r) {
  if (r.loan && r.loan->is_used()) return false;
  return !r.filled || static_cast<std::int32_t>(r.version - known_version(*r.array, r.tile)) <= 0;
}
}  // namespace

replica* gpu_memory::victim(const logic::lookahead_queue& o) {
  if (!o.looks_ahead()) return cache_.victim(is_accounted);
  return cache_.victim(is_accounted, [&](const replica& r) { return o.next_use(r.array_id, r.tile); });
}

std::uint64_t gpu_memory::missing_bytes(const task_record& t) {
  std::uint64_t bytes = 0;
  const auto windows = windows_of(t);
  const auto known = windows.empty() ? windows_.end() : windows_.find(graph_of(t));
  for (std::size_t k = known == windows_.end() ? 0 : known->second.memory.size(); k < windows.size(); ++k)
    bytes += windows[k];
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || (!x.where && cache_.find(x.array->id, x.tile))) continue;
    bytes += bytes_in(box_of(x), *x.array);
  }
  return bytes;
}

bool gpu_memory::has_unaccounted() const {
  bool any = false;
  cache_.each([&](const replica& r) { any = any || !is_accounted(r); });
  return any;
}

void gpu_memory::drop(const replica& r) {
  if (r.loan) r.loan->call_back();
  if (device_) device_->deallocate(lane_in, r.memory);
  cache_.erase(r);
}

void gpu_memory::forget_all() {
  cache_.each([&](const replica& r) { cache_.erase(r); });
  for (auto& [graph, w] : windows_) w.memory.clear();
  arriving_.clear();
  leaving_bytes_ = 0;
}

void gpu_memory::note_arrival(memory_space from, std::uint64_t bytes) {
  if (from == host_space)
    count(bytes);
  else
    bytes_from_peers_.fetch_add(bytes, std::memory_order_relaxed);
  arriving_.push_back({lanes_.promise(lane_in), bytes, ticks(), from});
}

}  // namespace troupe::detail
