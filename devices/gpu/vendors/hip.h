// What this file is for: the words of devices/gpu/*.gpu.* for HIP. The macros are private to devices/gpu.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <hip/hip_runtime_api.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "devices/rtc/compiler.hpp"
#include "devices/rtc/text.hpp"

#define GPU_NS hip_build
#define GPU_NAME "hip"
#define GPU(x) hip##x

namespace troupe::devices::gpu::hip_build {

inline constexpr device_kind this_kind = device_kind::hip;
inline constexpr bool fills_by_kernel = true;
inline constexpr bool handles_outlive_reset = false;  // they are pointers
inline constexpr int takes_cores = 0;
inline constexpr bool reset_ends_hangs = false;       // it would wait for them
using device_properties = hipDeviceProp_t;

inline hipError_t malloc_pinned(void** p, std::size_t bytes) { return hipHostMalloc(p, bytes, hipHostMallocDefault); }
inline hipError_t free_pinned(void* p) { return hipHostFree(p); }
inline bool has_double(const hipDeviceProp_t&) { return true; }
inline hipError_t pin(void* p, std::size_t bytes) { return hipHostRegister(p, bytes, hipHostRegisterPortable); }
/// Copies from and to pageable memory hold their caller.
inline bool gains_by_pinning(const hipDeviceProp_t&) { return true; }
/// Of pageable memory HIP knows nothing, which is an error.
inline bool is_pinned(const void* p) {
  hipPointerAttribute_t a{};
  return hipPointerGetAttributes(&a, p) == hipSuccess;
}
inline std::string target_of(const hipDeviceProp_t& p) { return p.gcnArchName; }  // gfx90a:sramecc+:xnack-
inline std::unique_ptr<rtc::compiler> open_compiler(const rtc::settings&, std::string& why) {
  return rtc::open_hiprtc(why);
}

/// Calls F(argument, well) on a thread of the driver once the stream has come so far; the stream goes on behind it. Why
/// not LaunchHostFunc: HIP 5.2 declares it, and AMD's library has no such function.
inline constexpr const char* host_call = "StreamAddCallback";
template <void (*F)(void*, bool)>
hipError_t call_on_host(hipStream_t s, void* argument) {
  return hipStreamAddCallback(
      s, [](hipStream_t, hipError_t code, void* p) { F(p, code == hipSuccess); }, argument, 0);
}

/// A pool of its own, which keeps what is freed and ends with the device.
struct memory_pool {
  hipMemPool_t pool = nullptr;

  hipError_t open(int device) {
    int there = 0;
    if (const auto e = hipDeviceGetAttribute(&there, hipDeviceAttributeMemoryPoolsSupported, device)) return e;
    if (!there) return hipSuccess;
    hipMemPoolProps p{};
    p.allocType = hipMemAllocationTypePinned;
    p.location.type = hipMemLocationTypeDevice;
    p.location.id = device;
    if (const auto e = hipMemPoolCreate(&pool, &p)) return e;
    std::uint64_t keep = UINT64_MAX;
    return hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep);
  }
  /// Another device may use its memory: pools do not follow what is enabled for devices.
  hipError_t open_to(int device) const {
    if (!pool) return hipSuccess;
    hipMemAccessDesc access{};
    access.location.type = hipMemLocationTypeDevice;
    access.location.id = device;
    access.flags = hipMemAccessFlagsProtReadWrite;
    return hipMemPoolSetAccess(pool, &access, 1);
  }
  void close() {
    if (pool) (void)hipMemPoolDestroy(pool);
    pool = nullptr;
  }
  // Without pools memory is had and given back at once, which waits for the device: right, but slow.
  hipError_t allocate(void** p, std::size_t bytes, hipStream_t s) const {
    return pool ? hipMallocFromPoolAsync(p, bytes, pool, s) : hipMalloc(p, bytes);
  }
  hipError_t free(void* p, hipStream_t s) const { return pool ? hipFreeAsync(p, s) : hipFree(p); }
};

/// Kernels are not watched.
struct complaint_book {
  static std::string take(std::uint64_t, std::uint64_t) { return {}; }
};

/// One compiled kernel.
struct loaded_kernel {
  hipModule_t module = nullptr;
  hipFunction_t kernel = nullptr;
  std::optional<std::vector<rtc::parameter>> parameters;

  hipError_t load(std::span<const std::byte> binary, const kernel_source& source, const rtc::settings&) {
    parameters = rtc::parameters_of(source.text, source.entry);
    if (const auto e = hipModuleLoadData(&module, binary.data())) return e;
    return hipModuleGetFunction(&kernel, module, std::string(source.entry).c_str());
  }
  static void watch_by(const complaint_book&, std::string_view) {}
  void unload() {
    if (module) (void)hipModuleUnload(module);
    module = nullptr;
  }
  hipError_t launch(dim3 groups, dim3 group, void** arguments, hipStream_t s, std::uint64_t) const {
    return hipModuleLaunchKernel(kernel, groups.x, groups.y, groups.z, group.x, group.y, group.z, 0, s, arguments,
                                 nullptr);
  }
};

#ifdef __HIP_PLATFORM_AMD__
inline constexpr bool captures_calls = true;
/// What was enqueued on a stream once, to be enqueued again as one.
struct captured_calls {
  hipGraphExec_t calls = nullptr;

  static hipError_t begin(hipStream_t s) { return hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed); }
  hipError_t end(hipStream_t s) {
    hipGraph_t graph = nullptr;
    if (const auto e = hipStreamEndCapture(s, &graph)) return e;
    const auto e = hipGraphInstantiateWithFlags(&calls, graph, 0);
    (void)hipGraphDestroy(graph);
    return e;
  }
  hipError_t launch(hipStream_t s) const { return hipGraphLaunch(calls, s); }
  bool is_empty() const { return calls == nullptr; }
  void drop() {
    if (calls) (void)hipGraphExecDestroy(calls);
    calls = nullptr;
  }
};
#else
// HIP's headers for NVIDIA have no graphs.
inline constexpr bool captures_calls = false;
struct captured_calls {
  static hipError_t begin(hipStream_t) { return hipErrorNotSupported; }
  static hipError_t end(hipStream_t) { return hipErrorNotSupported; }
  static hipError_t launch(hipStream_t) { return hipErrorNotSupported; }
  static bool is_empty() { return true; }
  void drop() {}
};
#endif

}  // namespace troupe::devices::gpu::hip_build
