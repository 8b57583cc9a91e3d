// Task Bench's graphs as tasks of troupe: an array of one tile for each output, a task for each point.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/troupe.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

struct App;

namespace task_bench {

/// The graphs that the command line describes, as Task Bench reads it; unknown options are left to others. One in each
/// process, which must live until the process ends: tasks find their graph in it.
class all_graphs {
 public:
  all_graphs(int argc, char** argv);
  ~all_graphs();
  all_graphs(const all_graphs&) = delete;
  all_graphs& operator=(const all_graphs&) = delete;

  [[nodiscard]] const App& app() const { return *app_; }
  void display() const;
  void report(double seconds) const;
  /// The points of the step before that the point needs, rising.
  [[nodiscard]] std::span<const long> inputs(std::size_t graph, long step, long point) const;

 private:
  std::unique_ptr<App> app_;
  std::vector<std::vector<std::vector<long>>> inputs_;  // by graph, then by step and point
};

using output = troupe::array<char, 1>;

/// The memory of the outputs: two for each point, written in turn.
class outputs {
 public:
  outputs(troupe::runtime&, const all_graphs&);
  [[nodiscard]] const output& at(std::size_t graph, long step, long point) const {
    return all_[step % 2][graph][static_cast<std::size_t>(point)];
  }

 private:
  std::vector<std::vector<output>> all_[2];  // by the step's parity, graph and point
};

/// Spawns all tasks, step by step. `where`: the nodes to which points are dealt out in blocks, if `spread`.
void submit(troupe::runtime&, const all_graphs&, const outputs&, std::span<const troupe::scope> where, bool spread);
void submit(troupe::recorder&, const all_graphs&, const outputs&, std::span<const troupe::scope> where, bool spread);

}  // namespace task_bench
