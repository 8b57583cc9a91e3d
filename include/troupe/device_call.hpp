// What this file is for: bodies that drive a device themselves: a vendor's library inside the flow of data.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Needs no vendor's header: what is the vendor's is passed as a pointer that the body casts.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>

#include <troupe/scope.hpp>

namespace troupe {

/// What a routine is given besides its arguments. Valid during the call, on its thread. The thread's current device
/// (cudaSetDevice, hipSetDevice) is the one that the call is for.
///
/// The routine enqueues its work on `lane()` and returns without waiting for it. What it reads is there for work on that
/// lane, and whoever comes after it waits for the lane; work on other streams must be joined to it by events, in both
/// directions. A routine that blocks stops the device's other tasks meanwhile. What it throws fails the task.
class device_call {
 public:
  virtual device_kind kind() const = 0;
  /// Among the devices of its kind.
  virtual int device() const = 0;
  /// cudaStream_t, hipStream_t or cl_command_queue.
  virtual void* lane() const = 0;
  /// Device memory for this call, at least 256-aligned, not initialised; as the views', it is a cl_mem for OpenCL. Throws
  /// error(out_of_memory). Of zero bytes: null.
  virtual void* scratch(std::size_t bytes) = 0;
  /// True once somebody asked for the task or its runtime to stop.
  virtual bool stop_requested() const = 0;

  /// One T for each device, made at the first call there and destroyed when the device is closed: a library's handle. Its
  /// constructor takes nothing or a `device_call&`.
  template <class T>
  T& state() {
    static constexpr char key = 0;
    std::shared_ptr<void>& s = slot(&key);
    if (!s) {
      if constexpr (std::is_constructible_v<T, device_call&>)
        s = std::make_shared<T>(*this);
      else
        s = std::make_shared<T>();
    }
    return *static_cast<T*>(s.get());
  }

 protected:
  virtual std::shared_ptr<void>& slot(const void* key) = 0;
  ~device_call() = default;
};

/// A body for accelerators that enqueues its work itself: `kernel.on(cuda, routine<&f>)`, where f is
/// `void(device_call&, view..., scalar...)` with the views and scalars of the kernel's signature. A view's `data()` is
/// device memory: not to be looked through on the host; on OpenCL it is the cl_mem itself, and the view begins at its
/// start.
template <auto F>
struct routine_t {};
template <auto F>
inline constexpr routine_t<F> routine{};

namespace detail {
/// `arguments`: a std::tuple of the views and scalars.
using routine_fn = void (*)(device_call&, const void* arguments);

template <auto F, class... Arguments>
void run_routine(device_call& call, const void* arguments) {
  std::apply([&](const auto&... a) { F(call, a...); }, *static_cast<const std::tuple<Arguments...>*>(arguments));
}
}  // namespace detail

}  // namespace troupe
