// What this file is for: pinning memory that the runtime keeps, by way of one device for all of its kind.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Why memory is registered and not taken from the vendor: what a vendor's runtime gives goes when its device is reset
// after a failure, and tiles must not. Included after a vendor's header; see backend.gpu.cpp.
#pragma once

#include "devices/accelerator.hpp"

namespace troupe::devices::gpu::GPU_NS {

class registering final : public page_pinning {
 public:
  explicit registering(int index) : index_(index) {}

  outcome pin(std::byte* p, std::size_t bytes) override {
    const current_device here(index_);
    const auto code = GPU_NS::pin(p, bytes);
    if (code == GPU(Success)) return outcome::pinned;
    (void)GPU(GetLastError)();
    const bool was = static_cast<int>(code) == already_registered && is_pinned(p) && is_pinned(p + bytes - 1);
    (void)GPU(GetLastError)();
    return was ? outcome::was_pinned : outcome::refused;
  }
  void unpin(std::byte* p) noexcept override {
    const current_device here(index_);
    // Not pinned any more where the device has been reset since.
    if (GPU(HostUnregister)(p) != GPU(Success)) (void)GPU(GetLastError)();
  }

 private:
  static constexpr int already_registered = 712;  // CUDA's number, which HIP and sim share

  // The thread is anybody's, and so is its current device.
  class current_device {
   public:
    explicit current_device(int index) {
      if (GPU(GetDevice)(&before_) != GPU(Success)) (void)GPU(GetLastError)();
      changed_ = before_ != index;
      if (changed_) (void)GPU(SetDevice)(index);
    }
    ~current_device() {
      if (changed_ && before_ >= 0) (void)GPU(SetDevice)(before_);
    }
    current_device(const current_device&) = delete;
    current_device& operator=(const current_device&) = delete;

   private:
    int before_ = -1;
    bool changed_ = false;
  };

  const int index_;
};

}  // namespace troupe::devices::gpu::GPU_NS
