// What this file is for: nodes for tests: what they are started with, worker processes, and looking at which are there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Workers are this program, started again: its `main` hands `worker NAME SECRET LISTEN|- [JOIN] [THREADS]` to `serve`.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/support/processes.hpp"

namespace test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using troupe::scope;

inline double seconds_since(clock::time_point from) {
  return std::chrono::duration<double>(clock::now() - from).count();
}

/// `secret`: a file; "-": neither proof nor encryption, on loopback addresses. TEST_TRUSTED_FABRIC says that bodies may
/// go through a fabric.
inline troupe::options node_options(const std::string& name, const std::string& secret) {
  troupe::options o;
  o.threads = 1;
  o.cluster.cluster_name = "system-test";
  o.cluster.node_name = name;
  if (secret == "-")
    o.cluster.insecure_loopback = true;
  else
    o.cluster.secret_file = secret;
  o.cluster.trusted_fabric = std::getenv("TEST_TRUSTED_FABRIC") != nullptr;
  return o;
}

inline troupe::options owner_options(const std::string& secret) {
  troupe::options o = node_options("owner", secret);
  o.cluster.listen = {"127.0.0.1:0"};
  return o;
}

/// Works for others until its input ends. Answers lines of it: "report" with what it holds, "most" with the most that
/// its arrays have taken, "ran" with how many tasks;
/// others by `more`, which gives the answer. WORKER_MEMORY and WORKER_SPILL are its memory and where it may spill.
inline int serve(const std::vector<std::string>& words,
                 const std::function<std::string(const std::string&)>& more = {}) {
  const auto say = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  troupe::options o = node_options(words.at(1), words.at(2));
  if (words.at(3) != "-") o.cluster.listen = {words[3]};
  if (words.size() > 4) o.cluster.join = {words[4]};
  if (words.size() > 5) o.threads = std::stoi(words[5]);
  if (const char* bytes = std::getenv("WORKER_MEMORY")) o.memory_bytes = std::stoull(bytes);
  if (const char* folder = std::getenv("WORKER_SPILL")) o.spill_directory = folder;
  troupe::runtime rt(std::move(o));
  for (const std::string& a : rt.addresses()) say("listening " + a);
  say("ready");
  for (std::string line; std::getline(std::cin, line);) {
    const troupe::runtime_report r = rt.report();
    if (line == "report")
      say("report nodes " + std::to_string(rt.nodes().size()) + " unfinished " +
          std::to_string(r.spawned - r.finished) + " arrays " + std::to_string(r.arrays) + " bytes " +
          std::to_string(r.bytes_allocated));
    else if (line == "most")
      say("most " + std::to_string(r.bytes_allocated_max));
    else if (line == "ran")
      say("ran " + std::to_string(rt.executors(scope::here()).front().tasks));
    else if (more)
      say(more(line));
  }
  return 0;
}

/// For a worker that has so much memory for arrays, and that folder for what finds no room in it.
inline child_options with_memory(std::size_t bytes, const std::string& spill = "") {
  child_options how;
  how.environment.push_back("WORKER_MEMORY=" + std::to_string(bytes));
  if (!spill.empty()) how.environment.push_back("WORKER_SPILL=" + spill);
  return how;
}

/// A worker process that joins at an address and can be reached at another.
class worker {
 public:
  worker(const std::string& name, const std::string& secret, const std::string& join,
         const std::string& listen = "127.0.0.1:0", const child_options& where = {}, int threads = 1)
      : process({"/proc/self/exe", "worker", name, secret, listen, join, std::to_string(threads)}, where) {}
  /// Where it listens, once it does. To be asked before all else: it says so once.
  std::string address() {
    if (address_.empty()) address_ = process.line_after("listening ");
    return address_;
  }
  /// Returns what the worker holds for others: "nodes 1 unfinished 0 arrays 1 bytes 4096".
  std::string report() {
    process.tell("report");
    return process.line_after("report ");
  }
  /// Bytes that its arrays have taken at most.
  std::uint64_t most() {
    process.tell("most");
    return std::stoull(process.line_after("most "));
  }
  /// Bodies that it has run.
  std::uint64_t ran() {
    process.tell("ran");
    return std::stoull(process.line_after("ran "));
  }

  child process;

 private:
  std::string address_;
};

/// Looks whenever something may have changed; false if it does not become true in time.
template <class F>
bool comes_true(const troupe::runtime& rt, F&& f, std::chrono::milliseconds limit = 20s) {
  const auto deadline = clock::now() + limit;
  while (!f()) {
    if (clock::now() > deadline) return false;
    rt.wait_for_nodes(1000, 1ms);  // which never are there: until a node has come or gone, or a millisecond has passed
  }
  return true;
}

inline std::uint64_t tasks_of(const troupe::runtime& rt, const std::string& name) {
  for (const auto& n : rt.nodes())
    if (n.name == name) return n.tasks;
  return 0;
}
inline bool is_there(const troupe::runtime& rt, const std::string& name) {
  return std::ranges::count(rt.nodes(), name, &troupe::node_report::name) != 0;
}

}  // namespace test
