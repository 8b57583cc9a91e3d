// What this file is for: reading /proc/self/statm and the load average.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/host/usage.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace troupe::devices {

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t whole = 0, resident = 0;
  if (!(in >> whole >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double load_average() {
  double last_minute = 0;
  return ::getloadavg(&last_minute, 1) == 1 ? last_minute : 0;
}

}  // namespace troupe::devices
