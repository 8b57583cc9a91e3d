// What this file is for: bodies that drive a device themselves: a vendor's library inside the flow of data.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>

#include <troupe/scope.hpp>

namespace troupe {

/// A device call gives a routine, beside its arguments, the device that it is to drive. Valid during the call, on its
/// thread. The thread's current device (cudaSetDevice, hipSetDevice) is the one that the call is for. Handles of the
/// vendor are passed as pointers that the body casts, so this header needs none of the vendor's.
///
/// The routine enqueues its work on `lane()` and returns without waiting for it. The data that it reads is ready for
/// work on that lane, and later tasks wait for the lane; work on other streams must be joined to it by events, in both
/// directions. A routine that blocks stops the device's other tasks meanwhile. An exception fails the task.
class device_call {
 public:
  /// The kind of the device.
  virtual device_kind kind() const = 0;
  /// The number of the device among those of its kind.
  virtual int device() const = 0;
  /// The stream to use: a cudaStream_t, hipStream_t or cl_command_queue.
  virtual void* lane() const = 0;
  /// Device memory for this call, aligned to at least 256 bytes, not initialised; for OpenCL a cl_mem, as in views.
  /// Null for zero bytes. Throws `error(out_of_memory)`.
  virtual void* scratch(std::size_t bytes) = 0;
  /// True once the task or its runtime was asked to stop.
  virtual bool stop_requested() const = 0;

  /// State that a routine keeps for each device, such as a library's handle: one T, made at the first call there and
  /// destroyed when the device is closed. Its constructor takes nothing or a `device_call&`.
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
/// device memory, which the host must not read or write; on OpenCL it is the cl_mem itself, and the view begins at its
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
