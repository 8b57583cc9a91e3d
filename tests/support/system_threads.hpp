// What this file is for: what the system says of the threads of this process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace test {

struct system_thread {
  std::string name;
  int id = 0;
  char state = '?';         ///< S: it sleeps, R: it has a core or wants one
  std::uint64_t ticks = 0;  ///< of processor time

  bool is_caller() const { return id == static_cast<int>(::gettid()); }
};

/// Returns the threads whose names begin like that.
inline std::vector<system_thread> system_threads(std::string_view name) {
  std::vector<system_thread> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "stat");
    std::string line;
    std::getline(in, line);  // "4711 (cpu:0/0) S ..."
    const std::size_t begin = line.find('('), end = line.rfind(')');
    if (begin == line.npos || end == line.npos) continue;  // it has ended
    system_thread t;
    t.name = line.substr(begin + 1, end - begin - 1);
    if (!t.name.starts_with(name)) continue;
    std::istringstream rest(line.substr(end + 2));
    rest >> t.state;
    std::string skipped;
    for (int i = 0; i < 10; ++i) rest >> skipped;  // up to the page faults
    std::uint64_t in_system = 0;
    rest >> t.ticks >> in_system;
    t.ticks += in_system;
    t.id = std::stoi(line);
    all.push_back(t);
  }
  return all;
}

/// True if that thread sleeps.
inline bool sleeps(int id) {
  for (const system_thread& t : system_threads(""))
    if (t.id == id) return t.state == 'S';
  return false;
}

/// Returns how often the thread has given up its core, of its own accord or not.
inline std::uint64_t switches_of(int id) {
  std::ifstream in("/proc/self/task/" + std::to_string(id) + "/status");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find("ctxt_switches:"); at != line.npos)
      sum += std::stoull(line.substr(line.find(':', at) + 1));
  return sum;
}

}  // namespace test
