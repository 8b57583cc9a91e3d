// What this file is for: a worker of a cluster as a program, and a look at the nodes of one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/node.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <set>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

namespace troupe::tools {

namespace {

// Somebody may have joined or left: how often that is looked at.
constexpr auto look_every = std::chrono::milliseconds(200);

// Blocked before the first thread is made, so that only `next_signal` takes them.
sigset_t blocked_signals() {
  sigset_t all;
  sigemptyset(&all);
  sigaddset(&all, SIGTERM);
  sigaddset(&all, SIGINT);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  return all;
}

int next_signal(const sigset_t& all, std::chrono::nanoseconds limit) {
  const timespec t{static_cast<time_t>(limit.count() / 1'000'000'000),
                   static_cast<long>(limit.count() % 1'000'000'000)};
  return sigtimedwait(&all, nullptr, &t);
}

// Others choose their names: nothing of them is a command to a terminal.
std::string shown(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return name;
}

void say(const char* what, const std::string& who) {
  std::printf("%s %s\n", what, shown(who).c_str());
  std::fflush(stdout);
}

std::set<std::string> names_of(const std::vector<node_report>& all) {
  std::set<std::string> names;
  for (const node_report& n : all) names.insert(n.name);
  return names;
}

std::string quoted(const std::string& s) {
  std::string q = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') q += '\\';
    q += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return q + "\"";
}

}  // namespace

int run_node(node_command c) {
  const sigset_t signals = blocked_signals();
  for (const std::string& p : c.plugins)
    if (!dlopen(p.c_str(), RTLD_NOW | RTLD_GLOBAL))
      throw error(errc::io_failed, "the plugin cannot be loaded: " + std::string(dlerror()));
  runtime rt(std::move(c.how));
  for (const std::string& a : rt.addresses()) say("listening", a);
  say("ready", std::to_string(rt.report().threads) + " threads");
  std::set<std::string> there;
  int signal = 0;
  while ((signal = next_signal(signals, look_every)) < 0) {
    std::set<std::string> now = names_of(rt.nodes());
    for (const std::string& n : now)
      if (!there.contains(n)) say("joined", n);
    for (const std::string& n : there)
      if (!now.contains(n)) say("gone", n);
    there = std::move(now);
  }
  say("leaving", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  const shutdown_report r = rt.shutdown(c.drain);
  say("ended", r.complete ? "complete" : "before all was done");
  return r.complete ? 0 : 1;
}

int show_nodes(options o, std::chrono::milliseconds look, bool json) {
  o.threads = 1;
  o.cluster.take_work = o.cluster.give_work = false;
  runtime rt(std::move(o));
  // Whoever answers tells of the others: until nobody new has come for a while.
  std::size_t seen = 0;
  while (rt.wait_for_nodes(seen + 1, look)) seen = rt.nodes().size();
  const std::vector<node_report> all = rt.nodes();
  if (json) {
    std::printf("[");
    for (const node_report& n : all)
      std::printf("%s{\"name\": %s, \"id\": \"%s\", \"address\": %s, \"threads\": %d, \"kernels\": %llu}",
                  &n == &all.front() ? "" : ", ", quoted(n.name).c_str(), n.id.c_str(), quoted(n.address).c_str(),
                  n.threads, static_cast<unsigned long long>(n.kernels));
    std::printf("]\n");
    return all.empty() ? 1 : 0;
  }
  if (all.empty()) {
    std::printf("no node answered\n");
    return 1;
  }
  std::printf("%-24s %-24s %8s %8s\n", "name", "address", "threads", "kernels");
  for (const node_report& n : all)
    std::printf("%-24s %-24s %8d %8llu\n", shown(n.name).c_str(),
                n.address.empty() ? "(dials only)" : shown(n.address).c_str(), n.threads,
                static_cast<unsigned long long>(n.kernels));
  return 0;
}

}  // namespace troupe::tools
