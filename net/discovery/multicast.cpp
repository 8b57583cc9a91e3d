// What this file is for: the thread that announces and listens.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/multicast.hpp"

#include <utility>

#include <troupe/error.hpp>

namespace troupe::net {

namespace {

using namespace std::chrono_literals;

constexpr auto interfaces_every = 2s;
// While too many come, the socket's buffer is emptied so often: the rest is dropped by the system, which is cheaper.
constexpr auto nap = 5ms;

// A node that listens on all addresses of IPv4 cannot be reached at one of IPv6.
bool stands_for_sender(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }
bool is_elsewhere(const std::string& host, const datagram_source& from) { return host == "0.0.0.0" && from.is_v6(); }

std::vector<std::unique_ptr<multicast_socket>> sockets_of(const multicast_options& o) {
  std::vector<multicast_group> groups;
  if (!o.group.empty()) groups.emplace_back(AF_INET, o.group, o.port);
  if (!o.group_v6.empty()) groups.emplace_back(AF_INET6, o.group_v6, o.port);
  if (groups.empty()) throw error(errc::bad_argument, "there is no multicast group, neither of IPv4 nor of IPv6");
  std::vector<std::unique_ptr<multicast_socket>> all;
  for (const multicast_group& g : groups)
    if (g.has_protocol()) all.push_back(std::make_unique<multicast_socket>(o, g));
  if (all.empty()) throw error(errc::io_failed, "multicast: this machine does not speak the protocol of its group");
  return all;
}

}  // namespace

multicast::multicast(const discovery_options& o, std::function<void(std::vector<endpoint>)> found)
    : self_(o.self),
      options_(*o.multicast),
      found_(std::move(found)),
      signer_(o.self.cluster, o.secrets),
      sockets_(sockets_of(options_)),
      limit_(options_.each_per_second, options_.all_per_second, guard_time::clock::now()),
      random_(std::random_device{}()),
      thread_([this] { run(); }) {}

multicast::~multicast() {
  stop_.call();
  thread_.join();
}

discovery_counts multicast::counts() const {
  const std::lock_guard lock(counts_mutex_);
  return counts_;
}

std::vector<std::string> multicast::problems() const {
  const std::lock_guard lock(counts_mutex_);
  if (!sends_nothing_) return {};
  std::string groups;
  for (const auto& s : sockets_) groups += (groups.empty() ? "" : " or ") + s->group().text();
  return {"multicast: no interface lets a datagram out to " + groups};
}

void multicast::run() {
  std::vector<int> descriptors;
  for (const auto& s : sockets_) descriptors.push_back(s->descriptor());
  auto announce_at = guard_time::clock::now(), look_at = announce_at + interfaces_every;
  for (;;) {
    const auto now = guard_time::clock::now();
    if (now >= look_at) {
      for (const auto& s : sockets_) s->look_at_interfaces();
      look_at = now + interfaces_every;
    }
    if (now >= announce_at) {
      announce();
      // Nodes that were started together do not stay in step.
      announce_at = now + options_.announce_every * std::uniform_int_distribution<int>(80, 120)(random_) / 100;
    }
    if (stop_.wait(descriptors, std::min(announce_at, look_at) - now)) return;
    if (take_all() && stop_.wait({}, nap)) return;
  }
}

void multicast::announce() {
  multicast_socket::outcome o;
  for (const auto& s : sockets_) {
    // Every datagram has a number of its own: a node that gets both hears of both addresses.
    const announcement a{self_.id, self_.incarnation, ++counter_, self_.listens_on};
    const auto one = s->send(signer_.write(a));
    o.sent += one.sent;
    o.failed += one.failed;
  }
  const std::lock_guard lock(counts_mutex_);
  counts_.sent += o.sent;
  counts_.unsent += o.failed;
  sends_nothing_ = o.sent == 0;
}

bool multicast::take_all() {
  const auto now = guard_time::clock::now();
  const auto before = counts().too_many;
  unsigned n = 0;
  std::uint64_t lost = 0;
  for (const auto& s : sockets_) {
    n += s->receive([&](std::span<const std::byte> d, const datagram_source& from) { take(d, from, now); });
    lost += s->lost();
  }
  const std::lock_guard lock(counts_mutex_);
  counts_.lost = lost;
  // None: the time was over, or the socket complains without end.
  return n == 0 || counts_.too_many != before;
}

void multicast::take(std::span<const std::byte> datagram, const datagram_source& from, guard_time now) {
  const auto count = [this](std::uint64_t discovery_counts::*what) {
    const std::lock_guard lock(counts_mutex_);
    ++counts_.received;
    ++(counts_.*what);
  };
  if (!limit_.allow(from.number(), now)) return count(&discovery_counts::too_many);
  announcement a;
  switch (signer_.read(datagram, a)) {
    case datagram_result::good:
      break;
    case datagram_result::malformed:
      return count(&discovery_counts::malformed);
    case datagram_result::other_version:
      return count(&discovery_counts::other_version);
    case datagram_result::other_cluster:
      return count(&discovery_counts::other_cluster);
    case datagram_result::forged:
      return count(&discovery_counts::forged);
  }
  if (a.node == self_.id) return count(&discovery_counts::own);
  if (!replays_.is_new(a.node, a.incarnation, a.counter, now)) return count(&discovery_counts::replayed);
  std::erase_if(a.listens_on, [&](const endpoint& e) { return is_elsewhere(e.host, from); });
  for (endpoint& e : a.listens_on)
    if (stands_for_sender(e.host)) e.host = from.host();
  count(&discovery_counts::accepted);
  if (!a.listens_on.empty()) found_(std::move(a.listens_on));
}

}  // namespace troupe::net
