// What this file is for: announcing this node to the others by multicast, and hearing them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "net/discovery.hpp"
#include "net/discovery/datagram.hpp"
#include "net/discovery/guards.hpp"
#include "net/discovery/multicast_socket.hpp"
#include "net/discovery/wake.hpp"

namespace troupe::net {

/// Runs one thread, for both protocols. Answers nobody: what it sends depends on time alone.
class multicast {
 public:
  /// Opens the socket; throws like `discovery::start`.
  multicast(const discovery_options&, std::function<void(std::vector<endpoint>)> found);
  multicast(const multicast&) = delete;
  multicast& operator=(const multicast&) = delete;
  ~multicast();

  discovery_counts counts() const;
  std::vector<std::string> problems() const;

 private:
  void run();
  void announce();
  /// True: what else comes may wait.
  bool take_all();
  void take(std::span<const std::byte> datagram, const datagram_source&, guard_time now);

  const identity self_;
  const multicast_options options_;
  const std::function<void(std::vector<endpoint>)> found_;
  datagram_signer signer_;
  const std::vector<std::unique_ptr<multicast_socket>> sockets_;  // of each protocol that there is
  rate_limit limit_;
  replay_guard replays_;
  std::minstd_rand random_;
  std::uint64_t counter_ = 0;
  bool sends_nothing_ = false;  // guarded by counts_mutex_, like counts_
  discovery_counts counts_;
  mutable std::mutex counts_mutex_;
  wake_up stop_;
  std::thread thread_;
};

}  // namespace troupe::net
