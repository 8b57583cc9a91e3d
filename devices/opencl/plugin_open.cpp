// What this file is for: finding libtroupe_opencl.so, which needs an OpenCL loader, without needing one here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <troupe/detail/plugin_folders.hpp>

#include "devices/gpu/absent_source.hpp"
#include "devices/opencl/opencl.hpp"
#include "devices/opencl/plugin.hpp"

namespace troupe::devices {

namespace {

std::vector<std::filesystem::path> places(std::span<const std::filesystem::path> folders) {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : detail::plugin_folders()) files.push_back(folder / opencl::plugin_file);
  for (const auto& folder : folders) files.push_back(folder / opencl::plugin_file);
  files.emplace_back(opencl::plugin_file);
  return files;
}

}  // namespace

std::unique_ptr<accelerator_source> make_opencl_source(std::span<const std::filesystem::path> folders) {
  std::string why;
  for (const auto& file : places(folders)) {
    std::error_code failed;
    if (file.has_parent_path() && !std::filesystem::exists(file, failed)) continue;
    void* plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: drivers keep threads
    if (!plugin) {
      const char* said = ::dlerror();
      why = said ? said : std::string(opencl::plugin_file) + " cannot be opened";
      continue;
    }
    auto* open = reinterpret_cast<opencl::plugin_function*>(::dlsym(plugin, opencl::plugin_entry));
    if (auto* source = open ? open(opencl::plugin_version) : nullptr)
      return std::unique_ptr<accelerator_source>(source);
    why = file.string() + " is of another release";
  }
  return gpu::make_absent_source(device_kind::opencl, "no plugin (" + why + ")");
}

}  // namespace troupe::devices
