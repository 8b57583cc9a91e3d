// What this file is for: addresses of sockets: found by name, bound, connected, compared, told.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "net/transport.hpp"

namespace troupe::net::tcp {

struct address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&bytes); }
  /// IPv4 in IPv6's clothes is told as IPv4.
  endpoint told() const;
  bool loopback() const;
  /// Whose it is, as far as that can be told: an IPv4 address is one machine's; of IPv6 anybody has the 2^64 addresses
  /// that begin as this one does.
  std::string neighbourhood() const;
  /// Every address of the machine.
  bool any() const;
};

/// Returns the addresses that a name or a number stands for. Throws `error(unreachable)`. May take as long as the
/// system's look-up takes.
std::vector<address> look_up(const endpoint&);
/// The same on a thread of its own, which is let go: a look-up cannot be interrupted. One of the two is called there.
void look_up(const endpoint&, std::function<void(std::vector<address>)> found,
             std::function<void(std::exception_ptr)> failed);

/// A socket that listens and does not block. Throws `error(io_failed)`.
int listen_at(const address&, const endpoint& as_written, bool version_6_only);
/// The error of a dial that could not connect, with the system's code for it.
dial_error cannot_connect(const std::string& where, int code);
/// A socket on its way to be connected; writable once it is. Throws `error(unreachable)`.
int connect_to(const address&);
/// Why it is not connected; 0 if it is.
int connect_failure(int socket);
address local_address(int socket);
/// Sets the options that each connection wants.
void tune(int socket);

}  // namespace troupe::net::tcp
