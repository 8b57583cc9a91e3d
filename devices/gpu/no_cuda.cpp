// What this file is for: the CUDA source of a library that was built without CUDA.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/gpu/absent_source.hpp"
#include "devices/gpu/gpu.hpp"

namespace troupe::devices {

std::unique_ptr<accelerator_source> make_cuda_source(const rtc::settings&) {
  return gpu::make_absent_source(device_kind::cuda, "built without CUDA");
}

}  // namespace troupe::devices
