// A graph in steps by MPI: the program that bench/nodes/mpi.cpp starts, once for each process.
//
//   troupe-bench-mpi PATTERN WIDTH STEPS ITERATIONS     the first process prints the nanoseconds that all steps took
//
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "../taskbench/steps.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using output = std::array<std::uint64_t, 2>;

// Points of a step in equal parts: process r has those from r * width / processes on.
std::size_t owner_of(std::size_t at, std::size_t width, std::size_t processes) { return at * processes / width; }

int run(const bench::step_problem& problem, std::size_t me, std::size_t processes) {
  const auto& shape = problem.shape();
  std::vector<output> before(shape.width), now(shape.width);
  std::vector<MPI_Request> requests;
  const auto is_mine = [&](std::size_t at) { return owner_of(at, shape.width, processes) == me; };
  int wrong = 0;
  for (std::size_t step = 0; step < shape.steps; ++step) {
    requests.clear();
    if (step != 0)
      for (std::size_t at = 0; at < shape.width; ++at) {
        // What others need of mine, and what I need of theirs: each output once for a pair of processes.
        std::vector<bool> told(processes);
        for (std::size_t to = 0; to < shape.width; ++to) {
          const auto inputs = problem.inputs(step, to);
          if (std::find(inputs.begin(), inputs.end(), static_cast<std::uint32_t>(at)) == inputs.end()) continue;
          const std::size_t from = owner_of(at, shape.width, processes), reader = owner_of(to, shape.width, processes);
          if (from == reader || told[reader]) continue;
          told[reader] = true;
          MPI_Request r = MPI_REQUEST_NULL;
          if (from == me)
            MPI_Isend(before[at].data(), 2, MPI_UINT64_T, static_cast<int>(reader), static_cast<int>(at),
                      MPI_COMM_WORLD, &r);
          else if (reader == me)
            MPI_Irecv(before[at].data(), 2, MPI_UINT64_T, static_cast<int>(from), static_cast<int>(at), MPI_COMM_WORLD,
                      &r);
          else
            continue;
          requests.push_back(r);
        }
      }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t at = 0; at < shape.width; ++at) {
      if (!is_mine(at)) continue;
      for (const std::uint32_t other : problem.inputs(step, at))
        wrong += before[other][0] != step - 1 || before[other][1] != other;
      bench::compute_steps(shape.iterations);
      now[at] = {step, at};
    }
    std::swap(before, now);
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bench::step_shape shape;
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  for (const bench::step_pattern p : bench::step_patterns)
    if (bench::name_of(p) == std::string_view(argv[1])) shape.pattern = p;
  shape.width = std::strtoull(argv[2], nullptr, 10);
  shape.steps = std::strtoull(argv[3], nullptr, 10);
  shape.iterations = std::strtoull(argv[4], nullptr, 10);
  const bench::step_problem problem(shape);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  int wrong = run(problem, static_cast<std::size_t>(rank), static_cast<std::size_t>(size)), all = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double spent = MPI_Wtime() - begin;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%.0f\n", spent * 1e9);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
