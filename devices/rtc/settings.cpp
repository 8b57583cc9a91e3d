// What this file is for: the settings of run-time compilation that an environment stands for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rtc/settings.hpp"

#include <cstdlib>
#include <string_view>

namespace troupe::devices::rtc {

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

settings settings_from_environment() {
  settings s;
  // Relative paths are to be ignored, says the XDG base directory specification.
  if (const auto home = variable("XDG_CACHE_HOME"); home.starts_with('/'))
    s.cache = std::filesystem::path(home) / "troupe";
  else if (const auto user = variable("HOME"); user.starts_with('/'))
    s.cache = std::filesystem::path(user) / ".cache" / "troupe";
  if (const auto scratch = variable("TMPDIR"); scratch.starts_with('/')) s.scratch = scratch;
  for (auto rest = variable("PATH"); !rest.empty();) {
    const auto end = rest.find(':');
    if (const auto folder = rest.substr(0, end); folder.starts_with('/')) s.programs.emplace_back(folder);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return s;
}

}  // namespace troupe::devices::rtc
