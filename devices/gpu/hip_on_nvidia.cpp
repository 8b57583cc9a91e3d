// What this file is for: the compiler of the HIP plugin where it is built for NVIDIA's GPUs: NVRTC under HIPRTC's name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rtc/compiler.hpp"

namespace troupe::devices::rtc {

std::unique_ptr<compiler> open_hiprtc(std::string& why) { return open_nvrtc({}, why); }

}  // namespace troupe::devices::rtc
