// Steps of tasks by MPI, in processes that mpirun starts, one for each core: each has an equal part of every step.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "contender.hpp"

#include "../taskbench/shape_words.hpp"

#include <sstream>
#include <utility>
#include <vector>

namespace bench {

namespace {

class mpi final : public node_contender {
 public:
  std::string name() const override { return "mpi"; }
  std::string description() const override {
    return "MPI over TCP on loopback, a process for each core, bound to it, which never sleeps";
  }
  void stop() override {}

  std::optional<double> steps(const link& by, const crowd& all, const step_shape& shape, bool) override {
    if (by.over != route::loopback) return {};
    const std::size_t processes = all.nodes * all.cores;
    if (cores().size() < processes) throw missing(std::to_string(processes) + " cores");
    std::string used;
    for (std::size_t i = 0; i < processes; ++i) used += (i == 0 ? "" : ",") + std::to_string(cores()[i]);
    std::vector<std::string> command{"mpirun", "--allow-run-as-root", "-np", std::to_string(processes)};
    for (const char* word : {"--bind-to", "cpu-list:ordered", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
                             "lo", "--mca", "pml", "ob1", "--cpu-set"})
      command.emplace_back(word);
    command.push_back(used);
    command.emplace_back(TROUPE_BENCH_MPI);
    for (std::string& word : words_of(shape)) command.push_back(std::move(word));
    const auto done = test::run(command, {}, std::chrono::minutes(2));
    if (done.how != test::ended_with(0)) throw std::runtime_error("mpirun said: " + done.out + done.err);
    std::istringstream words(done.out);
    double nanoseconds = 0;
    if (!(words >> nanoseconds) || nanoseconds <= 0) throw std::runtime_error("mpirun gives no figure: " + done.out);
    return nanoseconds;
  }
};

}  // namespace

std::unique_ptr<contender> make_mpi() { return std::make_unique<mpi>(); }

}  // namespace bench
