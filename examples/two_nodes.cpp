// What this file is for: one program, two processes: the second one finds the first and runs half of its work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe-two_nodes             starts a second process of itself, shares work with it, checks the result
//   troupe-two_nodes join ADDR   is that second process: a worker
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include <troupe/troupe.hpp>

#include "examples/command_line.hpp"

extern char** environ;

namespace {

using troupe::index_t;

constexpr auto grow =
    troupe::kernel<troupe::inout<double, 1>, double>("grow").on(troupe::cpu, [](troupe::view<double, 1> a, double by) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i)
        for (int k = 0; k < 100; ++k) a(i) = a(i) * by + 1.0;
    });

// The kernels that other nodes may ask this process to run.
const troupe::offer offered{grow};

troupe::options cluster_of_two(const char* name) {
  troupe::options o;
  o.cluster.cluster_name = "two-nodes";
  o.cluster.node_name = name;
  o.cluster.insecure_loopback = true;  // between processes of one machine; else a secret, see docs/security.md
  return o;
}

int work_for(const char* address) {
  troupe::options o = cluster_of_two("worker");
  o.cluster.join = {address};
  troupe::runtime rt(o);
  char end;
  return read(STDIN_FILENO, &end, 1) == 0 ? 0 : 1;  // until the other one closes its end
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string usage =
      "usage: troupe-two_nodes [join ADDRESS]   alone: starts a second one of itself, which joins";
  if (examples::explains_itself(argc, argv, "troupe-two_nodes", usage)) return 0;
  if (argc == 3 && std::strcmp(argv[1], "join") == 0) return work_for(argv[2]);
  if (argc != 1) throw std::invalid_argument(usage);

  troupe::options o = cluster_of_two("owner");
  o.cluster.listen = {"127.0.0.1:0"};
  troupe::runtime rt(o);

  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  std::string address = rt.addresses().front(), join = "join";
  char* const arguments[] = {argv[0], join.data(), address.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, pipe_ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&files, pipe_ends[1]);
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  close(pipe_ends[0]);
  if (failed) return 1;

  int wrong = 0;
  if (rt.wait_for_nodes(1, std::chrono::seconds(10))) {
    const index_t n = 1 << 16;
    const auto a = rt.filled<double>({n}, troupe::tiles(1 << 12), 1.0);
    for (int round = 0; round < 20; ++round) rt.for_each(troupe::grid(n), grow, troupe::update(a), 0.5);
    const auto v = a.read();
    for (index_t i = 0; i < n; ++i) wrong += v(i) != v(0) || v(i) < 1.9 || v(i) > 2.1 ? 1 : 0;
    for (const auto& e : rt.executors())
      std::printf("%-8s ran %llu tasks\n", e.name.c_str(), static_cast<unsigned long long>(e.tasks));
    std::printf("%s\n", wrong == 0 ? "all results are right" : "WRONG RESULTS");
  } else {
    std::printf("nobody came\n");
    wrong = 1;
  }
  close(pipe_ends[1]);
  waitpid(child, nullptr, 0);
  return wrong == 0 ? 0 : 1;
} catch (...) {
  return examples::complain("troupe-two_nodes");
}
