// What this file is for: the GPU backend built for HIP: the whole of libtroupe_hip.so but for what it shares.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/gpu/vendors/hip.h"

#include "devices/gpu/backend.gpu.cpp"
#include "devices/gpu/hip_plugin.hpp"

extern "C" __attribute__((visibility("default"))) troupe::devices::accelerator_source* troupe_hip_source(
    const char* version, const troupe::devices::rtc::settings* wishes) {
  using namespace troupe::devices;
  if (std::string_view(version) != gpu::hip_plugin_version) return nullptr;
  return gpu::hip_build::make_source(*wishes).release();
}

extern "C" __attribute__((visibility("default"))) troupe::devices::rtc::compiler* troupe_hip_compiler(
    const char* version) {
  using namespace troupe::devices;
  std::string why;
  if (std::string_view(version) != gpu::hip_plugin_version) return nullptr;
  return rtc::open_hiprtc(why).release();
}
