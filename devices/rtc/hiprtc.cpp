// What this file is for: HIPRTC, part of the HIP plugin, which links it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <hip/hiprtc.h>

#include "devices/rtc/program_calls.hpp"

namespace troupe::devices::rtc {

std::unique_ptr<compiler> open_hiprtc(std::string&) {
  program_calls c{};
  c.version = [](int* major, int* minor) -> int { return hiprtcVersion(major, minor); };
  c.create = [](void** p, const char* text, const char* name, int n, const char* const* texts,
                const char* const* names) -> int {
    return hiprtcCreateProgram(reinterpret_cast<hiprtcProgram*>(p), text, name, n, const_cast<const char**>(texts),
                               const_cast<const char**>(names));
  };
  c.compile = [](void* p, int n, const char* const* options) -> int {
    return hiprtcCompileProgram(static_cast<hiprtcProgram>(p), n, const_cast<const char**>(options));
  };
  c.log_size = [](void* p, std::size_t* n) -> int { return hiprtcGetProgramLogSize(static_cast<hiprtcProgram>(p), n); };
  c.log = [](void* p, char* log) -> int { return hiprtcGetProgramLog(static_cast<hiprtcProgram>(p), log); };
  c.code_size = [](void* p, std::size_t* n) -> int { return hiprtcGetCodeSize(static_cast<hiprtcProgram>(p), n); };
  c.code = [](void* p, char* code) -> int { return hiprtcGetCode(static_cast<hiprtcProgram>(p), code); };
  c.destroy = [](void** p) -> int { return hiprtcDestroyProgram(reinterpret_cast<hiprtcProgram*>(p)); };
  c.error_string = [](int code) { return hiprtcGetErrorString(static_cast<hiprtcResult>(code)); };
  return make_program_compiler(c, {"hiprtc", "--offload-arch=", {"-std=c++17", "-O3"}});
}

}  // namespace troupe::devices::rtc
