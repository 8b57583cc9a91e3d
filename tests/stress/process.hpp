// What this file is for: what the system says about this process: threads, descriptors, resident bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/support/comes_true.hpp"

namespace test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// Sanitizers keep freed memory and make everything slow: bytes are not judged and rounds are fewer.
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
/// The number of rounds for this build.
constexpr int rounds(int n) { return sanitized ? n / 20 + 1 : n; }

inline std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}
inline std::size_t thread_count() { return entries_of("/proc/self/task"); }
inline std::size_t descriptor_count() { return entries_of("/proc/self/fd"); }
/// After the allocator has returned what it could.
inline std::size_t resident_bytes() {
  ::malloc_trim(0);
  std::ifstream in("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace test
