// What this file is for: the calls about memory: allocation, copies, fills.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "devices/sim/engine.hpp"

namespace troupe::soft_gpu {

namespace {

void release(device& d, const device_memory::lease& l) {
  if (!d.memory.release(l)) d.fail(simErrorIllegalAddress, "something was written beyond the end of an allocation");
}

struct rows {
  const void* begin;
  std::size_t pitch;
  std::size_t extent(std::size_t width, std::size_t height) const { return (height - 1) * pitch + width; }
};

simError_t illegal(device& d, stream& s) {
  return pushed(s, {&d, false, [&d](stream&) {
                      d.fail(simErrorIllegalAddress, "an operation was given memory that its device may not use");
                    }});
}

// Between devices without access a driver goes through the host's memory, and does not say so.
void count_traffic(device* from, device* to, bool direct, std::size_t bytes) {
  if (from == to) return;
  if (from && to && direct) {
    to->bytes_from_peers += bytes;
  } else {
    if (from) from->bytes_to_host += bytes;
    if (to) to->bytes_from_host += bytes;
  }
}

// `through`: the copy may use the memory of both devices whatever is enabled.
simError_t copy(device& d, stream& s, rows to, rows from, std::size_t width, std::size_t height, simMemcpyKind kind,
                bool through) {
  if (kind < simMemcpyHostToHost || kind > simMemcpyDefault) return simErrorInvalidValue;
  if (width == 0 || height == 0) return simSuccess;
  if (!to.begin || !from.begin) return simErrorInvalidValue;
  if (to.pitch < width || from.pitch < width) return simErrorInvalidPitchValue;
  device *const to_owner = d.in.owner(to.begin), *const from_owner = d.in.owner(from.begin);
  const auto direction = static_cast<simMemcpyKind>((from_owner ? 2 : 0) + (to_owner ? 1 : 0));
  if (kind != simMemcpyDefault && kind != direction) return simErrorInvalidValue;
  bool reached = true;
  const auto address = [&](const rows& r, const device* owner) {
    if (!owner) return static_cast<std::byte*>(const_cast<void*>(r.begin));
    std::byte* p = through ? owner->memory.alias(r.begin) : d.reach(r.begin);
    reached = reached && p;
    return p;
  };
  if (to_owner && !to_owner->memory.live(to.begin, to.extent(width, height))) return simErrorInvalidValue;
  if (from_owner && !from_owner->memory.live(from.begin, from.extent(width, height))) return simErrorInvalidValue;
  std::byte* const target = address(to, to_owner);
  const std::byte* const source = address(from, from_owner);
  if (!reached) return illegal(d, s);
  device* const foreign = !to_owner || !from_owner || to_owner == from_owner ? nullptr
                          : from_owner != &d                                 ? from_owner
                                                                             : to_owner;
  const bool direct = foreign && (d.peers >> foreign->index & 1) != 0;
  const auto last = [&](const rows& r) { return static_cast<const std::byte*>(r.begin) + r.extent(width, height) - 1; };
  const auto pageable = [&](const rows& r, const device* owner) {
    return !owner && !(d.in.pinned(r.begin) && d.in.pinned(last(r)));
  };
  const auto torn = [&](const rows& r, const device* owner) {
    return !owner && d.in.pinned(r.begin) && !d.in.pinned_as_one(r.begin, r.extent(width, height));
  };
  if (torn(to, to_owner) || torn(from, from_owner)) return simErrorInvalidValue;
  const bool slow = pageable(to, to_owner) || pageable(from, from_owner);
  const double speed = slow ? d.in.options.pageable_gb_per_s : 0;
  const simError_t result = pushed(
      s, {&d, false, [=, &d, a = to.pitch, b = from.pitch, resets = foreign ? foreign->resets.load() : 0](stream&) {
            auto end = d.book_link(direction, width * height, foreign);
            count_traffic(from_owner, to_owner, direct, width * height);
            if (speed > 0)
              end = std::max(end, steady::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(
                                                      static_cast<double>(width * height) / speed)));
            std::shared_lock<std::shared_mutex> used;
            if (foreign) used = std::shared_lock(foreign->in_use);
            if (foreign && foreign->resets != resets) {
              // The memory is gone, and may be somebody else's by now.
            } else if (a == width && b == width) {
              std::memcpy(target, source, width * height);
            } else {
              for (std::size_t i = 0; i < height; ++i) std::memcpy(target + i * a, source + i * b, width);
            }
            if (foreign) used.unlock();
            if (end != steady::time_point{}) std::this_thread::sleep_until(end);
          }});
  if (result == simSuccess && slow && d.in.options.pageable_blocks && !s.capturing()) s.wait();
  return result;
}

}  // namespace

simError_t simMalloc(void** p, std::size_t bytes) {
  return on_this_device("Malloc", [&](world&, device& d) {
    *p = nullptr;
    if (bytes == 0) return simSuccess;
    const auto l = d.memory.reserve(bytes, nullptr);
    if (!l) return simErrorMemoryAllocation;
    d.memory.prepare(*l);
    *p = l->address;
    return simSuccess;
  });
}

simError_t simFree(void* p) {
  return on_this_device("Free", [&](world& w, device&) {
    if (!p) return simSuccess;
    device* d = w.owner(p);
    if (!d) return simErrorInvalidValue;
    for (const auto& s : d->streams()) s->wait();
    const auto l = d->memory.retire(p, nullptr);
    if (!l) return simErrorInvalidValue;
    release(*d, *l);
    return d->error.load();
  });
}

