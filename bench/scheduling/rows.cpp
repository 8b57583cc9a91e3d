// Costs of a task inside turns and outside, on real threads and on imagined cores.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include "bench/taskbench/metg.hpp"
#include "bench/taskbench/steps.hpp"
#include "imagined_cores.hpp"

#include <ctime>

#include <algorithm>
#include <string>
#include <vector>

namespace bench {

namespace {

// Real threads. As many graphs side by side as keep all of them busy, with bodies of 4 us.
constexpr unsigned thread_counts[] = {1, 2, 4, 16};
constexpr double real_body_ns = 4'000;
constexpr std::size_t graphs_of_real = 4;

// Imagined cores, and what a turn takes for each task where it was measured with 16 threads that read each other's
// cache lines (docs/performance.md).
constexpr int core_counts[] = {16, 128};
constexpr double order_on_many_ns = 550;

double processor_ns() {
  std::timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Time inside turns and outside of both turns and bodies, in ns a task.
figures on_threads(contender& who, unsigned threads, const settings& how) {
  who.start(threads, purpose::small_tasks);
  step_problem problem({.pattern = step_pattern::stencil_1d,
                        .width = std::max(2U, threads),
                        .steps = (how.quick ? 20'000U : 100'000U) / (std::max(2U, threads) * graphs_of_real),
                        .graphs = graphs_of_real,
                        .iterations = static_cast<std::uint64_t>(std::max(1.0, real_body_ns / iteration_ns(threads)))});
  const auto n = static_cast<double>(problem.tasks());
  figures found;
  if (const auto before = who.spent()) {
    const double cpu = processor_ns();
    (void)who.steps(problem, false);
    const double spent = processor_ns() - cpu;
    problem.check();
    const time_spent after = *who.spent();
    const double inside = after.deciding - before->deciding, bodies = after.in_bodies - before->in_bodies;
    found = {inside / n, (spent - inside - bodies) / n};
  } else {
    found.resize(2);
  }
  who.stop();
  return found;
}

imagined_pace on_imagined(const imagined_machine& m, step_pattern pattern, const settings& how) {
  const std::size_t tasks = how.quick ? 40'000 : 200'000, width = static_cast<std::size_t>(m.cores);
  step_problem problem({.pattern = pattern, .width = width, .steps = tasks / width, .iterations = 1});
  return run_on_imagined_cores(problem, m);
}

double imagined_metg(imagined_machine m, step_pattern pattern, const settings& how) {
  return *metg50([&](double body_us) -> std::optional<double> {
    m.body_ns = body_us * 1'000;
    return on_imagined(m, pattern, how).efficiency;
  });
}

figures measure(contender& who, const settings& how) {
  figures found;
  for (const unsigned threads : thread_counts)
    if (threads <= how.threads) {
      const figures some = on_threads(who, threads, how);
      found.insert(found.end(), some.begin(), some.end());
    }
  if (who.name() != "troupe") return found;
  for (const int cores : core_counts) {
    const imagined_machine m{.cores = cores, .body_ns = 1'000};
    const imagined_pace p = on_imagined(m, step_pattern::stencil_1d, how);
    found.insert(found.end(), {p.in_turn_ns, p.submit_ns, p.beside_ns});
    found.emplace_back(imagined_metg({.cores = cores}, step_pattern::stencil_1d, how));
    found.emplace_back(imagined_metg({.cores = cores, .order_ns = order_on_many_ns}, step_pattern::stencil_1d, how));
    found.emplace_back(on_imagined(m, step_pattern::all_to_all, how).in_turn_ns);
    found.emplace_back(imagined_metg({.cores = cores}, step_pattern::all_to_all, how));
  }
  return found;
}

}  // namespace

group scheduling_group(const settings& how) {
  group all{.name = "scheduling",
            .about = "time a task inside turns and outside, and what imagined cores are fed with",
            .rows = {},
            .where = stage::unstarted,
            .measure = measure};
  const auto add = [&](const std::string& name, const char* unit) {
    all.rows.push_back({"scheduling/" + name, unit, better::lower});
  };
  for (const unsigned threads : thread_counts)
    if (threads <= how.threads)
      for (const char* what : {"/inside", "/outside"}) add("threads/" + std::to_string(threads) + what, "ns/task");
  for (const int cores : core_counts) {
    const std::string name = "imagined/" + std::to_string(cores);
    for (const char* what : {"/inside", "/submission", "/beside"}) add(name + what, "ns/task");
    add(name + "/metg", "us");
    add(name + "/metg_550ns", "us");
    add(name + "/all_to_all/inside", "ns/task");
    add(name + "/all_to_all/metg", "us");
  }
  return all;
}

}  // namespace bench
