// What this file is for: the software GPU: the CUDA runtime's vocabulary under the prefix `sim`, run by this process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Calls, codes and orders are CUDA's (CUDA Runtime API 13.0); where sim differs, it is stricter: device memory cannot be
// read by the host, fresh memory is NaN, every copy is asynchronous, and what happens to work on CUDA is an error here.
// devices/sim/README.md says what is left out. All calls are thread-safe. Nothing aborts, prints or reads the environment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "devices/sim/item.h"

namespace troupe::soft_gpu {

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's, so that one source serves both

enum simError_t : int {
  simSuccess = 0,
  simErrorInvalidValue = 1,
  simErrorMemoryAllocation = 2,
  simErrorInvalidConfiguration = 9,
  simErrorInvalidPitchValue = 12,
  simErrorInsufficientDriver = 35,
  simErrorDevicesUnavailable = 46,  ///< the device is lost
  simErrorInvalidDeviceFunction = 98,
  simErrorNoDevice = 100,
  simErrorInvalidDevice = 101,
  simErrorPeerAccessUnsupported = 217,
  simErrorInvalidResourceHandle = 400,
  simErrorIllegalState = 401,
  simErrorNotReady = 600,
  simErrorIllegalAddress = 700,
  simErrorPeerAccessAlreadyEnabled = 704,
  simErrorHostMemoryAlreadyRegistered = 712,
  simErrorHostMemoryNotRegistered = 713,
  simErrorLaunchFailure = 719,
  simErrorNotPermitted = 800,
  simErrorNotSupported = 801,
  simErrorStreamCaptureUnsupported = 900,
  simErrorStreamCaptureInvalidated = 901,
  simErrorStreamCaptureMerge = 902,
  simErrorStreamCaptureUnmatched = 903,
  simErrorStreamCaptureUnjoined = 904,
  simErrorStreamCaptureIsolation = 905,
  simErrorCapturedEvent = 907,
};

/// Handles are numbers that are never given twice: one that is dead answers simErrorInvalidResourceHandle.
using simStream_t = struct simStream*;  ///< null: the device's own stream, which does not wait for the others
using simEvent_t = struct simEvent*;
using simGraph_t = struct simGraph*;
using simGraphExec_t = struct simGraphExec*;
using simHostFn_t = void (*)(void*);

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

enum simMemcpyKind : int {
  simMemcpyHostToHost = 0,
  simMemcpyHostToDevice = 1,
  simMemcpyDeviceToHost = 2,
  simMemcpyDeviceToDevice = 3,
  simMemcpyDefault = 4,
};

enum simStreamCaptureMode : int {  ///< all modes are as relaxed
  simStreamCaptureModeGlobal = 0,
  simStreamCaptureModeThreadLocal = 1,
  simStreamCaptureModeRelaxed = 2,
};

enum simMemoryType : int {
  simMemoryTypeUnregistered = 0,  ///< the host's, pageable
  simMemoryTypeHost = 1,          ///< the host's, pinned
  simMemoryTypeDevice = 2,
};
struct simPointerAttributes {
  simMemoryType type;
  int device;  ///< -1: the host's
};

inline constexpr unsigned simHostRegisterDefault = 0, simHostRegisterPortable = 1;  ///< always portable
inline constexpr unsigned simStreamDefault = 0, simStreamNonBlocking = 1;
inline constexpr unsigned simEventDefault = 0, simEventBlockingSync = 1, simEventDisableTiming = 2;

struct simDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int multiProcessorCount;
  int warpSize;
  int maxThreadsPerBlock;
  int major, minor;
  int doubles;              ///< 0: kernels should not use them
  int pageableCopiesBlock;  ///< as configured; no field of CUDA's, where they do
};

// ---- options --------------------------------------------------------------------------------------------------------

/// Something that goes wrong at the `nth` call (from 1) of `call` ("MallocAsync", "LaunchKernel", ...).
struct sim_fault {
  std::string call{};
  int nth = 1;
  int device = -1;                              ///< -1: calls on any device count
  simError_t error = simErrorMemoryAllocation;  ///< what the call answers
  bool sticky = false;                          ///< the operation, once it runs, breaks its device with `error`
  bool lost = false;                            ///< the device is gone at once: simErrorDevicesUnavailable
  bool hang = false;                            ///< the operation does not end before the device is reset
};

