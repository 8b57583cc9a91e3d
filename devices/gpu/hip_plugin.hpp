// What this file is for: what the library and libtroupe_hip.so know of each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "devices/accelerator.hpp"
#include "devices/rtc/compiler.hpp"

namespace troupe::devices::gpu {

/// Classes cross the border: both sides must be of one release, and of one build of the seam.
inline constexpr const char* hip_plugin_version = "troupe 0.1.0, seam 5";

/// HIPRTC out of the plugin; null where that is missing. It needs no device.
std::unique_ptr<rtc::compiler> open_hip_compiler(const rtc::settings&, std::string& why);

}  // namespace troupe::devices::gpu
