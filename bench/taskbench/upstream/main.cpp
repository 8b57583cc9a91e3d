// troupe as a back end of Task Bench itself (StanfordLegion/task-bench), whose core library makes the graphs, computes,
// checks every input, and prints the figures. Built where TROUPE_TASK_BENCH names a checkout with core/libcore.a.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe-task-bench -steps 1000 -width 4 -type stencil_1d -kernel compute_bound -iter 64
//     --threads N    threads of each process; default: all cores, divided by the processes
//     --nodes K      processes, this one included, on loopback without encryption; points are dealt out in blocks
//     --recorded     the graphs are recorded before the clock, and run
// All other options are Task Bench's; -h shows them.
#include "tasks.hpp"

#include <troupe/troupe.hpp>

#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

namespace {

using clock_type = std::chrono::steady_clock;

struct arguments {
  int threads = 0, nodes = 1, worker = 0;  // worker: the number of this process, if another one has started it
  bool recorded = false;
  std::string join;
};

arguments parse(int argc, char** argv) {
  arguments a;
  const auto number = [&](int i) {
    char* end = nullptr;
    const long n = i < argc ? std::strtol(argv[i], &end, 10) : 0;
    if (n < 1 || n > 1024 || *end != '\0') throw std::invalid_argument(std::string(argv[i - 1]) + " takes 1 to 1024");
    return static_cast<int>(n);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view is = argv[i];
    if (is == "--threads") a.threads = number(++i);
    if (is == "--nodes") a.nodes = number(++i);
    if (is == "--recorded") a.recorded = true;
    if (is == "--worker") a.worker = number(++i);
    if (is == "--join" && i + 1 < argc) a.join = argv[++i];
  }
  return a;
}

// Binds this process to its part of the cores, where there is one for each process.
void bind_to_part(int part, int parts) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  std::vector<int> cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &all)) cores.push_back(c);
  const auto n = static_cast<int>(cores.size());
  if (n < parts) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  for (int i = part * n / parts; i < (part + 1) * n / parts; ++i) CPU_SET(cores[static_cast<std::size_t>(i)], &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

std::string name_of_node(int number) { return "node" + std::to_string(number); }

troupe::options options_of(const arguments& a) {
  troupe::options o;
  if (a.threads != 0) o.threads = a.threads;
  if (a.nodes == 1) return o;
  o.cluster.cluster_name = "task-bench";
  o.cluster.node_name = name_of_node(a.worker);
  o.cluster.insecure_loopback = true;
  o.cluster.listen = {"127.0.0.1:0"};  // the others, too: parts of graphs talk to each other
  if (a.worker != 0) o.cluster.join = {a.join};
  return o;
}

// The other processes: copies of this one, which end when this one closes their standard input.
class workers {
 public:
  workers(int count, int argc, char** argv, const std::string& address) {
    for (int number = 1; number <= count; ++number) {
      int ends[2];
      if (pipe(ends) != 0) throw std::runtime_error("no pipe");
      std::string own = std::to_string(number), to = address, worker = "--worker", join = "--join";
      std::vector<char*> list(argv, argv + argc);
      for (std::string* s : {&worker, &own, &join, &to}) list.push_back(s->data());
      list.push_back(nullptr);
      posix_spawn_file_actions_t files;
      posix_spawn_file_actions_init(&files);
      posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
      posix_spawn_file_actions_addclose(&files, ends[1]);
      for (const int open : inputs_) posix_spawn_file_actions_addclose(&files, open);
      pid_t process = 0;
      const int failed = posix_spawn(&process, "/proc/self/exe", &files, nullptr, list.data(), environ);
      posix_spawn_file_actions_destroy(&files);
      close(ends[0]);
      if (failed != 0) throw std::runtime_error("a process could not be started");
      inputs_.push_back(ends[1]);
      processes_.push_back(process);
    }
  }
  ~workers() {
    for (const int end : inputs_) close(end);
    for (const pid_t process : processes_) waitpid(process, nullptr, 0);
  }
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

 private:
  std::vector<int> inputs_;
  std::vector<pid_t> processes_;
};

// Records the graphs, once those of the other processes that have parts of them have found each other, too.
troupe::graph record(troupe::runtime& rt, const task_bench::all_graphs& graphs, const task_bench::outputs& memory,
                     const std::vector<troupe::scope>& where) {
  const auto limit = clock_type::now() + std::chrono::seconds(30);
  for (;;) try {
      return rt.record([&](troupe::recorder& r) { task_bench::submit(r, graphs, memory, where, where.size() > 1); });
    } catch (const troupe::error& e) {
      if (e.code() != troupe::errc::unreachable || clock_type::now() > limit) throw;
      rt.wait_for_nodes(where.size(), std::chrono::milliseconds(10));  // more than there are
    }
}

int run(int argc, char** argv) {
  const arguments a = parse(argc, argv);
  const task_bench::all_graphs graphs(argc, argv);
  bind_to_part(a.worker, a.nodes);
  troupe::runtime rt(options_of(a));
  if (a.worker != 0) {
    char end;
    return read(STDIN_FILENO, &end, 1) == 0 ? 0 : 1;
  }
  std::vector<troupe::scope> where(1, troupe::scope::here());
  std::unique_ptr<workers> others;
  if (a.nodes > 1) {
    others = std::make_unique<workers>(a.nodes - 1, argc, argv, rt.addresses().front());
    if (!rt.wait_for_nodes(static_cast<std::size_t>(a.nodes - 1), std::chrono::seconds(30)))
      throw std::runtime_error("the other processes did not come");
    for (int i = 1; i < a.nodes; ++i) where.push_back(troupe::scope::at(name_of_node(i)));
  }
  graphs.display();
  task_bench::outputs memory(rt, graphs);
  troupe::graph recording;
  if (a.recorded) recording = record(rt, graphs, memory, where);
  double seconds = 0;
  for (int round = 0; round < 2; ++round) {  // the first one for memory that was never used, and what is to be learned
    const auto begin = clock_type::now();
    if (a.recorded)
      rt.run(recording).get();
    else
      task_bench::submit(rt, graphs, memory, where, a.nodes > 1);
    rt.wait_all();
    seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
  }
  graphs.report(seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::fprintf(stderr, "troupe-task-bench: %s\n", e.what());
  return 1;
}
