// What this file is for: the GPU backend built for the software GPU.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/gpu/vendors/sim.h"

#include "devices/gpu/backend.gpu.cpp"
#include "devices/gpu/gpu.hpp"

namespace troupe::devices {

std::unique_ptr<accelerator_source> make_sim_source(const rtc::settings& wishes) {
  return gpu::sim_build::make_source(wishes);
}

}  // namespace troupe::devices
