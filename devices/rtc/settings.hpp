// What this file is for: where run-time compilation finds its tools and keeps its results.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::devices::rtc {

struct settings {
  std::filesystem::path cache;                   ///< compiled kernels are kept here; empty: nowhere
  std::uint64_t cache_bytes_max = 256ull << 20;  ///< beyond it the oldest are removed
  std::filesystem::path scratch = "/tmp";        ///< for files that live as long as one compilation
  std::vector<std::filesystem::path> programs;   ///< folders searched for the host's C++ compiler
  std::vector<std::string> plugins;              ///< folders searched for plugins first; see plugin_folders
  std::vector<std::filesystem::path> libraries;  ///< folders searched for plugins and NVRTC after the usual ones
};

/// The only place that reads the environment: XDG_CACHE_HOME or HOME, TMPDIR, PATH.
settings settings_from_environment();

}  // namespace troupe::devices::rtc
