// Steps of each contender while one thread of another process computes without a pause.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "neighbour.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "steps.hpp"

namespace bench {

namespace {

constexpr std::array patterns{step_pattern::stencil_1d, step_pattern::nearest, step_pattern::load_imbalance};
constexpr double body_us = 16;

/// A process with one thread that computes while this object lives. It ends with its parent.
class busy_neighbour {
 public:
  busy_neighbour() : process_(::fork()) {
    if (process_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Only what may be called in the child of a process with threads.
    std::atomic<std::uint64_t> n{0};
    for (;;) n.fetch_add(1, std::memory_order_relaxed);
  }
  ~busy_neighbour() {
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  busy_neighbour(const busy_neighbour&) = delete;
  busy_neighbour& operator=(const busy_neighbour&) = delete;

 private:
  const pid_t process_;
};

figures measure(contender& who, const settings& how) {
  const std::size_t width = std::max(2U, how.threads);
  const std::uint64_t iterations = std::max(1.0, body_us * 1000 / iteration_ns(how.threads));
  figures found;
  for (const bool has_neighbour : {false, true}) {
    std::optional<busy_neighbour> other;
    if (has_neighbour) other.emplace();
    for (const step_pattern p : patterns) {
      step_problem problem(
          {.pattern = p, .width = width, .steps = how.quick ? 2'000U : 10'000U, .iterations = iterations});
      const auto spent = who.steps(problem, false);
      if (spent && !who.checks_itself()) problem.check();
      found.push_back(spent ? std::optional(spent->nanoseconds / 1000 / static_cast<double>(problem.shape().steps))
                            : std::nullopt);
    }
  }
  return found;
}

}  // namespace

group neighbour_group() {
  group all{
      .name = "neighbour",
      .about = "a step of tasks of 16 us, one for each thread, alone and beside a process that keeps one core busy",
      .rows = {},
      .measure = measure};
  for (const char* where : {"alone", "beside"})
    for (const step_pattern p : patterns) {
      row r{"neighbour/" + std::string(name_of(p)) + "/" + where, "us/step", better::lower};
      if (where == std::string("beside")) r.ratios = {{"tbb", 0.9}};
      all.rows.push_back(r);
    }
  return all;
}

}  // namespace bench
