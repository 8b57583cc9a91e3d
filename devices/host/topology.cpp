// What this file is for: affinity mask, cgroup quotas (v1 and v2), core order by hwloc.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/host/topology.hpp"

#include "devices/threads.hpp"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

namespace troupe::devices {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

double number_or(const std::string& text, double otherwise) {
  try {
    return text.empty() ? otherwise : std::stod(text);
  } catch (const std::exception&) {
    return otherwise;
  }
}

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

}  // namespace

// On the way from this process's cgroup to the root.
double core_quota() {
  double least = 0;
  const auto consider = [&](double q) {
    if (q > 0 && (least == 0 || q < least)) least = q;
  };
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    const std::string kinds = line.substr(a + 1, b - a - 1);
    std::string path = line.substr(b + 1);
    const bool v2 = kinds.empty();
    if (!v2 && ("," + kinds + ",").find(",cpu,") == std::string::npos) continue;
    for (;;) {
      if (v2) {
        consider(parse_cpu_max(first_line("/sys/fs/cgroup" + path + "/cpu.max")));
      } else {
        const std::string base = "/sys/fs/cgroup/cpu" + path;
        const double quota = number_or(first_line(base + "/cpu.cfs_quota_us"), 0);
        const double period = number_or(first_line(base + "/cpu.cfs_period_us"), 0);
        if (quota > 0 && period > 0) consider(quota / period);
      }
      if (path.empty() || path == "/") break;
      path.resize(path.find_last_of('/'));
    }
  }
  return least;
}

double parse_cpu_max(const std::string& text) {
  std::istringstream in(text);
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return 0;
  const double q = number_or(quota, 0);
  return q > 0 ? q / period : 0;
}

int usable_core_count() {
  const cpu_set_t set = affinity();
  int n = std::max(1, CPU_COUNT(&set));
  const double quota = core_quota();
  if (quota > 0) n = std::min(n, std::max(1, static_cast<int>(std::ceil(quota))));
  return n;
}

std::vector<int> usable_cores() {
  const cpu_set_t set = affinity();
  std::vector<int> cores;
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) == 0) {
    if (hwloc_topology_load(topology) == 0) {
      const int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
      for (int i = 0; i < n; ++i) {
        const hwloc_obj_t pu = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, static_cast<unsigned>(i));
        const int core = static_cast<int>(pu->os_index);
        if (core < CPU_SETSIZE && CPU_ISSET(core, &set)) cores.push_back(core);
      }
    }
    hwloc_topology_destroy(topology);
  }
  if (cores.empty())
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cores.push_back(c);
  return cores;
}

bool bind_this_thread(int core) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) == 0;
}

int current_cpu() noexcept { return ::sched_getcpu(); }

int current_thread() noexcept { return static_cast<int>(::gettid()); }

bool move_thread_from(int core, int thread) noexcept {
  cpu_set_t all;
  CPU_ZERO(&all);
  if (thread <= 0 || core < 0 || core >= CPU_SETSIZE || ::sched_getaffinity(thread, sizeof all, &all) != 0)
    return false;
  cpu_set_t others = all;
  CPU_CLR(static_cast<std::size_t>(core), &others);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(thread, sizeof others, &others) != 0) return false;
  ::sched_setaffinity(thread, sizeof all, &all);  // it stays where it is now
  return true;
}

void name_this_thread(const std::string& name) noexcept {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

// Linux gives each thread a niceness of its own.
void let_others_pass() noexcept {
  constexpr int niceness = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), niceness);
}

void try_threads(int count) {
  struct round {
    std::mutex lock;
    std::condition_variable over;
    bool ends = false;
    std::vector<std::thread> threads;
    std::vector<pid_t> ids;
    void end() {
      {
        std::lock_guard hold(lock);
        ends = true;
      }
      over.notify_all();
      for (std::thread& t : threads) t.join();
    }
  } all;
  all.threads.reserve(static_cast<std::size_t>(count));
  all.ids.assign(static_cast<std::size_t>(count), 0);
  try {
    for (pid_t& id : all.ids)
      all.threads.emplace_back([&all, &id] {
        id = ::gettid();
        std::unique_lock hold(all.lock);
        all.over.wait(hold, [&] { return all.ends; });
      });
  } catch (...) {
    all.end();
    throw;
  }
  all.end();
  // A thread that has been joined counts against the limit until the kernel has put it away, soon.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (const pid_t id : all.ids)
    while (::syscall(SYS_tgkill, ::getpid(), id, 0) == 0 && std::chrono::steady_clock::now() < give_up)
      std::this_thread::yield();
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) break;  // the other cores
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname name{};
  return uname(&name) == 0 ? name.machine : "unknown";
}

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes) : 0;
}

}  // namespace troupe::devices
