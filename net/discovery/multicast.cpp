// What this file is for: the thread that announces and listens.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/multicast.hpp"

#include <arpa/inet.h>
#include <utility>

namespace troupe::net {

namespace {

using namespace std::chrono_literals;

constexpr auto interfaces_every = 2s;
// While too many come, the socket's buffer is emptied so often: the rest is dropped by the system, which is cheaper.
constexpr auto nap = 5ms;

bool stands_for_sender(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }

std::string text_of(std::uint32_t address) {
  const in_addr a{htonl(address)};
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &a, text, sizeof text);
  return text;
}

}  // namespace

multicast::multicast(const discovery_options& o, std::function<void(std::vector<endpoint>)> found)
    : self_(o.self),
      options_(*o.multicast),
      found_(std::move(found)),
      signer_(o.self.cluster, o.secrets),
      socket_(options_),
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
  return {"multicast: no interface lets a datagram out to " + options_.group};
}

void multicast::run() {
  auto announce_at = guard_time::clock::now(), look_at = announce_at + interfaces_every;
  for (;;) {
    const auto now = guard_time::clock::now();
    if (now >= look_at) {
      socket_.look_at_interfaces();
      look_at = now + interfaces_every;
    }
    if (now >= announce_at) {
      announce();
      // Nodes that were started together do not stay in step.
      announce_at = now + options_.announce_every * std::uniform_int_distribution<int>(80, 120)(random_) / 100;
    }
    if (stop_.wait(socket_.descriptor(), std::min(announce_at, look_at) - now)) return;
    if (take_all() && stop_.wait(-1, nap)) return;
  }
}

void multicast::announce() {
  announcement a{self_.id, self_.incarnation, ++counter_, self_.listens_on};
  const auto o = socket_.send(signer_.write(a));
  const std::lock_guard lock(counts_mutex_);
  counts_.sent += o.sent;
  counts_.unsent += o.failed;
  sends_nothing_ = o.sent == 0;
}

bool multicast::take_all() {
  const auto now = guard_time::clock::now();
  const auto before = counts().too_many;
  const auto n = socket_.receive([&](std::span<const std::byte> d, std::uint32_t address) { take(d, address, now); });
  const std::lock_guard lock(counts_mutex_);
  counts_.lost = socket_.lost();
  // None: the time was over, or the socket complains without end.
  return n == 0 || counts_.too_many != before;
}

void multicast::take(std::span<const std::byte> datagram, std::uint32_t address, guard_time now) {
  const auto count = [this](std::uint64_t discovery_counts::*what) {
    const std::lock_guard lock(counts_mutex_);
    ++counts_.received;
    ++(counts_.*what);
  };
  if (!limit_.allow(address, now)) return count(&discovery_counts::too_many);
  announcement a;
  switch (signer_.read(datagram, a)) {
    case verdict::good:
      break;
    case verdict::malformed:
      return count(&discovery_counts::malformed);
    case verdict::other_version:
      return count(&discovery_counts::other_version);
    case verdict::other_cluster:
      return count(&discovery_counts::other_cluster);
    case verdict::forged:
      return count(&discovery_counts::forged);
  }
  if (a.node == self_.id) return count(&discovery_counts::own);
  if (!replays_.is_new(a.node, a.incarnation, a.counter, now)) return count(&discovery_counts::replayed);
  for (endpoint& e : a.listens_on)
    if (stands_for_sender(e.host)) e.host = text_of(address);
  count(&discovery_counts::accepted);
  if (!a.listens_on.empty()) found_(std::move(a.listens_on));
}

}  // namespace troupe::net
