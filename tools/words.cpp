// What this file is for: names, sizes, rates and times as the tools print them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/words.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::tools {

std::string shown(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return name;
}

std::string quoted(const std::string& s) {
  std::string q = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') q += '\\';
    q += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return q + "\"";
}

std::string size_text(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double v = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; v >= 1023.95 && unit + 1 < std::size(units); ++unit) v /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", v, units[unit]);
  return text;
}

std::string rate_text(double bytes_per_second) {
  if (!(bytes_per_second > 0)) return "-";
  return size_text(static_cast<std::uint64_t>(std::min(bytes_per_second, 1e18))) + "/s";
}

std::string time_text(std::chrono::nanoseconds t) {
  if (t.count() <= 0) return "-";
  char text[32];
  const double us = static_cast<double>(t.count()) / 1e3;
  if (us < 1e4)
    std::snprintf(text, sizeof text, "%.0f us", us);
  else
    std::snprintf(text, sizeof text, "%.0f ms", us / 1e3);
  return text;
}

std::string up_text(std::chrono::milliseconds since) {
  const long long s = since.count() / 1000;
  char text[48];
  if (s < 60)
    std::snprintf(text, sizeof text, "%llds", s);
  else if (s < 3600)
    std::snprintf(text, sizeof text, "%lldm %llds", s / 60, s % 60);
  else if (s < 86400)
    std::snprintf(text, sizeof text, "%lldh %lldm", s / 3600, s / 60 % 60);
  else
    std::snprintf(text, sizeof text, "%lldd %lldh", s / 86400, s / 3600 % 24);
  return text;
}

}  // namespace troupe::tools
