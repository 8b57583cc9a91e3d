// What this file is for: printing accelerators for people and for programs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/devices.hpp"

#include <cstdio>
#include <string>

#include <troupe/troupe.hpp>

namespace troupe::tools {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

void print_json(const std::vector<device_listing>& all) {
  std::printf("[");
  const char* between = "";
  for (const device_listing& l : all) {
    std::printf("%s\n  {\"kind\": %s, \"remark\": %s, \"devices\": [", between, quoted(l.kind_name).c_str(),
                quoted(l.remark).c_str());
    between = ",";
    const char* comma = "";
    for (const device_info& d : l.devices) {
      std::printf(
          "%s\n    {\"name\": %s, \"model\": %s, \"driver\": %s, \"memory_bytes\": %llu, \"compute_units\": %d}", comma,
          quoted(d.name).c_str(), quoted(d.model).c_str(), quoted(d.driver).c_str(),
          static_cast<unsigned long long>(d.memory_bytes), d.compute_units);
      comma = ",";
    }
    std::printf("]}");
  }
  std::printf("\n]\n");
}

void print_table(const std::vector<device_listing>& all) {
  std::printf("%-10s %10s %6s  %s\n", "device", "MiB", "units", "model; driver");
  for (const device_listing& l : all) {
    for (const device_info& d : l.devices)
      std::printf("%-10s %10llu %6d  %s; %s\n", d.name.c_str(), static_cast<unsigned long long>(d.memory_bytes >> 20),
                  d.compute_units, d.model.c_str(), d.driver.c_str());
    if (l.devices.empty())
      std::printf("%-10s %10s %6s  %s\n", l.kind_name.c_str(), "none", "", l.remark.c_str());
    else if (!l.remark.empty())
      std::printf("%-10s %10s %6s  %s\n", l.kind_name.c_str(), "", "", l.remark.c_str());
  }
}

}  // namespace

int show_devices(bool json) {
  const auto all = list_devices();
  json ? print_json(all) : print_table(all);
  return std::ferror(stdout) ? 1 : 0;
}

}  // namespace troupe::tools
