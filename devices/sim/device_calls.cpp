// What this file is for: the calls about devices and kernels.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "devices/sim/engine.hpp"

namespace troupe::soft_gpu {

namespace {

constexpr unsigned group_items_max = 1024;
constexpr int version = 1000;

bool valid(dim3 groups, dim3 group) {
  const bool some = groups.x && groups.y && groups.z && group.x && group.y && group.z;
  const bool few = groups.x <= 0x7fffffff && groups.y <= 65535 && groups.z <= 65535;
  const bool small = group.x <= group_items_max && group.y <= group_items_max && group.z <= 64;
  return some && few && small && std::uint64_t{group.x} * group.y * group.z <= group_items_max;
}

struct module_kernel {
  std::vector<sim_argument> arguments;
  sim_kernel kernel;
};
struct module_kernels {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<module_kernel>> all;
};
module_kernels& modules() {
  static auto* m = new module_kernels;
  return *m;
}

// Null if a pointer leads where the device may not go.
std::shared_ptr<const launch> bind(const device& d, const sim_kernel& k, dim3 groups, dim3 group, void** args) {
  constexpr std::size_t unit = sizeof(std::max_align_t);
  const auto rounded = [](std::size_t n) { return (n + unit - 1) / unit * unit; };
  const auto l = std::make_shared<launch>(
      launch{k.invoke, k.barriers, groups, group, {}, {}, k.watch ? *k.watch : nullptr, k.launch});
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < k.argument_count; ++i) bytes += rounded(k.arguments[i].bytes);
  l->storage = std::make_unique<std::byte[]>(bytes);
  std::byte* at = l->storage.get();
  for (std::size_t i = 0; i < k.argument_count; at += rounded(k.arguments[i++].bytes)) {
    const auto& a = k.arguments[i];
    std::memcpy(at, args[i], a.bytes);
    l->arguments.push_back(at);
    void* address = nullptr;
    if (a.pointer) std::memcpy(&address, at, sizeof address);
    if (!address) continue;
    address = d.reach(address);
    if (!address) return nullptr;
    std::memcpy(at, &address, sizeof address);
  }
  return l;
}

void run_kernel(device& d, stream& s, const launch& l) {
  const auto begin = steady::now();
  this_thread().in_callback = true;
  const std::string why = s.runner().run(l);
  this_thread().in_callback = false;
  if (!why.empty()) {
    if (s.runner().left_an_array() && l.watch)
      l.watch->complaints->add(l.number, "kernel '" + l.watch->kernel + "': " + why);
    else
      d.fail(simErrorLaunchFailure, why);
  }
  if (const double us = d.in.options.launch_us; us > 0)
    std::this_thread::sleep_until(begin +
                                  std::chrono::ceil<steady::duration>(std::chrono::duration<double, std::micro>(us)));
}

}  // namespace

void sim_complaints::add(std::uint64_t launch, std::string text) {
  constexpr std::size_t kept_max = 1024;  // of those that nobody asks for
  const std::lock_guard lock(mutex_);
  if (all_.size() < kept_max) all_.emplace_back(launch, std::move(text));
  any_.store(true, std::memory_order_release);
}

std::string sim_complaints::take(std::uint64_t first, std::uint64_t last) {
  if (!any_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  std::string found;
  std::erase_if(all_, [&](auto& c) {
    if (c.first < first || c.first > last) return false;
    if (found.empty()) found = std::move(c.second);
    return true;
  });
  any_.store(!all_.empty(), std::memory_order_release);
  return found;
}

simError_t simGetDeviceCount(int* count) {
  return guarded([&] {
    *count = static_cast<int>(current_world()->devices.size());
    return *count ? simSuccess : simErrorNoDevice;
  });
}

simError_t simSetDevice(int index) {
  return guarded([&] {
    const auto w = current_world();
    if (w->devices.empty()) return simErrorNoDevice;
    if (index < 0 || static_cast<std::size_t>(index) >= w->devices.size()) return simErrorInvalidDevice;
    this_thread().device = index;
    return simSuccess;
  });
}

simError_t simGetDevice(int* index) {
  return guarded([&] {
    *index = this_thread().device;
    return current_world()->devices.empty() ? simErrorNoDevice : simSuccess;
  });
}

simError_t simGetDeviceProperties(simDeviceProp* to, int index) {
  return guarded([&] {
    const auto w = current_world();
    if (w->devices.empty()) return simErrorNoDevice;
    if (index < 0 || static_cast<std::size_t>(index) >= w->devices.size()) return simErrorInvalidDevice;
    *to = {.name = "troupe software GPU",
           .totalGlobalMem = w->devices[static_cast<std::size_t>(index)]->memory.capacity(),
           .multiProcessorCount = 1,
           .warpSize = 32,
           .maxThreadsPerBlock = static_cast<int>(group_items_max),
           .major = 1,
           .minor = 0,
           .doubles = w->options.doubles ? 1 : 0,

           .pageableCopiesBlock = w->options.pageable_blocks || w->options.pageable_gb_per_s > 0};
    return simSuccess;
  });
}

simError_t simDeviceGetPCIBusId(char* id, int length, int index) {
  return guarded([&] {
    const auto w = current_world();
    if (index < 0 || static_cast<std::size_t>(index) >= w->devices.size()) return simErrorInvalidDevice;
    char text[64];
    int n = std::snprintf(text, sizeof text, "soft:%d", index);
    if (const double speed = w->options.copy_gb_per_s; speed > 0)
      n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), ", %g GB/s", speed);
    if (const double speed = w->options.peer_gb_per_s; speed > 0)
      n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), ", peers %g GB/s", speed);
    if (!id || n >= length) return simErrorInvalidValue;
    std::memcpy(id, text, static_cast<std::size_t>(n) + 1);
    return simSuccess;
  });
}

