// What this file is for: the words of devices/gpu/*.gpu.* for the software GPU. The macros are private to devices/gpu.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "devices/rtc/compiler.hpp"
#include "devices/rtc/host_module.hpp"
#include "devices/rtc/text.hpp"
#include "devices/sim/sim.h"

#define GPU_NS sim_build
#define GPU_NAME "sim"
#define GPU(x) ::troupe::soft_gpu::sim##x

namespace troupe::devices::gpu::sim_build {

using troupe::soft_gpu::dim3;
inline constexpr device_kind this_kind = device_kind::sim;
inline constexpr bool fills_by_kernel = false;  // starting the host's compiler for it would take longer than it saves
inline constexpr bool handles_outlive_reset = true;  // they are numbers, dead ones are told
inline constexpr int takes_cores = 1;
inline constexpr bool reset_ends_hangs = true;
using device_properties = troupe::soft_gpu::simDeviceProp;

inline troupe::soft_gpu::simError_t malloc_pinned(void** p, std::size_t n) {
  return troupe::soft_gpu::simMallocHost(p, n);
}
inline troupe::soft_gpu::simError_t free_pinned(void* p) { return troupe::soft_gpu::simFreeHost(p); }
inline bool has_double(const device_properties& p) { return p.doubles != 0; }
inline troupe::soft_gpu::simError_t pin(void* p, std::size_t bytes) {
  return troupe::soft_gpu::simHostRegister(p, bytes, troupe::soft_gpu::simHostRegisterPortable);
}
/// Only where it is configured to: else every copy runs beside its caller.
inline bool gains_by_pinning(const device_properties& p) { return p.pageableCopiesBlock != 0; }
inline bool is_pinned(const void* p) {
  troupe::soft_gpu::simPointerAttributes a{};
  return troupe::soft_gpu::simPointerGetAttributes(&a, p) == troupe::soft_gpu::simSuccess &&
         a.type != troupe::soft_gpu::simMemoryTypeUnregistered;
}
inline std::string target_of(const device_properties&) { return "host"; }
inline std::unique_ptr<rtc::compiler> open_compiler(const rtc::settings& s, std::string& why) {
  return rtc::open_host_compiler(s, why);
}

/// Calls F(argument, well) on the stream's thread; the stream goes on behind it.
inline constexpr const char* host_call = "LaunchHostFunc";
template <void (*F)(void*, bool)>
troupe::soft_gpu::simError_t call_on_host(troupe::soft_gpu::simStream_t s, void* argument) {
  return troupe::soft_gpu::simLaunchHostFunc(
      s, [](void* p) { F(p, true); }, argument);
}

/// Its allocator has no pools, and no need of them.
struct memory_pool {
  troupe::soft_gpu::simError_t open(int) { return troupe::soft_gpu::simSuccess; }
  troupe::soft_gpu::simError_t open_to(int) const { return troupe::soft_gpu::simSuccess; }
  void close() {}
  troupe::soft_gpu::simError_t allocate(void** p, std::size_t n, troupe::soft_gpu::simStream_t s) const {
    return troupe::soft_gpu::simMallocAsync(p, n, s);
  }
  troupe::soft_gpu::simError_t free(void* p, troupe::soft_gpu::simStream_t s) const {
    return troupe::soft_gpu::simFreeAsync(p, s);
  }
};

/// What kernels touch outside of their arrays.
struct complaint_book {
  std::shared_ptr<troupe::soft_gpu::sim_complaints> all = std::make_shared<troupe::soft_gpu::sim_complaints>();

  std::string take(std::uint64_t first, std::uint64_t last) { return all->take(first, last); }
};

/// One compiled kernel.
struct loaded_kernel {
  rtc::host_module module;
  std::vector<troupe::soft_gpu::sim_argument> arguments;
  std::optional<std::vector<rtc::parameter>> parameters;
  std::shared_ptr<const troupe::soft_gpu::sim_watch> watch;

  troupe::soft_gpu::simError_t load(std::span<const std::byte> binary, const kernel_source& source,
                                    const rtc::settings& s) {
    module = rtc::open_host_module(binary, s.scratch);
    if (!module.library) return troupe::soft_gpu::simErrorInvalidDeviceFunction;
    parameters.emplace();
    for (std::size_t i = 0; i < module.argument_count; ++i) {
      const auto& a = module.arguments[i];
      arguments.push_back({a.bytes, a.pointer});
      parameters->push_back({a.pointer, a.bytes, {}, a.element});
    }
    if (const auto read = rtc::parameters_of(source.text, source.entry); read && read->size() == parameters->size())
      for (std::size_t i = 0; i < read->size(); ++i) (*parameters)[i].array = (*read)[i].array;
    return troupe::soft_gpu::simSuccess;
  }
  void unload() { rtc::close_host_module(module); }
  void watch_by(complaint_book& b, std::string_view name) {
    watch = std::make_shared<troupe::soft_gpu::sim_watch>(b.all, std::string(name));
  }
  troupe::soft_gpu::simError_t launch(dim3 groups, dim3 group, void** args, troupe::soft_gpu::simStream_t s,
                                      std::uint64_t number) const {
    troupe::soft_gpu::sim_kernel k;
    k.watch = &watch;
    k.launch = number;
    k.invoke = module.invoke;
    k.arguments = arguments.data();
    k.argument_count = arguments.size();
    k.barriers = module.barriers;
    return troupe::soft_gpu::simLaunchKernel(&k, groups, group, args, 0, s);
  }
};

inline constexpr bool captures_calls = true;
/// What was enqueued on a stream once, to be enqueued again as one.
struct captured_calls {
  troupe::soft_gpu::simGraphExec_t calls = nullptr;

  static troupe::soft_gpu::simError_t begin(troupe::soft_gpu::simStream_t s) {
    return troupe::soft_gpu::simStreamBeginCapture(s, troupe::soft_gpu::simStreamCaptureModeRelaxed);
  }
  troupe::soft_gpu::simError_t end(troupe::soft_gpu::simStream_t s) {
    troupe::soft_gpu::simGraph_t graph = nullptr;
    if (const auto e = troupe::soft_gpu::simStreamEndCapture(s, &graph)) return e;
    const auto e = troupe::soft_gpu::simGraphInstantiateWithFlags(&calls, graph, 0);
    (void)troupe::soft_gpu::simGraphDestroy(graph);
    return e;
  }
  troupe::soft_gpu::simError_t launch(troupe::soft_gpu::simStream_t s) const {
    return troupe::soft_gpu::simGraphLaunch(calls, s);
  }
  bool is_empty() const { return calls == nullptr; }
  void drop() {
    if (calls) (void)troupe::soft_gpu::simGraphExecDestroy(calls);
    calls = nullptr;
  }
};

}  // namespace troupe::devices::gpu::sim_build
