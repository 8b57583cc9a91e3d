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
  std::fprintf(
      stderr,
      "usage: troupe devices [--json] [--no-measure]\n"
      "  the cores and accelerators of this machine, how fast copies to them are, and why there are none of a\n"
      "  kind; --no-measure: only links that are known from before\n");
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::span<char*> rest(arguments + 1, static_cast<std::size_t>(count > 0 ? count - 1 : 0));
    if (rest.empty()) return usage();
    if (std::strcmp(rest[0], "devices") != 0) return usage();
    bool json = false, measure = true;
    for (const char* option : rest.subspan(1)) {
      if (std::strcmp(option, "--json") == 0)
        json = true;
      else if (std::strcmp(option, "--no-measure") == 0)
        measure = false;
      else
        return usage();
    }
    return troupe::tools::show_devices(json, measure);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "troupe: %s\n", e.what());
    return 1;
  }
}
