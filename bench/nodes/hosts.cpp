// Namespaces, affinity and secrets of hosts.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "hosts.hpp"

#include <troupe/credentials.hpp>

#include "tests/support/netns.hpp"

#include <sched.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace bench {

namespace {

constexpr const char* veth_address[] = {"10.78.0.1", "10.78.0.2"};

/// Two hosts with a veth pair of their own beside the interfaces that they have to a switch: what is measured has no
/// bridge in its way.
struct pair_of_hosts {
  test::network net{2};

  pair_of_hosts() {
    const auto other = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(net.on(1).net_namespace);
    net.run_on(0, {"ip", "link", "add", "direct", "type", "veth", "peer", "name", "direct", "netns", other});
    for (const int host : {0, 1}) {
      net.run_on(host, {"ip", "address", "add", std::string(veth_address[host]) + "/24", "dev", "direct"});
      net.run_on(host, {"ip", "link", "set", "direct", "up"});
    }
  }
};

const pair_of_hosts& hosts() {
  static const pair_of_hosts both;
  return both;
}

cpu_set_t own_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) throw std::runtime_error("cannot ask for the own cores");
  return mask;
}

}  // namespace

std::string why_no_veth() { return test::network::why_not(); }

std::string address_of(route over, int host) { return over == route::loopback ? "127.0.0.1" : veth_address[host]; }

test::child_options on_other_host(route over) {
  return over == route::loopback ? test::child_options{} : hosts().net.on(1);
}

void on_this_host(route over, const std::function<void()>& f) {
  if (over == route::loopback) return f();
  std::exception_ptr failed;
  const int space = hosts().net.on(0).net_namespace;
  // In a thread of its own, so that this one stays where it is.
  std::thread([&] {
    try {
      if (setns(space, CLONE_NEWNET) != 0)
        throw std::runtime_error(std::string("cannot enter a network namespace: ") + std::strerror(errno));
      f();
    } catch (...) {
      failed = std::current_exception();
    }
  }).join();
  if (failed) std::rethrow_exception(failed);
}

std::vector<int> cores() {
  static const std::vector<int> all = [] {
    const auto mask = own_mask();
    std::vector<int> found;
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &mask)) found.push_back(i);
    return found;
  }();
  return all;
}

bound_to::bound_to(const std::vector<int>& some) {
  const auto mask = own_mask();
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &mask)) before_.push_back(i);
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int core : some) CPU_SET(core, &wanted);
  if (sched_setaffinity(0, sizeof wanted, &wanted) != 0) throw std::runtime_error("cannot bind a thread to its core");
}

bound_to::~bound_to() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : before_) CPU_SET(core, &mask);
  sched_setaffinity(0, sizeof mask, &mask);
}

own_folder::own_folder() {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot make a folder for secrets");
  path_ = pattern;
}

own_folder::~own_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string cluster_secret() {
  static const own_folder folder;
  static const std::string file = [] {
    auto path = (folder.path() / "secret").string();
    troupe::make_cluster_secret(path);
    return path;
  }();
  return file;
}

}  // namespace bench
