// What this file is for: the words of devices/gpu/*.gpu.* for CUDA. The macros are private to devices/gpu.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "devices/rtc/compiler.hpp"
#include "devices/rtc/text.hpp"

#define GPU_NS cuda_build
#define GPU_NAME "cuda"
#define GPU(x) cuda##x

namespace troupe::devices::gpu::cuda_build {

inline constexpr device_kind this_kind = device_kind::cuda;
inline constexpr bool fills_by_kernel = true;
inline constexpr bool handles_outlive_reset = false;  // they are pointers
inline constexpr int takes_cores = 0;
inline constexpr bool reset_ends_hangs = false;       // it would wait for them
using device_properties = cudaDeviceProp;

inline cudaError_t malloc_pinned(void** p, std::size_t bytes) { return cudaMallocHost(p, bytes); }
inline cudaError_t free_pinned(void* p) { return cudaFreeHost(p); }
inline bool has_double(const cudaDeviceProp&) { return true; }
inline cudaError_t pin(void* p, std::size_t bytes) { return cudaHostRegister(p, bytes, cudaHostRegisterPortable); }
/// Copies from and to pageable memory hold their caller.
inline bool gains_by_pinning(const cudaDeviceProp&) { return true; }
inline bool is_pinned(const void* p) {
  cudaPointerAttributes a{};
  return cudaPointerGetAttributes(&a, p) == cudaSuccess && a.type != cudaMemoryTypeUnregistered;
}
inline std::string target_of(const cudaDeviceProp& p) {
  return "sm_" + std::to_string(p.major) + std::to_string(p.minor);
}
inline std::unique_ptr<rtc::compiler> open_compiler(const rtc::settings& s, std::string& why) {
  return rtc::open_nvrtc(s, why);
}

/// Calls F(argument, well) on a thread of the driver once the stream has come so far; the stream goes on behind it.
inline constexpr const char* host_call = "LaunchHostFunc";
template <void (*F)(void*, bool)>
cudaError_t call_on_host(cudaStream_t s, void* argument) {
  return cudaLaunchHostFunc(
      s, [](void* p) { F(p, true); }, argument);
}

/// A pool of its own, which keeps what is freed and ends with the device.
struct memory_pool {
  cudaMemPool_t pool = nullptr;

  cudaError_t open(int device) {
    int there = 0;
    if (const auto e = cudaDeviceGetAttribute(&there, cudaDevAttrMemoryPoolsSupported, device)) return e;
    if (!there) return cudaSuccess;
    cudaMemPoolProps p{};
    p.allocType = cudaMemAllocationTypePinned;
    p.location.type = cudaMemLocationTypeDevice;
    p.location.id = device;
    if (const auto e = cudaMemPoolCreate(&pool, &p)) return e;
    std::uint64_t keep = UINT64_MAX;
    return cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
  }
  /// Another device may use its memory: pools do not follow what is enabled for devices.
  cudaError_t open_to(int device) const {
    if (!pool) return cudaSuccess;
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = device;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    return cudaMemPoolSetAccess(pool, &access, 1);
  }
  void close() {
    if (pool) (void)cudaMemPoolDestroy(pool);
    pool = nullptr;
  }
  // Without pools memory is had and given back at once, which waits for the device: right, but slow.
  cudaError_t allocate(void** p, std::size_t bytes, cudaStream_t s) const {
    return pool ? cudaMallocFromPoolAsync(p, bytes, pool, s) : cudaMalloc(p, bytes);
  }
  cudaError_t free(void* p, cudaStream_t s) const { return pool ? cudaFreeAsync(p, s) : cudaFree(p); }
};

/// Kernels are not watched.
struct complaint_book {
  static std::string take(std::uint64_t, std::uint64_t) { return {}; }
};

/// One compiled kernel.
struct loaded_kernel {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  std::optional<std::vector<rtc::parameter>> parameters;

  cudaError_t load(std::span<const std::byte> binary, const kernel_source& source, const rtc::settings&) {
    parameters = rtc::parameters_of(source.text, source.entry);
    if (const auto e = cudaLibraryLoadData(&library, binary.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)) return e;
    return cudaLibraryGetKernel(&kernel, library, std::string(source.entry).c_str());
  }
  static void watch_by(const complaint_book&, std::string_view) {}
  void unload() {
    if (library) (void)cudaLibraryUnload(library);
    library = nullptr;
  }
  cudaError_t launch(dim3 groups, dim3 group, void** arguments, cudaStream_t s, std::uint64_t) const {
    return cudaLaunchKernel(static_cast<const void*>(kernel), groups, group, arguments, 0, s);
  }
};

inline constexpr bool captures_calls = true;
/// What was enqueued on a stream once, to be enqueued again as one.
struct captured_calls {
  cudaGraphExec_t calls = nullptr;

  static cudaError_t begin(cudaStream_t s) { return cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed); }
  cudaError_t end(cudaStream_t s) {
    cudaGraph_t graph = nullptr;
    if (const auto e = cudaStreamEndCapture(s, &graph)) return e;
    const auto e = cudaGraphInstantiateWithFlags(&calls, graph, 0);
    (void)cudaGraphDestroy(graph);
    return e;
  }
  cudaError_t launch(cudaStream_t s) const { return cudaGraphLaunch(calls, s); }
  bool is_empty() const { return calls == nullptr; }
  void drop() {
    if (calls) (void)cudaGraphExecDestroy(calls);
    calls = nullptr;
  }
};

}  // namespace troupe::devices::gpu::cuda_build