struct sim_options {
  int devices = 2;  ///< 0: as on a machine without
  std::size_t memory_bytes = std::size_t{256} << 20;
  double copy_gb_per_s = 0;      ///< a link per device and direction, shared by its copies; 0: no limit
  bool pageable_blocks = false;  ///< a copy from or to pageable memory holds its caller until it has ended
  double pageable_gb_per_s = 0;  ///< such a copy is no faster, beside its link's limit; 0: no limit
  double launch_us = 0;          ///< a kernel lasts at least so long
  std::uint64_t seed = 0;        ///< random delays between operations; 0: none
  bool doubles = true;           ///< what devices say of themselves; kernels with doubles run all the same
  bool peer = false;             ///< devices can reach each other's memory, where it is enabled
  double peer_gb_per_s = 0;      ///< a link per device for copies between devices; 0: as copy_gb_per_s
  std::vector<sim_fault> faults{};
  std::function<void(std::string)> log{};  ///< findings for people, from any thread; must not call sim
};

/// Closes all devices and opens new ones. Nothing of sim may be in use. simErrorNotPermitted while streams are alive.
simError_t simConfigure(sim_options);
/// Bytes that have gone over the links of a device since simConfigure, as a person with a probe would see them.
struct sim_traffic {
  std::uint64_t from_host = 0, to_host = 0;
  std::uint64_t from_peers = 0;  ///< directly
};
simError_t simGetTraffic(sim_traffic*, int device);
/// The link of a device has this speed from now on, whatever is under way; 0: no limit. Its bus id stays as it was.
simError_t simThrottle(int device, double copy_gb_per_s);

// ---- kernels --------------------------------------------------------------------------------------------------------

struct sim_argument {
  std::size_t bytes;
  bool pointer;  ///< to device memory: the kernel is given an address it can use
};

/// Called once per work-item; args[i] points to the bytes of the i-th argument.
using sim_invoke = void (*)(const troupe_sim_item*, void** args);

/// What kernels were about to touch outside of the arrays that they were given, by the numbers of their launches, which
/// who launches them counts. Such a launch ends there, and the stream goes on. Thread-safe.
class sim_complaints {
 public:
  void add(std::uint64_t launch, std::string text);
  /// The first of the launches [first, last], all of which are forgotten; empty: there is none.
  std::string take(std::uint64_t first, std::uint64_t last);

 private:
  std::atomic<bool> any_ = false;
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::string>> all_;
};
/// To whom a kernel's accesses outside of its arrays are told, and by which name.
struct sim_watch {
  std::shared_ptr<sim_complaints> complaints;
  std::string kernel;
};

/// A kernel's descriptor; its address is what simLaunchKernel takes. Needed no longer than the call of simLaunchKernel.
struct sim_kernel {
  static constexpr std::uint64_t mark_of_kernels = 0x6c656e72656b6d73;
  std::uint64_t mark = mark_of_kernels;
  sim_invoke invoke = nullptr;
  const sim_argument* arguments = nullptr;
  std::size_t argument_count = 0;
  bool barriers = false;  ///< without, work-items run as a plain loop, about fifty times faster
  const std::shared_ptr<const sim_watch>* watch = nullptr;  ///< null: accesses outside of arrays break the device (719)
  std::uint64_t launch = 0;                                 ///< the number that complaints bear
};

/// Makes the descriptor of a kernel known by its address only. `invoke` must stay until its launches have run.
simError_t simKernelFromFunction(const void** kernel, sim_invoke, const sim_argument*, std::size_t count,
                                 bool barriers);
simError_t simKernelDestroy(const void* kernel);

/// The work-item that runs on this thread. Only inside a kernel.
const troupe_sim_item& self() noexcept;
inline void barrier() { self().barrier(&self()); }
template <class T>
T* local_memory(const void* key, std::size_t count) {
  return static_cast<T*>(self().local_memory(&self(), key, count * sizeof(T)));
}

namespace detail {
template <class... A>
inline constexpr std::array<sim_argument, sizeof...(A) + 1> arguments{sim_argument{sizeof(A), std::is_pointer_v<A>}...,
                                                                      sim_argument{0, false}};

template <auto F, class... A, std::size_t... I>
void invoke_with(void** args, std::index_sequence<I...>) {
  F(*static_cast<std::remove_cv_t<A>*>(args[I])...);
}
template <auto F, class... A>
void invoke(const troupe_sim_item*, void** args) {
  invoke_with<F, A...>(args, std::index_sequence_for<A...>{});
}
template <auto F, class... A>
constexpr sim_kernel describe(void (*)(A...), bool barriers) {
  static_assert((std::is_trivially_copyable_v<A> && ...), "arguments of kernels are copied as bytes");
  return {.invoke = &invoke<F, A...>,
          .arguments = arguments<A...>.data(),
          .argument_count = sizeof...(A),
          .barriers = barriers};
}
}  // namespace detail

