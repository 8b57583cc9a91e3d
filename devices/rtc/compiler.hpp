// What this file is for: compilers of kernel text at run time: NVRTC, HIPRTC, and the host's own for the software GPU.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/accelerator.hpp"
#include "devices/rtc/kernel_cache.hpp"
#include "devices/rtc/settings.hpp"

namespace troupe::devices::rtc {

class compiler {
 public:
  virtual ~compiler() = default;

  /// Its name and version: "nvrtc 13.0". What it makes depends on it.
  virtual const std::string& identity() const = 0;
  /// All that is compiled: the target's prelude, the kernel's text, and what the target needs after it.
  virtual std::string whole_text(const kernel_source&) const = 0;
  /// Code for a target such as "sm_90", "gfx90a" or "host". Throws error(compile_failed) with the compiler's log, the
  /// kernel's name and the target. May take seconds.
  virtual std::vector<std::byte> compile(const kernel_source&, const std::string& target) = 0;
};

/// Null where the compiler is not found; `why` then says what was looked for.
std::unique_ptr<compiler> open_nvrtc(const settings&, std::string& why);
std::unique_ptr<compiler> open_host_compiler(const settings&, std::string& why);
/// Only in the HIP plugin.
std::unique_ptr<compiler> open_hiprtc(std::string& why);

/// From the cache, or compiled and put there.
std::vector<std::byte> compile_cached(compiler&, const kernel_cache&, const kernel_source&, const std::string& target,
                                      std::string_view device_identity);

/// The key that `compile_cached` uses; for tests.
std::string cache_key(const compiler&, const kernel_source&, const std::string& target,
                      std::string_view device_identity);

}  // namespace troupe::devices::rtc
