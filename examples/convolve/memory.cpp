// What this file is for: reading /proc/meminfo and the limits of control groups.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace convolution {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // absent, or "max"
}

// The value beside `key` in a file of "key value" lines.
std::optional<std::uint64_t> field_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

// Returns the memory that one group leaves. Page cache that can be dropped does not count as used.
std::uint64_t left_in(const std::string& folder, const char* limit_file, const char* usage_file,
                      const char* cache_key) {
  const auto limit = number_in(folder + "/" + limit_file);
  if (!limit) return unlimited;
  const std::uint64_t used = number_in(folder + "/" + usage_file).value_or(0);
  const std::uint64_t cache = field_in(folder + "/memory.stat", cache_key).value_or(0);
  const std::uint64_t held = used > cache ? used - cache : 0;
  return *limit > held ? *limit - held : 0;
}

// A limit anywhere between the process's group and the root holds, so each parent is asked too.
std::uint64_t left_up_to_root(const std::string& root, std::string path, const char* limit_file, const char* usage_file,
                              const char* cache_key) {
  std::uint64_t least = unlimited;
  for (;;) {
    least = std::min(least, left_in(root + path, limit_file, usage_file, cache_key));
    const auto slash = path.rfind('/');
    if (path.empty() || slash == path.npos) return least;
    path.resize(slash);
  }
}

std::uint64_t left_in_control_groups() {
  std::uint64_t least = unlimited;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "0::/path" or "5:memory:/path"
    const auto first = line.find(':');
    const auto second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controller = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controller.empty())
      least = std::min(least, left_up_to_root("/sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file"));
    else if (controller == "memory")
      least = std::min(least, left_up_to_root("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                                              "memory.usage_in_bytes", "total_inactive_file"));
  }
  return least;
}

}  // namespace

std::uint64_t memory_available_bytes() {
  const auto machine_kb = field_in("/proc/meminfo", "MemAvailable:");
  return std::min(machine_kb ? *machine_kb * 1024 : unlimited, left_in_control_groups());
}

}  // namespace convolution
