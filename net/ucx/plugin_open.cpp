// What this file is for: finding libtroupe_ucx.so, which needs UCX, without needing it here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/detail/plugin_folders.hpp>

#include "net/ucx/plugin.hpp"
#include "net/ucx/ucx.hpp"

namespace troupe::net {

namespace {

std::vector<std::filesystem::path> folders_to_look_in(std::span<const std::string> folders) {
  std::vector<std::filesystem::path> all = detail::plugin_folders(folders);
  all.emplace_back();  // where the system looks
  return all;
}

bool is_loaded(const char* library) {
  void* const there = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (there) ::dlclose(there);
  return there != nullptr;
}

/// Never closed: UCX keeps threads.
void* load(const std::filesystem::path& file, int binding, std::string& why) {
  std::error_code failed;
  if (file.has_parent_path() && !std::filesystem::exists(file, failed)) return nullptr;
  void* const library = ::dlopen(file.c_str(), binding | RTLD_LOCAL);
  if (library) return library;
  const char* said = ::dlerror();
  if (why.empty()) why = said ? said : file.string() + " cannot be opened";
  return nullptr;
}

std::unique_ptr<bulk_fabric> open_in(const std::filesystem::path& folder, bool first, std::string& why) {
  if (first) {
    // Lazily, because libucm wants a function of libucs, which comes only after it.
    void* const before = load(folder / ucx::first_file, RTLD_LAZY, why);
    auto* const call = before ? reinterpret_cast<void (*)()>(::dlsym(before, ucx::first_entry)) : nullptr;
    if (!call) return nullptr;
    call();
  }
  void* const plugin = load(folder / ucx::plugin_file, RTLD_NOW, why);
  if (!plugin) return nullptr;
  why = (folder / ucx::plugin_file).string() + " is of another release";
  auto* const open = reinterpret_cast<ucx::plugin_function*>(::dlsym(plugin, ucx::plugin_entry));
  return std::unique_ptr<bulk_fabric>(open ? open(ucx::plugin_version, first, &why) : nullptr);
}

std::unique_ptr<bulk_fabric> open_first(std::span<const std::string> folders, std::string& why) {
  // A program that has UCX already has it as it wants it.
  const bool first = !is_loaded("libucs.so.0");
  for (const auto& folder : folders_to_look_in(folders))
    if (auto fabric = open_in(folder, first, why)) return fabric;
  return nullptr;
}

}  // namespace

std::unique_ptr<bulk_fabric> open_ucx(std::string& why, std::span<const std::string> folders) {
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
