// Graphs in steps by MPI: the program that mpirun starts, once for each process.
//
//   troupe-bench-mpi PATTERN WIDTH STEPS GRAPHS BYTES ITERATIONS SCRATCH     the first process prints the nanoseconds
//                                                                            that all steps took
//
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "../taskbench/shape_words.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace {

using output = std::vector<std::uint64_t>;

// Points of a step in equal parts: process r has those from r * width / processes on.
std::size_t owner_of(std::size_t at, std::size_t width, std::size_t processes) { return at * processes / width; }

/// A graph, as this process has it.
class graph {
 public:
  graph(const bench::step_problem& problem, std::size_t number, std::size_t me, std::size_t processes)
      : problem_(problem), number_(number), me_(me), processes_(processes) {
    const auto& shape = problem.shape();
    for (auto* const all : {&before_, &now_})
      all->assign(shape.width, output(shape.output_bytes / sizeof(std::uint64_t), ~std::uint64_t{0}));
  }

  // Begins to send what others need of mine, and to receive what I need of theirs: each output once for a pair.
  void exchange(std::size_t step, std::vector<MPI_Request>& requests) {
    const std::size_t width = problem_.shape().width;
    const auto words = static_cast<int>(problem_.shape().output_bytes / sizeof(std::uint64_t));
    for (std::size_t at = 0; step != 0 && at < width; ++at) {
      std::vector<bool> told(processes_);
      for (std::size_t to = 0; to < width; ++to) {
        const auto inputs = problem_.inputs(step, to);
        if (std::find(inputs.begin(), inputs.end(), static_cast<std::uint32_t>(at)) == inputs.end()) continue;
        const std::size_t from = owner_of(at, width, processes_), reader = owner_of(to, width, processes_);
        if (from == reader || told[reader]) continue;
        told[reader] = true;
        MPI_Request r = MPI_REQUEST_NULL;
        const int tag = static_cast<int>(number_ * width + at);
        if (from == me_)
          MPI_Isend(before_[at].data(), words, MPI_UINT64_T, static_cast<int>(reader), tag, MPI_COMM_WORLD, &r);
        else if (reader == me_)
          MPI_Irecv(before_[at].data(), words, MPI_UINT64_T, static_cast<int>(from), tag, MPI_COMM_WORLD, &r);
        else
          continue;
        requests.push_back(r);
      }
    }
  }
  // Checks, computes and fills my part of a step, whose inputs are there.
  void compute(std::size_t step) {
    const std::size_t width = problem_.shape().width;
    for (std::size_t at = 0; at < width; ++at) {
      if (owner_of(at, width, processes_) != me_) continue;
      for (const std::uint32_t other : problem_.inputs(step, at))
        for (std::size_t i = 0; i < before_[other].size(); i += 2)
          wrong += before_[other][i] != step - 1 || before_[other][i + 1] != other;
      problem_.work(number_, step, at);
      for (std::size_t i = 0; i < now_[at].size(); i += 2) {
        now_[at][i] = step;
        now_[at][i + 1] = at;
      }
    }
    std::swap(before_, now_);
  }

  int wrong = 0;

 private:
  const bench::step_problem& problem_;
  const std::size_t number_, me_, processes_;
  std::vector<output> before_, now_;
};

int run(const bench::step_problem& problem, std::size_t me, std::size_t processes) {
  std::vector<graph> graphs;
  for (std::size_t g = 0; g < problem.shape().graphs; ++g) graphs.emplace_back(problem, g, me, processes);
  std::vector<MPI_Request> requests;
  for (std::size_t step = 0; step < problem.shape().steps; ++step) {
    requests.clear();
    for (graph& g : graphs) g.exchange(step, requests);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (graph& g : graphs) g.compute(step);
  }
  int wrong = 0;
  for (const graph& g : graphs) wrong += g.wrong;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto shape = argc == 1 + bench::shape_words ? bench::shape_of(argv + 1) : std::nullopt;
  if (!shape) {
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  const bench::step_problem problem(*shape);
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
