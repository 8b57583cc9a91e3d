// What this file is for: opening, failing and closing simulated devices.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sim/engine.hpp"

#include <algorithm>
#include <cstdlib>

namespace troupe::soft_gpu {

namespace {

// Never destroyed: threads of streams may outlive static objects.
struct state {
  std::mutex mutex;
  std::shared_ptr<world> now;
};
state& the_state() {
  static auto* s = new state;
  return *s;
}

}  // namespace

handle_tables& handles() {
  static auto* tables = new handle_tables;
  return *tables;
}

thread_state& this_thread() {
  static thread_local thread_state t;
  return t;
}

std::shared_ptr<world> current_world() {
  state& s = the_state();
  const std::lock_guard lock(s.mutex);
  if (!s.now) s.now = std::make_shared<world>(sim_options{});
  return s.now;
}

simError_t simConfigure(sim_options o) {
  return guarded([&]() -> simError_t {
    if (o.devices < 0 || o.devices > 64) return simErrorInvalidValue;
    if (!handles().streams.empty()) return simErrorNotPermitted;
    state& s = the_state();
    std::shared_ptr<world> old;
    {
      const std::lock_guard lock(s.mutex);
      old.swap(s.now);
    }
    old.reset();
    auto next = std::make_shared<world>(std::move(o));
    const std::lock_guard lock(s.mutex);
    s.now = std::move(next);
    this_thread() = {};
    return simSuccess;
  });
}

simError_t simThrottle(int index, double copy_gb_per_s) {
  return guarded([&] {
    const auto w = current_world();
    if (index < 0 || static_cast<std::size_t>(index) >= w->devices.size()) return simErrorInvalidDevice;
    w->devices[static_cast<std::size_t>(index)]->link_gb_per_s = copy_gb_per_s;
    return simSuccess;
  });
}

world::world(sim_options o) : options(std::move(o)), calls_(options.faults.size()) {
  for (int i = 0; i < options.devices; ++i) devices.push_back(std::make_unique<device>(*this, i, options.memory_bytes));
}

world::~world() {
  for (auto& d : devices) d->reset();
  if (!pinned_blocks.empty()) log("sim: " + std::to_string(pinned_blocks.size()) + " pinned allocations never freed");
  for (const auto& [address, block] : pinned_blocks)
    if (block.owned) std::free(reinterpret_cast<void*>(address));  // NOLINT(performance-no-int-to-ptr)
}

void world::log(const std::string& text) const noexcept {
  try {
    if (options.log) options.log(text);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nobody to tell
  }
}

device* world::owner(const void* p) const {
  for (const auto& d : devices)
    if (d->memory.contains(p)) return d.get();
  return nullptr;
}

bool world::pinned(const void* p) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const std::lock_guard lock(mutex);
  const auto after = pinned_blocks.upper_bound(at);
  return after != pinned_blocks.begin() && at - std::prev(after)->first < std::prev(after)->second.bytes;
}

bool world::pinned_as_one(const void* p, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const std::lock_guard lock(mutex);
  const auto after = pinned_blocks.upper_bound(at);
  return after != pinned_blocks.begin() && at + bytes <= std::prev(after)->first + std::prev(after)->second.bytes;
}

bool world::pin(void* p, std::size_t bytes, bool owned) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const std::lock_guard lock(mutex);
  const auto after = pinned_blocks.lower_bound(at);
  if (after != pinned_blocks.end() && after->first - at < bytes) return false;
  if (after != pinned_blocks.begin() && at - std::prev(after)->first < std::prev(after)->second.bytes) return false;
  pinned_blocks.emplace(at, pinned_block{bytes, owned});
  pinned_bytes += bytes;
  pinned_bytes_max = std::max(pinned_bytes_max, pinned_bytes);
  return true;
}

bool world::unpin(const void* p, bool owned) {
  const std::lock_guard lock(mutex);
  const auto at = pinned_blocks.find(reinterpret_cast<std::uintptr_t>(p));
  if (at == pinned_blocks.end() || at->second.owned != owned) return false;
  pinned_bytes -= at->second.bytes;
  pinned_blocks.erase(at);
  return true;
}

