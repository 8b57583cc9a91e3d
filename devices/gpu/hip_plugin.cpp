// What this file is for: finding libtroupe_hip.so, which needs AMD's libraries, without needing them here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/gpu/hip_plugin.hpp"

#include <dlfcn.h>
#include <filesystem>
#include <string>

#include <troupe/detail/plugin_folders.hpp>

#include "devices/gpu/absent_source.hpp"
#include "devices/gpu/gpu.hpp"

namespace troupe::devices {

namespace {

void* open_plugin(const rtc::settings& wishes, std::string& why) {
  return detail::open_plugin("libtroupe_hip.so", wishes.plugins, wishes.libraries, why,
                             [](const std::filesystem::path& file, std::string& said) {
                               void* plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
                               if (plugin) return plugin;
                               const char* text = ::dlerror();
                               said = text ? text : "libtroupe_hip.so cannot be opened";
                               return plugin;
                             });
}

template <class Function>
Function* entry(const rtc::settings& wishes, const char* name, std::string& why) {
  void* plugin = open_plugin(wishes, why);  // never closed: AMD's runtime keeps threads
  if (!plugin) return nullptr;
  auto* f = reinterpret_cast<Function*>(::dlsym(plugin, name));
  if (!f) why = "libtroupe_hip.so is of another release";
  return f;
}

}  // namespace

std::unique_ptr<accelerator_source> make_hip_source(const rtc::settings& wishes) {
  using maker = accelerator_source*(const char*, const rtc::settings*);
  std::string why;
  if (auto* make = entry<maker>(wishes, "troupe_hip_source", why)) {
    if (auto* source = make(gpu::hip_plugin_version, &wishes)) return std::unique_ptr<accelerator_source>(source);
    why = "libtroupe_hip.so is of another release";
  }
  return gpu::make_absent_source(device_kind::hip, "no plugin (" + why + ")");
}

std::unique_ptr<rtc::compiler> gpu::open_hip_compiler(const rtc::settings& wishes, std::string& why) {
  auto* make = entry<rtc::compiler*(const char*)>(wishes, "troupe_hip_compiler", why);
  return std::unique_ptr<rtc::compiler>(make ? make(gpu::hip_plugin_version) : nullptr);
}

}  // namespace troupe::devices
