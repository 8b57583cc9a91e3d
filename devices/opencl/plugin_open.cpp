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

std::unique_ptr<accelerator_source> make_opencl_source(std::span<const std::filesystem::path> folders,
                                                       std::span<const std::string> first) {
  std::string why;
  auto source = detail::open_plugin(
      opencl::plugin_file, first, folders, why, [](const std::filesystem::path& file, std::string& said) {
        std::unique_ptr<accelerator_source> opened;
        void* plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: drivers keep threads
        if (!plugin) {
          const char* text = ::dlerror();
          said = text ? text : std::string(opencl::plugin_file) + " cannot be opened";
          return opened;
        }
        auto* open = reinterpret_cast<opencl::plugin_function*>(::dlsym(plugin, opencl::plugin_entry));
        opened.reset(open ? open(opencl::plugin_version) : nullptr);
        if (!opened) said = file.string() + " is of another release";
        return opened;
      });
  return source ? std::move(source) : gpu::make_absent_source(device_kind::opencl, "no plugin (" + why + ")");
}

}  // namespace troupe::devices
