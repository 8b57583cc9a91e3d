// What this file is for: NVRTC, opened at run time: it is large, and programs without NVIDIA GPUs have no use for it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include "devices/rtc/program_calls.hpp"

namespace troupe::devices::rtc {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& f) {
  f = reinterpret_cast<Function>(::dlsym(library, name));
  return f != nullptr;
}

void* open_library(const settings& s) {
  const char* const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::vector<std::filesystem::path> folders{""};
  folders.insert(folders.end(), s.libraries.begin(), s.libraries.end());
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const auto& folder : folders)
    for (const char* name : names)
      if (void* library = ::dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

}  // namespace

std::unique_ptr<compiler> open_nvrtc(const settings& s, std::string& why) {
  // Never closed: it keeps threads and tables that do not expect it.
  void* library = open_library(s);
  if (!library) {
    why = "libnvrtc.so.13 or .12 is not found";
    return nullptr;
  }
  program_calls calls{};
  if (!find(library, "nvrtcVersion", calls.version) || !find(library, "nvrtcCreateProgram", calls.create) ||
      !find(library, "nvrtcCompileProgram", calls.compile) ||
      !find(library, "nvrtcGetProgramLogSize", calls.log_size) || !find(library, "nvrtcGetProgramLog", calls.log) ||
      !find(library, "nvrtcGetCUBINSize", calls.code_size) || !find(library, "nvrtcGetCUBIN", calls.code) ||
      !find(library, "nvrtcDestroyProgram", calls.destroy) ||
      !find(library, "nvrtcGetErrorString", calls.error_string)) {
    why = "libnvrtc is too old";
    return nullptr;
  }
  return make_program_compiler(calls, {"nvrtc", "--gpu-architecture=", {"--std=c++17"}});
}

}  // namespace troupe::devices::rtc