const sim_fault* world::count_call(const char* call, int index) {
  if (options.faults.empty()) return nullptr;
  const sim_fault* due = nullptr;
  const std::lock_guard lock(mutex);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const sim_fault& f = options.faults[i];
    if (f.call == call && (f.device < 0 || f.device == index) && ++calls_[i] == f.nth) due = &f;
  }
  return due;
}

device::device(world& w, int number, std::size_t memory_bytes)
    : in(w), index(number), memory(memory_bytes), link_gb_per_s(w.options.copy_gb_per_s) {}

void device::fail(simError_t e, const std::string& why) {
  simError_t none = simSuccess;
  if (error.compare_exchange_strong(none, e))
    in.log("sim: device " + std::to_string(index) + ": " + simGetErrorName(e) + ": " + why);
}

std::shared_ptr<stream> device::open_stream() {
  const std::uint64_t number = ++in.streams_made;
  auto s = std::make_shared<stream>(*this, in.options.seed ? in.options.seed * 1000003 + number : 0);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(streams_, [](const auto& w) { return w.expired(); });
    streams_.push_back(s);
  }
  s->begin();
  return s;
}

std::shared_ptr<stream> device::own_stream() {
  {
    const std::lock_guard lock(mutex_);
    if (own_) return own_;
  }
  auto s = open_stream();
  const std::lock_guard lock(mutex_);
  if (own_) {
    s->close();
  } else {
    own_ = std::move(s);
  }
  return own_;
}

std::vector<std::shared_ptr<stream>> device::streams() {
  std::vector<std::shared_ptr<stream>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& w : streams_)
    if (auto s = w.lock()) all.push_back(std::move(s));
  return all;
}

std::byte* device::reach(const void* p) const {
  const device* o = in.owner(p);
  if (!o) return in.pinned(p) ? static_cast<std::byte*>(const_cast<void*>(p)) : nullptr;
  if (o != this && !(peers >> o->index & 1)) return nullptr;
  return o->memory.alias(p);
}

steady::time_point device::book_link(simMemcpyKind kind, std::size_t bytes, bool from_peer) {
  const double of_peers = in.options.peer_gb_per_s, speed = from_peer && of_peers > 0 ? of_peers : link_gb_per_s.load();
  if (speed <= 0) return {};
  const std::chrono::duration<double, std::nano> takes(static_cast<double>(bytes) / speed);
  const std::lock_guard lock(mutex_);
  auto& free = from_peer ? link_free_.back() : link_free_[static_cast<std::size_t>(kind)];
  free = std::max(free, steady::now()) + std::chrono::ceil<steady::duration>(takes);
  return free;
}

void device::reset() {
  simError_t none = simSuccess;
  error.compare_exchange_strong(none, simErrorDevicesUnavailable);  // nothing new begins
  const auto all = streams();
  for (const auto& s : all) {
    s->set_capture(nullptr);
    s->abandon();
    s->close();
  }
  for (const auto& s : all) s->wait_for_end();
  handles().streams.take_if([&](const stream& s) { return &s.owner() == this; });
  handles().events.take_if([&](const event& e) { return &e.on == this; });
  handles().graphs.take_if([&](const graph& g) { return &g.on == this; });
  handles().executables.take_if([&](const graph& g) { return &g.on == this; });
  if (const auto n = memory.live_count())
    in.log("sim: device " + std::to_string(index) + ": " + std::to_string(n) + " allocations never freed");
  {
    const std::lock_guard lock(in_use);
    ++resets;
    memory.release_all();
  }
  peers = 0;
  {
    const std::lock_guard lock(mutex_);
    streams_.clear();
    own_.reset();
    link_free_ = {};
  }
  error = simSuccess;
}

std::shared_ptr<stream> find_stream(world& w, simStream_t s) {
  if (s) return handles().streams.find(s);
  const auto index = static_cast<std::size_t>(this_thread().device);
  return index < w.devices.size() ? w.devices[index]->own_stream() : nullptr;
}

}  // namespace troupe::soft_gpu
