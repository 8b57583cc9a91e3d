// What this file is for: the GPU backend built for CUDA. Plain C++ with the runtime's API; kernels come from NVRTC.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/gpu/vendors/cuda.h"

#include "devices/gpu/backend.gpu.cpp"
#include "devices/gpu/gpu.hpp"

namespace troupe::devices {

std::unique_ptr<accelerator_source> make_cuda_source(const rtc::settings& wishes) {
  return gpu::cuda_build::make_source(wishes);
}

}  // namespace troupe::devices
