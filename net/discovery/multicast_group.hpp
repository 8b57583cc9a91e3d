// What this file is for: a multicast group of either protocol: what IPv4 and IPv6 ask for by different names.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::net {

/// Where a datagram has come from.
class datagram_source {
 public:
  explicit datagram_source(const sockaddr_in6& from) : from_(from) {}
  explicit datagram_source(const sockaddr_in& from);
  bool is_v6() const { return from_.sin6_family == AF_INET6; }
  /// Tells sources apart, for limits.
  std::uint64_t number() const;
  /// As it can be dialled; of a link-local address with the interface, "fe80::1%eth0".
  std::string host() const;

 private:
  const sockaddr_in& v4() const { return reinterpret_cast<const sockaddr_in&>(from_); }

  sockaddr_in6 from_{};  // or a sockaddr_in in its place, which is smaller
};

/// An interface by which datagrams leave.
struct multicast_way {
  unsigned index = 0;
  in_addr own{};  ///< IPv4: its address
};

class multicast_group {
 public:
  /// Throws `error(bad_argument)` for what is no group of that protocol.
  multicast_group(int family, const std::string& text, std::uint16_t port);

  int family() const { return v6_ ? AF_INET6 : AF_INET; }
  /// Whether this machine speaks it at all.
  bool has_protocol() const;
  const std::string& text() const { return text_; }
  /// Options, and binds it. Throws `error(io_failed)`.
  void prepare(int socket, int hops) const;
  /// Whether it is a member there now.
  bool join(int socket, unsigned interface_index) const;
  /// The group as an address to send to.
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&to_); }
  socklen_t address_size() const { return v6_ ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  /// Writes by which interface the message is to leave into its control data, for which it has room for `way_max`
  /// bytes.
  static constexpr std::size_t way_max = CMSG_SPACE(sizeof(in6_pktinfo));
  void leave_by(msghdr&, const multicast_way&) const;
  /// True if the message was sent to the group, not to this host alone or to another group.
  bool was_meant(msghdr&) const;
  datagram_source source_of(const msghdr&) const;

 private:
  std::string text_;
  bool v6_;
  sockaddr_in6 to_{};  // or a sockaddr_in
};

}  // namespace troupe::net
