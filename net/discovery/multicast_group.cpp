// What this file is for: socket options, memberships and control messages of IPv4 and IPv6.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/multicast_group.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "net/discovery/socket_calls.hpp"

namespace troupe::net {

namespace {

constexpr int ipv6_multicast_all = 29;  // IPV6_MULTICAST_ALL, which old headers do not know

template <class T>
void put_control(msghdr& m, int level, int type, const T& value) {
  m.msg_controllen = CMSG_SPACE(sizeof value);
  cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = level;
  c->cmsg_type = type;
  c->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(c), &value, sizeof value);
}

sockaddr_in& as_v4(sockaddr_in6& a) { return reinterpret_cast<sockaddr_in&>(a); }

}  // namespace

datagram_source::datagram_source(const sockaddr_in& from) { std::memcpy(&from_, &from, sizeof from); }

std::uint64_t datagram_source::number() const {
  if (!is_v6()) return ntohl(v4().sin_addr.s_addr);
  std::uint64_t n = 0xcbf29ce484222325u;  // FNV-1a
  for (const unsigned char b : from_.sin6_addr.s6_addr) n = (n ^ b) * 0x100000001b3u;
  return n | std::uint64_t{1} << 63;
}

std::string datagram_source::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (!is_v6()) return ::inet_ntop(AF_INET, &v4().sin_addr, text, sizeof text);
  std::string all = ::inet_ntop(AF_INET6, &from_.sin6_addr, text, sizeof text);
  char name[IF_NAMESIZE] = {};
  if (IN6_IS_ADDR_LINKLOCAL(&from_.sin6_addr) && ::if_indextoname(from_.sin6_scope_id, name))
    all += std::string("%") + name;
  return all;
}

multicast_group::multicast_group(int family, const std::string& text, std::uint16_t port)
    : text_(text), v6_(family == AF_INET6) {
  in_addr four{};
  if (v6_) {
    if (::inet_pton(AF_INET6, text.c_str(), &to_.sin6_addr) != 1 || !IN6_IS_ADDR_MULTICAST(&to_.sin6_addr))
      throw error(errc::bad_argument, "'" + text + "' is not an IPv6 multicast group (ff12:: and the like)");
    to_.sin6_family = AF_INET6;
    to_.sin6_port = htons(port);
    return;
  }
  if (::inet_pton(AF_INET, text.c_str(), &four) != 1 || !IN_MULTICAST(ntohl(four.s_addr)))
    throw error(errc::bad_argument, "'" + text + "' is not an IPv4 multicast group (239.0.0.0 to 239.255.255.255)");
  as_v4(to_).sin_family = AF_INET;
  as_v4(to_).sin_port = htons(port);
  as_v4(to_).sin_addr = four;
}

bool multicast_group::has_protocol() const {
  const int probe = ::socket(family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return errno != EAFNOSUPPORT;
  ::close(probe);
  return true;
}

void multicast_group::prepare(int socket, int hops) const {
  const char* const ways = "the hops cannot be set";
  const char* const neighbours = "nodes of this host cannot be reached";
  sockaddr_in6 at = to_;
  if (v6_) {
    set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPv4 cannot be left to another socket");
    set(socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1, neighbours);
    set(socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops, ways);
    set(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "what is sent to others cannot be told");
    const int none = 0;  // an old kernel passes on other groups, too: `was_meant` drops them
    ::setsockopt(socket, IPPROTO_IPV6, ipv6_multicast_all, &none, sizeof none);
    at.sin6_addr = in6addr_any;  // a group of one link could be bound on one interface only
  } else {
    set(socket, IPPROTO_IP, IP_MULTICAST_LOOP, 1, neighbours);
    set(socket, IPPROTO_IP, IP_MULTICAST_TTL, hops, ways);
    set(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0, "other programs' groups cannot be left out");
    // Bound to the group: what is sent to an address of this host does not reach it.
  }
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&at), address_size()) != 0)
    refused("cannot listen on " + text_ + ", port " + std::to_string(ntohs(v6_ ? at.sin6_port : as_v4(at).sin_port)));
}

bool multicast_group::join(int socket, unsigned interface_index) const {
  if (v6_) {
    const ipv6_mreq membership{to_.sin6_addr, interface_index};
    return ::setsockopt(socket, IPPROTO_IPV6, IPV6_JOIN_GROUP, &membership, sizeof membership) == 0 ||
           errno == EADDRINUSE;
  }
  ip_mreqn membership{};
  membership.imr_multiaddr = reinterpret_cast<const sockaddr_in&>(to_).sin_addr;
  membership.imr_ifindex = static_cast<int>(interface_index);
  return ::setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) == 0 ||
         errno == EADDRINUSE;
}

void multicast_group::leave_by(msghdr& m, const multicast_way& w) const {
  if (v6_) {
    in6_pktinfo by{};
    by.ipi6_ifindex = w.index;
    put_control(m, IPPROTO_IPV6, IPV6_PKTINFO, by);
  } else {
    in_pktinfo by{};
    by.ipi_ifindex = static_cast<int>(w.index);
    by.ipi_spec_dst = w.own;  // the system prefers another's on loopback
    put_control(m, IPPROTO_IP, IP_PKTINFO, by);
  }
}

bool multicast_group::was_meant(msghdr& m) const {
  if (!v6_) return true;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_PKTINFO) continue;
    in6_pktinfo at{};
    std::memcpy(&at, CMSG_DATA(c), sizeof at);
    return std::memcmp(&at.ipi6_addr, &to_.sin6_addr, sizeof(in6_addr)) == 0;
  }
  return false;
}

datagram_source multicast_group::source_of(const msghdr& m) const {
  return v6_ ? datagram_source(*static_cast<const sockaddr_in6*>(m.msg_name))
             : datagram_source(*static_cast<const sockaddr_in*>(m.msg_name));
}

}  // namespace troupe::net
