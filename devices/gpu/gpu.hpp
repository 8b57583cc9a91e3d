// What this file is for: the ways to NVIDIA's and AMD's GPUs and to the software GPU.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// None of these throws for want of a device, a driver or a library: the source then counts 0 and remarks why.
#pragma once

#include <memory>

#include "devices/accelerator.hpp"
#include "devices/rtc/settings.hpp"

namespace troupe::devices {

std::unique_ptr<accelerator_source> make_cuda_source(const rtc::settings& = rtc::settings_from_environment());
/// Opens libtroupe_hip.so: where `plugin_folders(settings.plugins)` says, in `settings.libraries`, or where the system
/// looks.
std::unique_ptr<accelerator_source> make_hip_source(const rtc::settings& = rtc::settings_from_environment());
std::unique_ptr<accelerator_source> make_sim_source(const rtc::settings& = rtc::settings_from_environment());

}  // namespace troupe::devices
