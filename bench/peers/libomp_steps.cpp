// Graphs in steps by OpenMP tasks, as LLVM's compiler and library run them: the contender of openmp.cpp in a program of
// its own, because libomp and libgomp cannot be in one process.
//
//   troupe-bench-libomp THREADS PATTERN WIDTH STEPS GRAPHS BYTES ITERATIONS SCRATCH    prints the nanoseconds that they
//                                                                                      took
//
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "../contender.hpp"
#include "../taskbench/shape_words.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char** argv) {
  const auto shape = argc == 2 + bench::shape_words ? bench::shape_of(argv + 2) : std::nullopt;
  if (!shape) return 2;
  try {
    const auto omp = bench::make_openmp();
    omp->start(static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)), bench::purpose::small_tasks);
    bench::step_problem problem(*shape);
    const auto spent = omp->steps(problem, false);
    problem.check();
    std::printf("%.0f\n", spent->nanoseconds);
    omp->stop();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
