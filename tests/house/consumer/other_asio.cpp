// Has a library of its own that is called boost::asio and is not the one that libtroupe was built with, as a program
// with another version of Boost has: names that the linker takes for the same, over other layouts. Two nodes meet over
// TCP.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <troupe/troupe.hpp>

namespace boost {
namespace system {
class error_code;
}
namespace asio {
class execution_context;
namespace detail {

[[noreturn]] inline void taken_for_another(const char* what) {
  std::printf("the library calls the program's %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

class scheduler_operation;
class scheduler_task;
template <class Operation>
class op_queue;

// Inline, as all of Asio is: the linker keeps the first definition that it meets, which is the program's.
class scheduler {
 public:
  scheduler(execution_context&, int, bool, scheduler_task* (*)(execution_context&));
  std::size_t poll(system::error_code&);
  std::size_t run(system::error_code&);
  void stop();
  void shutdown();
  void post_immediate_completion(scheduler_operation*, bool);
  char another_layout[4096];
};
class epoll_reactor {
 public:
  epoll_reactor(execution_context&);
  void run(long, op_queue<scheduler_operation>&);
  void interrupt();
  char another_layout[4096];
};
[[gnu::used]] inline scheduler::scheduler(execution_context&, int, bool, scheduler_task* (*)(execution_context&)) {
  taken_for_another("scheduler::scheduler");
}
[[gnu::used]] inline std::size_t scheduler::poll(system::error_code&) { taken_for_another("scheduler::poll"); }
[[gnu::used]] inline std::size_t scheduler::run(system::error_code&) { taken_for_another("scheduler::run"); }
[[gnu::used]] inline void scheduler::stop() { taken_for_another("scheduler::stop"); }
[[gnu::used]] inline void scheduler::shutdown() { taken_for_another("scheduler::shutdown"); }
[[gnu::used]] inline void scheduler::post_immediate_completion(scheduler_operation*, bool) {
  taken_for_another("scheduler::post_immediate_completion");
}
[[gnu::used]] inline epoll_reactor::epoll_reactor(execution_context&) { taken_for_another("epoll_reactor"); }
[[gnu::used]] inline void epoll_reactor::run(long, op_queue<scheduler_operation>&) {
  taken_for_another("epoll_reactor::run");
}
[[gnu::used]] inline void epoll_reactor::interrupt() { taken_for_another("epoll_reactor::interrupt"); }

}  // namespace detail
}  // namespace asio
}  // namespace boost

int main() try {
  const auto node = [](const char* name) {
    troupe::options o;
    o.threads = 1;
    o.cluster.cluster_name = "consumer";
    o.cluster.node_name = name;
    o.cluster.listen = {"127.0.0.1:0"};
    o.cluster.insecure_loopback = true;
    return o;
  };
  troupe::runtime first(node("first"));
  troupe::options o = node("second");
  o.cluster.join = first.addresses();
  troupe::runtime second(o);
  if (!second.wait_for_nodes(1, std::chrono::seconds(20))) {
    std::puts("the nodes have not met");
    return 1;
  }
  std::puts("the nodes have met");
} catch (const troupe::error& e) {
  std::printf("%s\n", e.what());
  return 1;
}
