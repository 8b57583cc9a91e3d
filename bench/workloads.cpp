// Bodies of workloads.hpp: the graph and its edges, calibration, the meter, process memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "workloads.hpp"

#include "allocations.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

namespace bench {

namespace {

long context_switches() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_nvcsw + use.ru_nivcsw;
}

double calibrate_ticks_per_ns() {
#if defined(__x86_64__)
  using clock = std::chrono::steady_clock;
  const auto time_begin = clock::now();
  const auto ticks_begin = ticks_now();
  while (clock::now() - time_begin < std::chrono::milliseconds(20)) {
  }
  const auto ticks = ticks_now() - ticks_begin;
  return static_cast<double>(ticks) / std::chrono::duration<double, std::nano>(clock::now() - time_begin).count();
#else
  using period = std::chrono::steady_clock::period;
  return static_cast<double>(period::den) / (1e9 * static_cast<double>(period::num));
#endif
}

}  // namespace

// The clock starts last and stops first: reading the counters is not part of the work.
meter::meter() : allocations_(allocations()), switches_(context_switches()), begin_(std::chrono::steady_clock::now()) {}

cost meter::stop() const {
  const auto end = std::chrono::steady_clock::now();
  cost spent;
  spent.nanoseconds = std::chrono::duration<double, std::nano>(end - begin_).count();
  spent.context_switches = static_cast<double>(context_switches() - switches_);
  spent.allocations = allocations_counted() ? static_cast<double>(allocations() - allocations_)
                                            : std::numeric_limits<double>::quiet_NaN();
  return spent;
}

std::uint64_t ticks_in(std::chrono::nanoseconds span) {
  static const double ticks_per_ns = calibrate_ticks_per_ns();
  return static_cast<std::uint64_t>(static_cast<double>(span.count()) * ticks_per_ns);
}

constinit std::array<tally::slot, 4096> tally::slots_{};
constinit std::atomic<std::size_t> tally::next_{0};

std::uint64_t tally::sum() {
  std::uint64_t total = 0;
  for (const auto& slot : slots_) total += slot.value.load(std::memory_order_relaxed);
  return total;
}

void executed::check(std::uint64_t expected) const {
  const auto ran = tally::sum() - before_;
  if (ran != expected)
    throw wrong_answer("ran " + std::to_string(ran) + " task bodies instead of " + std::to_string(expected));
}

dag make_dag(std::size_t tasks, std::chrono::nanoseconds body) {
  dag graph;
  graph.tasks.reserve(tasks);
  if (body.count() != 0) graph.body_ticks = ticks_in(body);
  lcg next;
  const auto draw = [&next] { return next() % static_cast<std::uint32_t>(dag_handles); };
  for (std::size_t i = 0; i < tasks; ++i) {
    dag_task task{draw(), draw(), draw()};
    // OpenMP leaves a variable that one task both reads and updates to the implementation: draw again.
    while (task.read_b == task.read_a) task.read_b = draw();
    while (task.update == task.read_a || task.update == task.read_b) task.update = draw();
    graph.tasks.push_back(task);
  }
  return graph;
}

std::array<std::uint64_t, dag_handles> run_dag_serially(const dag& graph, int rounds) {
  std::array<std::uint64_t, dag_handles> values{};
  dag copy = graph;
  copy.body_ticks = 0;
  copy.values = values.data();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < copy.tasks.size(); ++i) run_dag_task(copy, i);
  return values;
}

dag_edges derive_edges(const dag& graph) {
  struct state {
    std::int64_t writer = -1;
    std::vector<std::uint32_t> readers;
  };
  std::array<state, dag_handles> handles;
  dag_edges edges;
  edges.first.push_back(0);
  std::vector<std::uint32_t> before;
  for (std::uint32_t i = 0; i < graph.tasks.size(); ++i) {
    const auto& task = graph.tasks[i];
    before.clear();
    for (const auto read : {task.read_a, task.read_b}) {
      auto& handle = handles[read];
      if (handle.writer >= 0) before.push_back(static_cast<std::uint32_t>(handle.writer));
      handle.readers.push_back(i);
    }
    auto& updated = handles[task.update];
    if (updated.readers.empty()) {
      if (updated.writer >= 0) before.push_back(static_cast<std::uint32_t>(updated.writer));
    } else {
      before.insert(before.end(), updated.readers.begin(), updated.readers.end());
      updated.readers.clear();
    }
    updated.writer = i;
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    edges.from.insert(edges.from.end(), before.begin(), before.end());
    edges.first.push_back(static_cast<std::uint32_t>(edges.from.size()));
  }
  return edges;
}

memory_use memory_use::now() {
  memory_use use;
  std::ifstream statm("/proc/self/statm");
  double size_pages = 0;
  double resident_pages = 0;
  statm >> size_pages >> resident_pages;
  use.resident = resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto info = mallinfo2();
  use.allocated = static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
  return use;
}

double memory_use::grown_since(const memory_use& before) const {
  return std::max(resident - before.resident, allocated - before.allocated);
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void sleep_for(std::chrono::microseconds span) { std::this_thread::sleep_for(span); }

}  // namespace bench
