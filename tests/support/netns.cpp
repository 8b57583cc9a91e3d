// What this file is for: namespaces made by threads that end, wired up by iproute2 and nftables.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/netns.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <thread>

namespace test {

namespace {

// A new network namespace, or -1 and errno. It lives as long as the descriptor, or a process in it.
int new_namespace() {
  int space = -1, fault = 0;
  // In a thread of its own, which takes its own namespace with it into its grave: this process stays where it is.
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0) space = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    fault = errno;
  }).join();
  errno = fault;
  return space;
}

child_options in(int space) {
  child_options o;
  o.net_namespace = space;
  return o;
}

std::string text_of(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& w : words) all += (all.empty() ? "" : " ") + w;
  return all;
}

std::string run_in(int space, const std::vector<std::string>& words) {
  const auto done = run(words, in(space));
  if (done.how != ended_with(0))
    throw std::runtime_error("'" + text_of(words) + "' failed, " + done.how.text() + ": " + done.err);
  return done.out;
}

// As another process finds it.
std::string path_of(int space) { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(space); }

std::string what_is_missing() {
  const int space = new_namespace();
  if (space < 0)
    return std::string("network namespaces cannot be made (") + std::strerror(errno) +
           "): this needs CAP_SYS_ADMIN and CAP_NET_ADMIN";
  std::string why;
  const std::vector<std::vector<std::string>> needed = {
      {"ip", "link", "add", "probe", "type", "bridge"},
      {"ip", "link", "add", "one", "type", "veth", "peer", "name", "two"},
      {"nft", "add", "table", "ip", "probe"},
      {"tc", "qdisc", "add", "dev", "one", "root", "tbf", "rate", "1mbit", "burst", "32kb", "latency", "50ms"}};
  for (const auto& words : needed) {
    try {
      run_in(space, words);
    } catch (const std::exception& e) {
      why = std::string("networks of namespaces cannot be made here: ") + e.what();
      break;
    }
  }
  ::close(space);
  return why;
}

}  // namespace

std::string network::why_not() {
  static const std::string why = what_is_missing();
  return why;
}

network::network(int hosts) : hub_(new_namespace()) {
  if (hub_ < 0) throw std::runtime_error(std::string("no network namespace: ") + std::strerror(errno));
  try {
    run_in(hub_, {"ip", "link", "add", "switch", "type", "bridge"});
    run_in(hub_, {"ip", "link", "set", "switch", "up"});
    for (int i = 0; i < hosts; ++i) {
      const int space = new_namespace();
      if (space < 0) throw std::runtime_error(std::string("no network namespace: ") + std::strerror(errno));
      hosts_.push_back(space);
      const std::string port = "port" + std::to_string(i);
      run_in(hub_, {"ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", path_of(space)});
      run_in(hub_, {"ip", "link", "set", port, "master", "switch", "up"});
      run_in(space, {"ip", "link", "set", "lo", "up"});
      run_in(space, {"ip", "address", "add", address(i) + "/24", "dev", "eth0"});
      run_in(space, {"ip", "link", "set", "eth0", "up"});
      run_in(space, {"nft", "add table ip cuts; add chain ip cuts input { type filter hook input priority 0; }"});
    }
  } catch (...) {
    for (const int h : hosts_) ::close(h);
    ::close(hub_);
    throw;
  }
}

network::~network() {
  for (const int h : hosts_) ::close(h);
  ::close(hub_);
}

child_options network::on(int host) const { return in(hosts_.at(static_cast<std::size_t>(host))); }

std::string network::run_on(int host, std::vector<std::string> words) const {
  return run_in(hosts_.at(static_cast<std::size_t>(host)), words);
}

void network::rule(int host, const std::string& text) const { run_on(host, {"nft", "add rule ip cuts input " + text}); }

void network::drop(int from, int to) { rule(to, "ip saddr " + address(from) + " drop"); }

void network::cut(const std::vector<int>& some, const std::vector<int>& others) {
  for (const int a : some)
    for (const int b : others) {
      drop(a, b);
      drop(b, a);
    }
}

void network::lose(int host, int percent) {
  // 100 of 100 is no number that nft would take.
  rule(host, percent >= 100 ? "iifname eth0 drop"
                            : "iifname eth0 numgen random mod 100 < " + std::to_string(percent) + " drop");
}

void network::heal() {
  for (int i = 0; i < size(); ++i) run_on(i, {"nft", "flush chain ip cuts input"});
}

void network::unplug(int host) { run_on(host, {"ip", "link", "set", "eth0", "down"}); }
void network::plug(int host) { run_on(host, {"ip", "link", "set", "eth0", "up"}); }

void network::slow_down(int host, long bits_per_second) {
  if (bits_per_second == 0)
    run_on(host, {"tc", "qdisc", "del", "dev", "eth0", "root"});
  else
    run_on(host, {"tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate",
                  std::to_string(bits_per_second) + "bit", "burst", "64kb", "latency", "400ms"});
}

}  // namespace test