simError_t simMallocAsync(void** p, std::size_t bytes, simStream_t in) {
  return on_stream("MallocAsync", in, [&](device& d, stream& s) {
    *p = nullptr;
    if (const auto c = s.capturing()) {
      c->invalidate();
      return simErrorStreamCaptureUnsupported;
    }
    if (bytes == 0) return simSuccess;
    const auto l = d.memory.reserve(bytes, &s);
    if (!l) return simErrorMemoryAllocation;
    *p = l->address;
    return pushed(s, {&d, false, [&d, l = *l](stream&) { d.memory.prepare(l); }});
  });
}

simError_t simFreeAsync(void* p, simStream_t in) {
  return on_stream("FreeAsync", in, [&](device& d, stream& s) {
    if (const auto c = s.capturing()) {
      c->invalidate();
      return simErrorStreamCaptureUnsupported;
    }
    if (!p) return simSuccess;
    const auto l = d.memory.retire(p, &s);
    if (!l) return simErrorInvalidValue;
    return pushed(s, {&d, false, [&d, l = *l](stream&) { release(d, l); }});
  });
}

simError_t simMallocHost(void** p, std::size_t bytes) {
  return on_this_device("MallocHost", [&](world& w, device&) {
    *p = nullptr;
    if (bytes == 0) return simSuccess;
    constexpr std::size_t page = 4096;
    if (bytes > SIZE_MAX - page) return simErrorMemoryAllocation;
    void* got = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (!got) return simErrorMemoryAllocation;
    w.pin(got, bytes, true);
    *p = got;
    return simSuccess;
  });
}

// Also on a device that has failed: what belongs to the host can always be given back.
simError_t simFreeHost(void* p) {
  return guarded([&] {
    if (!p) return simSuccess;
    const auto w = current_world();
    if (!w->unpin(p, true)) return simErrorInvalidValue;
    const auto index = static_cast<std::size_t>(this_thread().device);
    if (index < w->devices.size())
      for (const auto& s : w->devices[index]->streams()) s->wait();
    std::free(p);
    return simSuccess;
  });
}

simError_t simHostRegister(void* p, std::size_t bytes, unsigned flags) {
  return on_this_device("HostRegister", [&](world& w, device&) {
    if (!p || bytes == 0 || flags > simHostRegisterPortable) return simErrorInvalidValue;
    return w.pin(p, bytes, false) ? simSuccess : simErrorHostMemoryAlreadyRegistered;
  });
}

simError_t simHostUnregister(void* p) {
  return guarded([&] { return current_world()->unpin(p, false) ? simSuccess : simErrorHostMemoryNotRegistered; });
}

simError_t simPointerGetAttributes(simPointerAttributes* to, const void* p) {
  return on_this_device("PointerGetAttributes", [&](world& w, device&) {
    const device* owner = w.owner(p);
    *to = {owner         ? simMemoryTypeDevice
           : w.pinned(p) ? simMemoryTypeHost
                         : simMemoryTypeUnregistered,
           owner ? owner->index : -1};
    return simSuccess;
  });
}

simError_t simPinnedBytes(std::size_t* now, std::size_t* most) {
  return guarded([&] {
    const auto w = current_world();
    const std::lock_guard lock(w->mutex);
    *now = w->pinned_bytes;
    *most = w->pinned_bytes_max;
    return simSuccess;
  });
}

simError_t simMemGetInfo(std::size_t* free, std::size_t* total) {
  return on_this_device("MemGetInfo", [&](world&, device& d) {
    *total = d.memory.capacity();
    *free = *total - d.memory.used();
    return simSuccess;
  });
}

simError_t simMemcpyAsync(void* to, const void* from, std::size_t bytes, simMemcpyKind kind, simStream_t in) {
  return on_stream("MemcpyAsync", in, [&](device& d, stream& s) {
    return copy(d, s, {to, bytes}, {from, bytes}, bytes, 1, kind, false);
  });
}

simError_t simMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                            std::size_t height, simMemcpyKind kind, simStream_t in) {
  return on_stream("Memcpy2DAsync", in, [&](device& d, stream& s) {
    return copy(d, s, {to, to_pitch}, {from, from_pitch}, width, height, kind, false);
  });
}

simError_t simMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                              simStream_t in) {
  return on_stream("MemcpyPeerAsync", in, [&](device& d, stream& s) {
    const device *to_owner = d.in.owner(to), *from_owner = d.in.owner(from);
    if (!to_owner || !from_owner || to_owner->index != to_device || from_owner->index != from_device)
      return simErrorInvalidValue;
    return copy(d, s, {to, bytes}, {from, bytes}, bytes, 1, simMemcpyDeviceToDevice, true);
  });
}

simError_t simMemsetAsync(void* p, int value, std::size_t bytes, simStream_t in) {
  return on_stream("MemsetAsync", in, [&](device& d, stream& s) {
    if (bytes == 0) return simSuccess;
    const device* owner = d.in.owner(p);
    if (!owner || !owner->memory.live(p, bytes)) return simErrorInvalidValue;
    std::byte* to = d.reach(p);
    if (!to) return illegal(d, s);
    return pushed(s, {&d, false, [=](stream&) { std::memset(to, value, bytes); }});
  });
}

}  // namespace troupe::soft_gpu
