// What this file is for: the `troupe` program: picks the command.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>

#include "tools/devices.hpp"

namespace {

int usage() {
  std::fprintf(stderr,
               "usage: troupe devices [--json]   the accelerators of this machine, and why there are none of a kind\n");
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::span<char*> rest(arguments + 1, static_cast<std::size_t>(count > 0 ? count - 1 : 0));
    if (rest.empty()) return usage();
    if (std::strcmp(rest[0], "devices") != 0) return usage();
    const auto options = rest.subspan(1);
    if (options.empty()) return troupe::tools::show_devices(false);
    if (options.size() == 1 && std::strcmp(options[0], "--json") == 0) return troupe::tools::show_devices(true);
    return usage();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "troupe: %s\n", e.what());
    return 1;
  }
}
