// What this file is for: all devices of the simulator, which may reach what, faults, handles; the frame of every call.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "devices/sim/stream.hpp"

namespace troupe::soft_gpu {

struct world;

struct device {
  device(world& w, int number, std::size_t memory_bytes);

  bool failed() const { return error != simSuccess; }
  /// Fails the device, which can do no more until it is reset. Only the first failure counts.
  void fail(simError_t, const std::string& why);
  std::shared_ptr<stream> own_stream();
  std::vector<std::shared_ptr<stream>> streams();
  std::shared_ptr<stream> open_stream();
  /// The address the engine uses for one that this device uses; null if it may not.
  std::byte* reach(const void*) const;
  /// When a copy of so many bytes ends that starts now; long ago where the link has no limit.
  steady::time_point book_link(simMemcpyKind, std::size_t bytes, bool from_peer);
  /// Ends everything, frees everything, cures.
  void reset();

  world& in;
  const int index;
  device_memory memory;
  std::atomic<simError_t> error = simSuccess;
  std::atomic<std::uint64_t> peers = 0;  // bits
  std::atomic<double> link_gb_per_s;     // 0: no limit
  std::atomic<std::uint64_t> bytes_from_host = 0, bytes_to_host = 0, bytes_from_peers = 0;
  std::shared_mutex in_use;  // shared by copies of other devices from this one's memory, which is not cleared meanwhile
  std::atomic<std::uint64_t> resets =
      0;  // copies of other devices that were enqueued before one touch nothing after it

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<stream>> streams_;
  std::shared_ptr<stream> own_;
  std::array<steady::time_point, 6> link_free_{};  // by direction; the last one: from other devices
};

struct world {
  explicit world(sim_options);
  ~world();

  void log(const std::string&) const noexcept;
  device* owner(const void*) const;
  bool pinned(const void*) const;
  // All of it by one call.
  bool pinned_as_one(const void*, std::size_t bytes) const;
  /// False if there is a block there.
  bool pin(void*, std::size_t bytes, bool owned);
  /// False if there is no such block of that owner.
  bool unpin(const void*, bool owned);
  /// The fault that this call runs into, or null.
  const sim_fault* count_call(const char* call, int device);

  sim_options options;
  std::vector<std::unique_ptr<device>> devices;
  mutable std::mutex mutex;
  struct pinned_block {
    std::size_t bytes;
    bool owned;  // by the simulator; else the caller keeps it
  };
  std::map<std::uintptr_t, pinned_block> pinned_blocks;
  std::size_t pinned_bytes = 0, pinned_bytes_max = 0;
  std::atomic<std::uint64_t> streams_made = 0;

 private:
  std::vector<int> calls_;  // per fault
};

/// Numbers that look like pointers, given once.
template <class Handle, class T>
class handle_table {
 public:
  Handle add(std::shared_ptr<T> t) {
    const std::lock_guard lock(mutex_);
    const auto h = reinterpret_cast<Handle>(next_ += 16);  // NOLINT(performance-no-int-to-ptr)
    live_.emplace(h, std::move(t));
    return h;
  }
  std::shared_ptr<T> find(Handle h) const {
    const std::lock_guard lock(mutex_);
    const auto at = live_.find(h);
    return at == live_.end() ? nullptr : at->second;
  }
  std::shared_ptr<T> take(Handle h) {
    const std::lock_guard lock(mutex_);
    const auto node = live_.extract(h);
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  template <class F>
  void take_if(F&& f) {
    std::vector<std::shared_ptr<T>> taken;  // dies without the lock
    const std::lock_guard lock(mutex_);
    for (auto at = live_.begin(); at != live_.end();) {
      if (f(*at->second)) {
        taken.push_back(std::move(at->second));
        at = live_.erase(at);
      } else {
        ++at;
      }
    }
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return live_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<T>> live_;
  std::uintptr_t next_ = 0x10000;
};

struct handle_tables {
  handle_table<simStream_t, stream> streams;
  handle_table<simEvent_t, event> events;
  handle_table<simGraph_t, graph> graphs;
  handle_table<simGraphExec_t, graph> executables;
};
handle_tables& handles();

std::shared_ptr<world> current_world();

struct thread_state {
  int device = 0;
  simError_t last_error = simSuccess;
  bool in_callback = false;
};
thread_state& this_thread();

/// Remembers an error for simGetLastError.
inline simError_t note(simError_t e) {
  if (e != simSuccess && e != simErrorNotReady) this_thread().last_error = e;
  return e;
}

/// The frame of all calls: none inside host functions; no exception leaves.
template <class F>
simError_t guarded(F&& f) noexcept {
  if (this_thread().in_callback) return note(simErrorNotPermitted);
  try {
    return note(f());
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  } catch (...) {
    return note(simErrorInvalidValue);
  }
  return note(simErrorMemoryAllocation);
}

/// `f(world&, device&)`, unless the device has failed or a fault is due.
template <class F>
simError_t on_device(const char* call, device& d, F&& f) {
  if (d.failed()) return d.error;
  if (const sim_fault* fault = d.in.count_call(call, d.index)) {
    if (fault->lost) d.fail(simErrorDevicesUnavailable, "lost, as asked for");
    if (fault->sticky) d.fail(fault->error, "failed, as asked for");
    return d.failed() ? d.error.load() : fault->error;
  }
  return f(d.in, d);
}

/// The calling thread's device.
template <class F>
simError_t on_this_device(const char* call, F&& f) noexcept {
  return guarded([&]() -> simError_t {
    const auto w = current_world();
    if (w->devices.empty()) return simErrorNoDevice;
    const auto index = static_cast<std::size_t>(this_thread().device);
    if (index >= w->devices.size()) return simErrorInvalidDevice;
    return on_device(call, *w->devices[index], f);
  });
}

std::shared_ptr<stream> find_stream(world&, simStream_t);

/// `f(device&, stream&)` of the stream; faults that come late are put before what `f` pushes.
template <class F>
simError_t on_stream(const char* call, simStream_t s, F&& f) noexcept {
  return guarded([&]() -> simError_t {
    const auto w = current_world();
    const auto found = find_stream(*w, s);
    if (!found) return w->devices.empty() ? simErrorNoDevice : simErrorInvalidResourceHandle;
    device& d = found->owner();
    if (d.failed()) return d.error;
    if (const sim_fault* fault = w->count_call(call, d.index)) {
      if (fault->lost) d.fail(simErrorDevicesUnavailable, "lost, as asked for");
      if (!fault->sticky && !fault->hang) return fault->lost ? d.error.load() : fault->error;
      found->push({&d, false, [&d, hang = fault->hang, error = fault->error](stream& in) {
                     if (hang) return in.hang();
                     d.fail(error, "failed, as asked for");
                   }});
    }
    return f(d, *found);
  });
}

inline simError_t pushed(stream& s, operation o) {
  return s.push(std::move(o)) ? simSuccess : simErrorInvalidResourceHandle;
}

}  // namespace troupe::soft_gpu