simError_t simGetTraffic(sim_traffic* to, int index) {
  return guarded([&] {
    const auto w = current_world();
    if (index < 0 || static_cast<std::size_t>(index) >= w->devices.size()) return simErrorInvalidDevice;
    const device& d = *w->devices[static_cast<std::size_t>(index)];
    *to = {d.bytes_from_host, d.bytes_to_host, d.bytes_from_peers};
    return simSuccess;
  });
}

simError_t simDriverGetVersion(int* v) {
  return guarded([&] {
    *v = version;
    return simSuccess;
  });
}

simError_t simRuntimeGetVersion(int* v) { return simDriverGetVersion(v); }

simError_t simDeviceSynchronize() {
  return on_this_device("DeviceSynchronize", [](world&, device& d) {
    const auto all = d.streams();
    for (const auto& s : all)
      if (const auto c = s->capturing()) {
        c->invalidate();
        return simErrorStreamCaptureUnsupported;
      }
    for (const auto& s : all) s->wait();
    return d.error.load();
  });
}

simError_t simDeviceReset() {
  return guarded([] {
    const auto w = current_world();
    const auto index = static_cast<std::size_t>(this_thread().device);
    if (index >= w->devices.size()) return w->devices.empty() ? simErrorNoDevice : simErrorInvalidDevice;
    w->devices[index]->reset();
    this_thread().last_error = simSuccess;
    return simSuccess;
  });
}

simError_t simDeviceCanAccessPeer(int* can, int index, int peer) {
  return on_this_device("DeviceCanAccessPeer", [&](world& w, device&) {
    const auto count = static_cast<int>(w.devices.size());
    if (index < 0 || peer < 0 || index >= count || peer >= count) return simErrorInvalidDevice;
    *can = w.options.peer && index != peer;
    return simSuccess;
  });
}

simError_t simDeviceEnablePeerAccess(int peer, unsigned flags) {
  return on_this_device("DeviceEnablePeerAccess", [&](world& w, device& d) {
    if (flags != 0) return simErrorInvalidValue;
    if (peer < 0 || static_cast<std::size_t>(peer) >= w.devices.size()) return simErrorInvalidDevice;
    if (!w.options.peer || peer == d.index) return simErrorPeerAccessUnsupported;
    const auto bit = std::uint64_t{1} << peer;
    return d.peers.fetch_or(bit) & bit ? simErrorPeerAccessAlreadyEnabled : simSuccess;
  });
}

simError_t simKernelFromFunction(const void** kernel, sim_invoke invoke, const sim_argument* arguments,
                                 std::size_t count, bool barriers) {
  return guarded([&] {
    if (!kernel || !invoke || (count && !arguments)) return simErrorInvalidValue;
    for (std::size_t i = 0; i < count; ++i)
      if (arguments[i].bytes == 0 || (arguments[i].pointer && arguments[i].bytes != sizeof(void*)))
        return simErrorInvalidValue;
    auto m = std::make_unique<module_kernel>();
    m->arguments.assign(arguments, arguments + count);
    m->kernel = {.invoke = invoke, .arguments = m->arguments.data(), .argument_count = count, .barriers = barriers};
    *kernel = &m->kernel;
    const std::lock_guard lock(modules().mutex);
    modules().all.emplace(*kernel, std::move(m));
    return simSuccess;
  });
}

simError_t simKernelDestroy(const void* kernel) {
  return guarded([&] {
    const std::lock_guard lock(modules().mutex);
    return modules().all.erase(kernel) ? simSuccess : simErrorInvalidResourceHandle;
  });
}

simError_t simLaunchKernel(const void* kernel, dim3 groups, dim3 group, void** args, std::size_t local_bytes,
                           simStream_t in) {
  return on_stream("LaunchKernel", in, [&](device& d, stream& s) {
    if (d.index != this_thread().device) return simErrorInvalidResourceHandle;
    const auto* k = static_cast<const sim_kernel*>(kernel);
    if (!k || k->mark != sim_kernel::mark_of_kernels) return simErrorInvalidDeviceFunction;
    if (!valid(groups, group)) return simErrorInvalidConfiguration;
    if (local_bytes != 0) return simErrorNotSupported;
    if (k->argument_count && !args) return simErrorInvalidValue;
    if (auto l = bind(d, *k, groups, group, args))
      return pushed(s, {&d, false, [&d, l = std::move(l)](stream& on) { run_kernel(d, on, *l); }});
    return pushed(s, {&d, false, [&d](stream&) {
                        d.fail(simErrorIllegalAddress, "a kernel was given memory that its device may not use");
                      }});
  });
}

}  // namespace troupe::soft_gpu
