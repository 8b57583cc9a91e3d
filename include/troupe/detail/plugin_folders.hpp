// What this file is for: where the library's plugins may lie.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace troupe::detail {

/// In the order in which they are looked into: the folders `wanted`, or, where there are none, those of the environment
/// variable TROUPE_PLUGINS, separated by colons; beside the program or library that this is part of, whatever name it
/// was started by, and the library folders next to that; where the library was to be installed.
std::vector<std::filesystem::path> plugin_folders(std::span<const std::string> wanted = {});

/// Calls `open(file)` for the plugin in each of the folders and of `more` that has it, and where the system looks,
/// which is also the run path of the program, until it gives something. Otherwise `why` is what was said of the first
/// file that is there but cannot be opened, or else that there is none. `open` sets its second argument to what it has
/// to say.
template <class Open>
auto open_plugin(const char* name, std::span<const std::string> wanted, std::span<const std::filesystem::path> more,
                 std::string& why, Open open) -> decltype(open(std::filesystem::path(), why)) {
  std::vector<std::filesystem::path> folders = plugin_folders(wanted);
  folders.insert(folders.end(), more.begin(), more.end());
  why.clear();
  for (const auto& folder : folders) {
    std::error_code failed;
    if (!std::filesystem::exists(folder / name, failed)) continue;
    std::string said;
    if (auto opened = open(folder / name, said)) return opened;
    if (why.empty()) why = said;
  }
  std::string said;
  auto opened = open(std::filesystem::path(name), said);
  if (!opened && why.empty()) why = said;
  return opened;
}

}  // namespace troupe::detail
