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
#include "net/discovery/multicast_group.hpp"

namespace troupe::net {

/// Not for several threads at once.
class multicast_socket {
 public:
  /// Throws `error(bad_argument)` for options that make no sense, `error(io_failed)` for what the system refuses.
  multicast_socket(const multicast_options&, const multicast_group&);
  multicast_socket(const multicast_socket&) = delete;
  multicast_socket& operator=(const multicast_socket&) = delete;
  ~multicast_socket();

  int descriptor() const { return socket_; }
  const multicast_group& group() const { return group_; }
  /// Joins on the interfaces that have come up.
  void look_at_interfaces();
  /// Sends on each interface; never waits.
  struct outcome {
    unsigned sent = 0, failed = 0;
  };
  outcome send(std::span<const std::byte>);
  /// Takes what has come to the group, 64 datagrams at most. Those that are too large are cut at one byte more than
  /// `datagram_max`. Gives how many there were, with those for others.
  using taker = std::function<void(std::span<const std::byte>, const datagram_source&)>;
  unsigned receive(const taker&);
  /// Datagrams that the system has dropped because nobody took them in time, as of the last one that was received.
  std::uint32_t lost() const { return lost_; }

 private:
  struct interface {
    multicast_way way;
    bool joined;
  };
  bool is_wanted(const char* name, unsigned flags) const;

  multicast_options options_;
  const multicast_group group_;
  int socket_ = -1;
  std::vector<interface> interfaces_;
  std::uint32_t lost_ = 0;
};

}  // namespace troupe::net
