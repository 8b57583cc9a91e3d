// What this file is for: finding libtroupe_ucx.so, which needs UCX, without needing it here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <system_error>
#include <thread>
#include <vector>

#include "net/ucx/plugin.hpp"
#include "net/ucx/ucx.hpp"

namespace troupe::net {

namespace {

std::vector<std::filesystem::path> places(std::span<const std::filesystem::path> folders) {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : folders) files.push_back(folder / ucx::plugin_file);
  if (Dl_info here{}; ::dladdr(reinterpret_cast<void*>(&places), &here) && here.dli_fname) {
    // The program's own name may be one without a folder, or a link.
    std::error_code failed;
    const std::filesystem::path named(here.dli_fname);
    const auto self = std::filesystem::canonical(named.has_parent_path() ? named : "/proc/self/exe", failed);
    files.push_back(self.parent_path() / ucx::plugin_file);
    files.push_back(self.parent_path() / "../lib" / ucx::plugin_file);
  }
  files.emplace_back(ucx::plugin_file);
  return files;
}

bool is_loaded(const char* library) {
  void* const there = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (there) ::dlclose(there);
  return there != nullptr;
}

std::unique_ptr<bulk_fabric> open_first(std::span<const std::filesystem::path> folders, std::string& why) {
  const bool first = !is_loaded("libucs.so.0");
  for (const auto& file : places(folders)) {
    std::error_code failed;
    if (file.has_parent_path() && !std::filesystem::exists(file, failed)) continue;
    void* plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: UCX keeps threads
    if (!plugin) {
      const char* said = ::dlerror();
      why = said ? said : std::string(ucx::plugin_file) + " cannot be opened";
      continue;
    }
    why = file.string() + " is of another release";
    auto* open = reinterpret_cast<ucx::plugin_function*>(::dlsym(plugin, ucx::plugin_entry));
    if (auto* fabric = open ? open(ucx::plugin_version, first, &why) : nullptr)
      return std::unique_ptr<bulk_fabric>(fabric);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<bulk_fabric> open_ucx(std::string& why, std::span<const std::filesystem::path> folders) {
  std::unique_ptr<bulk_fabric> fabric;
  try {
    // On a thread of its own, because UCX gives the one that loads it another stack for signals.
    std::thread([&] {
      try {
        fabric = open_first(folders, why);
      } catch (const std::exception& e) {
        why = e.what();
      }
    }).join();
  } catch (const std::exception& e) {
    why = e.what();
  }
  return fabric;
}

}  // namespace troupe::net