/// The descriptor of a function of this program: simLaunchKernel(&kernel<&axpy>, ...).
template <auto F, bool Barriers = false>
inline constexpr sim_kernel kernel = detail::describe<F>(F, Barriers);

/// Arguments are copied, and pointers translated, before it returns.
simError_t simLaunchKernel(const void* kernel, dim3 groups, dim3 group, void** args, std::size_t local_bytes,
                           simStream_t);

// ---- devices and errors ---------------------------------------------------------------------------------------------

simError_t simGetDeviceCount(int*);
simError_t simSetDevice(int);
simError_t simGetDevice(int*);
simError_t simGetDeviceProperties(simDeviceProp*, int device);
/// "soft:0"; with limited links their speeds too, because measurements are remembered by this: "soft:0, 2 GB/s".
simError_t simDeviceGetPCIBusId(char* id, int length, int device);
simError_t simDriverGetVersion(int*);
simError_t simRuntimeGetVersion(int*);
simError_t simDeviceSynchronize();
/// Gives up what is queued, frees memory, streams, events and graphs of the device, and cures it. Ends hanging
/// operations; host functions and events still complete.
simError_t simDeviceReset();
simError_t simDeviceCanAccessPeer(int* can, int device, int peer);
simError_t simDeviceEnablePeerAccess(int peer, unsigned flags);
simError_t simGetLastError();
simError_t simPeekAtLastError();
const char* simGetErrorName(simError_t);
const char* simGetErrorString(simError_t);

// ---- memory ---------------------------------------------------------------------------------------------------------

simError_t simMalloc(void**, std::size_t);
simError_t simFree(void*);
simError_t simMallocAsync(void**, std::size_t, simStream_t);
simError_t simFreeAsync(void*, simStream_t);
simError_t simMallocHost(void**, std::size_t);
simError_t simFreeHost(void*);
/// Pins memory that the caller keeps. Its pages are pinned until simHostUnregister or simConfigure, whatever is reset.
simError_t simHostRegister(void*, std::size_t, unsigned flags);
simError_t simHostUnregister(void*);
simError_t simPointerGetAttributes(simPointerAttributes*, const void*);
/// Bytes of the host that are pinned now, and the most there ever were since the last simConfigure.
simError_t simPinnedBytes(std::size_t* now, std::size_t* most);
simError_t simMemGetInfo(std::size_t* free, std::size_t* total);
simError_t simMemcpyAsync(void* to, const void* from, std::size_t, simMemcpyKind, simStream_t);
simError_t simMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                            std::size_t height, simMemcpyKind, simStream_t);
simError_t simMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t, simStream_t);
simError_t simMemsetAsync(void*, int value, std::size_t, simStream_t);

// ---- streams, events, graphs ----------------------------------------------------------------------------------------

simError_t simStreamCreateWithFlags(simStream_t*, unsigned flags);
simError_t simStreamSynchronize(simStream_t);
simError_t simStreamQuery(simStream_t);
simError_t simStreamWaitEvent(simStream_t, simEvent_t, unsigned flags = 0);
simError_t simStreamDestroy(simStream_t);
simError_t simLaunchHostFunc(simStream_t, simHostFn_t, void*);

simError_t simEventCreateWithFlags(simEvent_t*, unsigned flags);
simError_t simEventRecord(simEvent_t, simStream_t);
simError_t simEventQuery(simEvent_t);
simError_t simEventSynchronize(simEvent_t);
simError_t simEventElapsedTime(float* ms, simEvent_t from, simEvent_t to);
simError_t simEventDestroy(simEvent_t);

simError_t simStreamBeginCapture(simStream_t, simStreamCaptureMode);
simError_t simStreamEndCapture(simStream_t, simGraph_t*);
simError_t simGraphInstantiateWithFlags(simGraphExec_t*, simGraph_t, unsigned long long flags);
simError_t simGraphLaunch(simGraphExec_t, simStream_t);
simError_t simGraphDestroy(simGraph_t);
simError_t simGraphExecDestroy(simGraphExec_t);

// NOLINTEND(readability-identifier-naming)

}  // namespace troupe::soft_gpu
