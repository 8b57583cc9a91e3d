// METG(50 %) of graphs in steps: the length of a task at which half of the machine does useful work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include "metg.hpp"
#include "steps.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

namespace bench {

namespace {

struct series {
  std::string name;  // of its rows
  step_shape shape;
  std::optional<double> spawned_bound, recorded_bound;  // us
  double factor;                                        // better than either peer, spawned
};

// As many tasks in a step as threads; four graphs have the same together.
std::vector<series> all_series(const settings& how) {
  const std::size_t width = std::max(2U, how.threads);
  std::vector<series> all;
  for (const step_pattern p : step_patterns)
    all.push_back({std::string(name_of(p)), {.pattern = p, .width = width}, 12, 4, 1 / 0.7});
  all.push_back({"stencil_1d_x4", {.width = width, .graphs = 4}, 12, 1.3, 1 / 0.8});
  all.push_back({"stencil_1d_64KiB", {.width = width, .output_bytes = 64 << 10}, 100, 100, 1.0});
  // Copies of 8 MiB for each thread, which are in no cache of its own.
  all.push_back({"stencil_1d_memory", {.width = width, .scratch_bytes = 8 << 20}, {}, {}, 1.0});
  return all;
}

// The time of a perfect run, with what an iteration takes in the mean of before and afterwards, over that of a whole
// run.
std::optional<double> efficiency(contender& who, const settings& how, step_shape shape, double body_us, bool recorded) {
  const double before = iteration_ns(how.threads, shape.scratch_bytes);
  shape.iterations = static_cast<std::uint64_t>(std::max(1.0, body_us * 1000 / before));
  const double tasks = (how.quick ? 4'000 : 20'000) * static_cast<double>(how.threads) / (body_us + 2);
  shape.steps = std::clamp<std::size_t>(static_cast<std::size_t>(tasks) / (shape.width * shape.graphs), 20, 2'000);
  step_problem problem(shape);
  const auto spent = who.steps(problem, recorded);
  if (!spent) return {};
  if (!who.checks_itself()) problem.check();
  return problem.ideal_ns(how.threads, (before + iteration_ns(how.threads, shape.scratch_bytes)) / 2) /
         spent->nanoseconds;
}

figures measure(contender& who, const settings& how) {
  figures found;
  for (const auto& each : all_series(how))
    for (const bool recorded : {false, true})
      found.push_back(metg50([&](double body_us) { return efficiency(who, how, each.shape, body_us, recorded); }));
  return found;
}

// Small graphs of every pattern, odd widths and both kernels: `steps` throws when an input is not what the step before
// has made.
void verify(contender& who) {
  const auto run = [&](const step_shape& shape) {
    for (const bool recorded : {false, true}) {
      step_problem problem(shape);
      if (who.steps(problem, recorded) && !who.checks_itself()) problem.check();
    }
  };
  for (const step_pattern p : step_patterns)
    for (const std::size_t width : {1U, 3U, 7U, 40U})
      run({.pattern = p, .width = width, .steps = 30, .graphs = 2, .iterations = 1});
  run({.width = 7, .steps = 30, .graphs = 2, .iterations = 5, .scratch_bytes = 4 * scratch_piece});
}

}  // namespace

group taskbench_group(const settings& how) {
  group all{.name = "taskbench",
            .about = "METG(50 %) of Task Bench's graphs: steps of one task for each thread that need the step before",
            .rows = {},
            .measure = measure,
            .verify = verify};
  for (const auto& each : all_series(how)) {
    all.rows.push_back(
        {"taskbench/" + each.name,
         "us",
         better::lower,
         each.spawned_bound,
         {{"tbb", each.factor}, {"openmp", each.factor}, {"libomp", each.factor}, {"starpu", each.factor}}});
    all.rows.push_back(
        {"taskbench/" + each.name + "/recorded", "us", better::lower, each.recorded_bound, {{"mpi", 1 / 1.2}}});
  }
  return all;
}

}  // namespace bench
