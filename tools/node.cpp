// What this file is for: a worker of a cluster as a program.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/node.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <map>
#include <set>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "tools/words.hpp"

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

void say(const char* what, const std::string& who) {
  std::printf("%s %s\n", what, shown(who).c_str());
  std::fflush(stdout);
}

std::set<std::string> names_of(const std::vector<node_report>& all) {
  std::set<std::string> names;
  for (const node_report& n : all) names.insert(n.name);
  return names;
}

// A line for each that is new, and for each whose reason is another one than before.
void say_failures(const std::vector<connection_failure>& now, std::map<std::string, std::string>& told) {
  std::map<std::string, std::string> all;
  for (const connection_failure& r : now) {
    const auto before = told.find(r.address);
    if (before == told.end() || before->second != r.why)
      say(r.code == errc::unreachable ? "unreachable" : "refused", r.why);
    all.emplace(r.address, r.why);
  }
  told = std::move(all);
}

}  // namespace

std::optional<resource> quantity_in(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0) return {};
  resource r{text.substr(0, sign), 0};
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data() + sign + 1, end, r.amount);
  if (fault != std::errc() || stop != end || !(r.amount >= 0)) return {};
  return r;
}

int run_node(node_command c) {
  const sigset_t signals = blocked_signals();
  for (const std::string& p : c.plugins)
    if (!dlopen(p.c_str(), RTLD_NOW | RTLD_GLOBAL))
      throw error(errc::io_failed, "the plugin cannot be loaded: " + std::string(dlerror()));
  runtime rt(std::move(c.how));
  for (const std::string& a : rt.addresses()) say("listening", a);
  say("ready", std::to_string(rt.report().threads) + " threads");
  const cluster_report here = rt.query_cluster(std::chrono::milliseconds(0));
  if (std::ranges::any_of(here.members, [](const member_report& m) { return m.is_self && m.kernels == 0; }))
    say("offers", "no kernels, so nobody gives it work: name the plugin that has them with --plugin");
  std::set<std::string> there;
  std::map<std::string, std::string> failures;
  int signal = 0;
  while ((signal = next_signal(signals, look_every)) < 0) {
    std::set<std::string> now = names_of(rt.nodes());
    for (const std::string& n : now)
      if (!there.contains(n)) say("joined", n);
    for (const std::string& n : there)
      if (!now.contains(n)) say("gone", n);
    there = std::move(now);
    say_failures(rt.connection_failures(), failures);
  }
  say("leaving", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  const shutdown_report r = rt.shutdown(c.drain);
  say("ended", r.complete ? "complete" : "before all was done");
  return r.complete ? 0 : 1;
}

}  // namespace troupe::tools
