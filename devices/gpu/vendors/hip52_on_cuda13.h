// What this file is for: HIP 5.2's headers for NVIDIA with CUDA 13, which lacks some of what they name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included by the compiler before everything else, under nvcc only (TROUPE_HIP_ON_NVIDIA). What the backend does not
// call need not work, it must only compile.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000

// ---- fields that the properties of a device have lost
struct troupe_device_properties : cudaDeviceProp {
  int clockRate, memoryClockRate, computeMode, cooperativeMultiDeviceLaunch, kernelExecTimeoutEnabled;
};
inline cudaError_t troupe_get_device_properties(troupe_device_properties* p, int device) {
  const cudaError_t code = cudaGetDeviceProperties(p, device);
  if (code != cudaSuccess) return code;
  p->cooperativeMultiDeviceLaunch = 0;
  const struct {
    int* value;
    cudaDeviceAttr which;
  } lost[] = {{&p->clockRate, cudaDevAttrClockRate},
              {&p->memoryClockRate, cudaDevAttrMemoryClockRate},
              {&p->computeMode, cudaDevAttrComputeMode},
              {&p->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout}};
  for (const auto& one : lost)
    if (const cudaError_t failed = cudaDeviceGetAttribute(one.value, one.which, device)) return failed;
  return cudaSuccess;
}
#define cudaDeviceProp troupe_device_properties
#define cudaGetDeviceProperties troupe_get_device_properties
#define cudaDevAttrCooperativeMultiDeviceLaunch cudaDevAttrCooperativeLaunch

// ---- functions with their former parameters
inline cudaMemLocation troupe_location(int device) {
  cudaMemLocation where{};
  where.type = device < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  where.id = device < 0 ? 0 : device;
  return where;
}
inline cudaError_t cudaMemAdvise(const void* p, size_t bytes, cudaMemoryAdvise advice, int device) {
  return cudaMemAdvise(p, bytes, advice, troupe_location(device));
}
inline cudaError_t cudaMemPrefetchAsync(const void* p, size_t bytes, int device, cudaStream_t s) {
  return cudaMemPrefetchAsync(p, bytes, troupe_location(device), 0, s);
}
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                            size_t n) {
  return cudaGraphAddDependencies(g, from, to, nullptr, n);
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t g, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                               size_t n) {
  return cudaGraphRemoveDependencies(g, from, to, nullptr, n);
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t g, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* n) {
  return cudaGraphGetEdges(g, from, to, nullptr, n);
}
inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* all, size_t* n) {
  return cudaGraphNodeGetDependencies(node, all, nullptr, n);
}
inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* all, size_t* n) {
  return cudaGraphNodeGetDependentNodes(node, all, nullptr, n);
}
inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t* all, size_t n, unsigned flags) {
  return cudaStreamUpdateCaptureDependencies(s, all, nullptr, n, flags);
}
inline cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, cudaStreamCaptureStatus* status,
                                               unsigned long long* id = nullptr, cudaGraph_t* g = nullptr,
                                               const cudaGraphNode_t** all = nullptr, size_t* n = nullptr) {
  return cudaStreamGetCaptureInfo(s, status, id, g, all, nullptr, n);
}
#undef cuCtxCreate
inline CUresult cuCtxCreate(CUcontext* made, unsigned flags, CUdevice device) {
  return cuCtxCreate_v4(made, nullptr, flags, device);
}

// ---- what is gone
template <class T, int Dimensions, cudaTextureReadMode Mode>
struct texture;
struct textureReference;
template <class... Any>
cudaError_t cudaBindTexture(Any&&...) {
  return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaBindTexture2D(Any&&...) {
  return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaBindTextureToArray(Any&&...) {
  return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaUnbindTexture(Any&&...) {
  return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaGetTextureAlignmentOffset(Any&&...) {
  return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaLaunchCooperativeKernelMultiDevice(Any&&...) {
  return cudaErrorNotSupported;
}

#endif

// ---- what HIP 5.2 has for AMD only
#include <hip/hip_runtime_api.h>
#include <cstdio>

#define hipMemAllocationTypePinned cudaMemAllocationTypePinned
#define hipMemAccessFlagsProtReadWrite cudaMemAccessFlagsProtReadWrite
#define hipMemLocationTypeDevice cudaMemLocationTypeDevice
#define hipMemPoolAttrReleaseThreshold cudaMemPoolAttrReleaseThreshold

inline hipError_t troupe_hip_device_attribute(int* value, hipDeviceAttribute_t which, int device) {
  if (which == hipDeviceAttributeMemoryPoolsSupported)
    return hipCUDAErrorTohipError(cudaDeviceGetAttribute(value, cudaDevAttrMemoryPoolsSupported, device));
  return hipDeviceGetAttribute(value, which, device);
}
#define hipDeviceGetAttribute troupe_hip_device_attribute

// The backend compiles kernels for what is said here.
inline hipError_t troupe_hip_device_properties(hipDeviceProp_t* p, int device) {
  const hipError_t code = hipGetDeviceProperties(p, device);
  if (code == hipSuccess) std::snprintf(p->gcnArchName, sizeof p->gcnArchName, "sm_%d%d", p->major, p->minor);
  return code;
}
#define hipGetDeviceProperties troupe_hip_device_properties
