// What this file is for: starting the programs of peers, and reading the time that they print.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "elsewhere.hpp"

#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "shape_words.hpp"
#include "steps.hpp"
#include "tests/support/processes.hpp"

namespace bench {

namespace {

/// A peer that runs nothing but steps. Its program checks every input.
class step_program : public contender {
 public:
  step_program(std::string name, std::string description) : name_(std::move(name)), about_(std::move(description)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return about_; }
  void start(unsigned threads, purpose) override { threads_ = threads; }
  void stop() override {}
  bool checks_itself() const override { return true; }

 protected:
  unsigned threads() const { return threads_; }
  cost run(std::vector<std::string> command, const step_shape& shape) const {
    for (std::string& word : words_of(shape)) command.push_back(std::move(word));
    const auto done = test::run(command, {}, std::chrono::minutes(2));
    if (done.how != test::ended_with(0)) throw wrong_answer(command[0] + " said: " + done.out + done.err);
    std::istringstream words(done.out);
    cost spent;
    if (!(words >> spent.nanoseconds) || spent.nanoseconds <= 0)
      throw wrong_answer(command[0] + " gives no figure: " + done.out);
    return spent;
  }

 private:
  const std::string name_, about_;
  unsigned threads_ = 1;
};

#if defined(TROUPE_BENCH_LIBOMP)
class libomp final : public step_program {
 public:
  libomp() : step_program("libomp", "OpenMP tasks with depend clauses, clang and libomp, in a process of their own") {}
  std::optional<cost> steps(step_problem& problem, bool recorded) override {
    if (recorded) return {};
    return run({TROUPE_BENCH_LIBOMP, std::to_string(threads())}, problem.shape());
  }
};
#endif

#if defined(TROUPE_BENCH_MPI)
class local_mpi final : public step_program {
 public:
  local_mpi() : step_program("mpi", "MPI by shared memory, a process for each thread, bound to a core, never asleep") {}
  // No tasks: what a loop by hand over the steps takes, beside both ways of giving tasks.
  std::optional<cost> steps(step_problem& problem, bool) override {
    return run({"mpirun", "--allow-run-as-root", "-np", std::to_string(threads()), "--bind-to", "core", "--mca", "btl",
                "vader,self", "--mca", "pml", "ob1", TROUPE_BENCH_MPI},
               problem.shape());
  }
};
#endif

}  // namespace

std::unique_ptr<contender> make_libomp() {
#if defined(TROUPE_BENCH_LIBOMP)
  return std::make_unique<libomp>();
#else
  return nullptr;
#endif
}

std::unique_ptr<contender> make_local_mpi() {
#if defined(TROUPE_BENCH_MPI)
  return std::make_unique<local_mpi>();
#else
  return nullptr;
#endif
}

}  // namespace bench
