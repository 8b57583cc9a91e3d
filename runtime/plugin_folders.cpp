// What this file is for: where the library's plugins may lie.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/detail/plugin_folders.hpp>

#include <dlfcn.h>

#include <system_error>

namespace troupe::detail {

// The program's own name may be one without a folder, or a link, such as /proc/self/exe.
std::vector<std::filesystem::path> plugin_folders() {
  Dl_info here{};
  if (!::dladdr(reinterpret_cast<void*>(&plugin_folders), &here) || !here.dli_fname) return {};
  const std::filesystem::path named(here.dli_fname);
  std::error_code failed;
  auto self = std::filesystem::canonical(named.has_parent_path() ? named : "/proc/self/exe", failed);
  if (failed) self = std::filesystem::canonical("/proc/self/exe", failed);  // a name from another folder than this
  if (failed) return {};
  return {self.parent_path(), self.parent_path() / "../lib"};
}

}  // namespace troupe::detail
