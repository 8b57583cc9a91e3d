// What this file is for: where the library's plugins may lie.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/detail/plugin_folders.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

namespace troupe::detail {

namespace {

// Returns the folder of this library or program; empty: unknown. The program's own name may be one without a folder, or
// a link, such as /proc/self/exe.
std::filesystem::path own_folder() {
  Dl_info here{};
  if (!::dladdr(reinterpret_cast<void*>(&plugin_folders), &here) || !here.dli_fname) return {};
  const std::filesystem::path named(here.dli_fname);
  std::error_code failed;
  auto self = std::filesystem::canonical(named.has_parent_path() ? named : "/proc/self/exe", failed);
  if (failed) self = std::filesystem::canonical("/proc/self/exe", failed);  // the name is relative to another folder
  return failed ? std::filesystem::path() : self.parent_path();
}

}  // namespace

std::vector<std::filesystem::path> plugin_folders(std::span<const std::string> wanted) {
  std::vector<std::filesystem::path> all(wanted.begin(), wanted.end());
  // Ignores the variable in programs that have more rights than the user that started them.
  const char* const variable = all.empty() ? ::secure_getenv("TROUPE_PLUGINS") : nullptr;
  for (std::string_view rest = variable ? variable : ""; !rest.empty();) {
    const auto end = rest.find(':');
    if (end != 0) all.emplace_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  if (const auto own = own_folder(); !own.empty())
    for (const auto& folder : {own, own / "../lib", own / ".." / TROUPE_LIBRARY_FOLDER}) all.push_back(folder);
  all.emplace_back(TROUPE_INSTALLED_LIBRARIES);
  return all;
}

}  // namespace troupe::detail
