// What this file is for: stands in for the core of Task Bench, so that tests run the back end for it without that.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// It has the types and functions that bench/taskbench/upstream uses, two patterns and no work. A point writes its step
// and number into its output and ends the process if an input is not that of the point it comes from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

struct TaskGraph {
  long timesteps = 4, max_width = 4;
  bool reads_all = false;  // of the step before; else the neighbours
  std::size_t output_bytes_per_task = 2 * sizeof(long), scratch_bytes_per_task = 64;

  long offset_at_timestep(long) const { return 0; }
  long width_at_timestep(long) const { return max_width; }
  long dependence_set_at_timestep(long) const { return 0; }
  std::vector<std::pair<long, long>> dependencies(long, long point) const {
    if (reads_all) return {{0, max_width - 1}};
    return {{std::max(0L, point - 1), std::min(max_width - 1, point + 1)}};
  }
  void execute_point(long step, long point, char* out, std::size_t bytes, const char** inputs,
                     const std::size_t* input_bytes, std::size_t count, char*, std::size_t) const {
    const auto [first, last] = dependencies(0, point)[0];
    bool fine = bytes == output_bytes_per_task && count == (step == 0 ? 0 : static_cast<std::size_t>(last - first + 1));
    for (std::size_t i = 0; fine && i < count; ++i) {
      const long expected[2] = {step - 1, first + static_cast<long>(i)};
      fine = input_bytes[i] == sizeof expected && std::memcmp(inputs[i], expected, sizeof expected) == 0;
    }
    if (!fine) {
      std::fprintf(stderr, "step %ld, point %ld: an input that is not its own\n", step, point);
      std::abort();
    }
    const long mine[2] = {step, point};
    std::memcpy(out, mine, sizeof mine);
  }
  static void prepare_scratch(char*, std::size_t) {}
};

struct App {
  std::vector<TaskGraph> graphs{2};
  App(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; ++i) {
      const std::string_view is = argv[i];
      for (TaskGraph& g : graphs) {
        if (is == "-steps") g.timesteps = std::atol(argv[i + 1]);
        if (is == "-width") g.max_width = std::atol(argv[i + 1]);
        if (is == "-type") g.reads_all = std::string_view(argv[i + 1]) == "all_to_all";
      }
    }
    graphs[1].timesteps = graphs[0].timesteps / 2;  // and another one beside it, which ends earlier
  }
  void display() const {}
  void report_timing(double seconds) const {
    std::printf("%zu graphs, %ld steps: %g s\n", graphs.size(), graphs[0].timesteps, seconds);
  }
};
