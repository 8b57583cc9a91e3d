// What this file is for: a socket in a multicast group, on several interfaces at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "net/discovery.hpp"

namespace troupe::net {

/// Not for several threads at once.
class multicast_socket {
 public:
  /// Throws `error(bad_argument)` for options that make no sense, `error(io_failed)` for what the system refuses.
  explicit multicast_socket(const multicast_options&);
  multicast_socket(const multicast_socket&) = delete;
  multicast_socket& operator=(const multicast_socket&) = delete;
  ~multicast_socket();

  int descriptor() const { return socket_; }
  /// Joins on the interfaces that have come up.
  void look_at_interfaces();
  /// Sends on each interface; never waits.
  struct outcome {
    unsigned sent = 0, failed = 0;
  };
  outcome send(std::span<const std::byte>);
  /// Takes what has come, 64 datagrams at most; `address` is that of an IPv4 host in the order of this machine. Those
  /// that are too large are cut at one byte more than `datagram_max`. Gives how many there were.
  using taker = std::function<void(std::span<const std::byte>, std::uint32_t address)>;
  unsigned receive(const taker&);
  /// Datagrams that the system has dropped because nobody took them in time, as of the last one that was received.
  std::uint32_t lost() const { return lost_; }

 private:
  struct interface {
    unsigned index;
    std::uint32_t address;  ///< in the order of the network
    bool joined;
  };
  bool is_wanted(const char* name, unsigned flags) const;

  multicast_options options_;
  std::uint32_t group_ = 0;  ///< in the order of the network
  int socket_ = -1;
  std::vector<interface> interfaces_;
  std::uint32_t lost_ = 0;
};

}  // namespace troupe::net
