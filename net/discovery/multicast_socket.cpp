// What this file is for: the system calls for multicast.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/multicast_socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include "net/discovery/datagram.hpp"

namespace troupe::net {

namespace {

constexpr unsigned batch = 64;

[[noreturn]] void refused(const std::string& what) {
  const int code = errno;
  throw error(errc::io_failed, "multicast: " + what + ": " + std::generic_category().message(code));
}

template <class T>
void set(int socket, int level, int name, const T& value, const char* what) {
  if (::setsockopt(socket, level, name, &value, sizeof value) != 0) refused(what);
}

}  // namespace

multicast_socket::multicast_socket(const multicast_options& o) : options_(o) {
  in_addr group{};
  if (::inet_pton(AF_INET, o.group.c_str(), &group) != 1 || !IN_MULTICAST(ntohl(group.s_addr)))
    throw error(errc::bad_argument, "'" + o.group + "' is not an IPv4 multicast group (239.0.0.0 to 239.255.255.255)");
  if (o.port == 0) throw error(errc::bad_argument, "multicast needs a port that all nodes know, not 0");
  if (o.hops < 0 || o.hops > 255) throw error(errc::bad_argument, "multicast passes 0 to 255 hops");
  for (const std::string& name : o.interfaces)
    if (::if_nametoindex(name.c_str()) == 0)
      throw error(errc::bad_argument, "there is no network interface '" + name + "' for multicast");
  group_ = group.s_addr;
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) refused("no socket");
  try {
    // Several nodes of one host share the port; each gets what is sent to the group.
    set(socket_, SOL_SOCKET, SO_REUSEADDR, 1, "the port cannot be shared");
    set(socket_, SOL_SOCKET, SO_RXQ_OVFL, 1, "losses cannot be counted");
    set(socket_, IPPROTO_IP, IP_MULTICAST_LOOP, 1, "nodes of this host cannot be reached");
    set(socket_, IPPROTO_IP, IP_MULTICAST_TTL, o.hops, "the hops cannot be set");
    set(socket_, IPPROTO_IP, IP_MULTICAST_ALL, 0, "other programs' groups cannot be left out");
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(o.port);
    at.sin_addr = group;  // what is sent to an address of this host does not reach it
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
      refused("cannot listen on " + o.group + ":" + std::to_string(o.port));
    look_at_interfaces();
  } catch (...) {
    ::close(socket_);
    throw;
  }
}

multicast_socket::~multicast_socket() { ::close(socket_); }

bool multicast_socket::is_wanted(const char* name, unsigned flags) const {
  if ((flags & IFF_UP) == 0) return false;
  if (!options_.interfaces.empty())
    return std::find(options_.interfaces.begin(), options_.interfaces.end(), name) != options_.interfaces.end();
  return (flags & (IFF_MULTICAST | IFF_LOOPBACK)) != 0;
}

void multicast_socket::look_at_interfaces() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;  // out of memory or descriptors; the next look may do better
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, ::freeifaddrs);
  std::vector<interface> now;
  for (const ifaddrs* i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !is_wanted(i->ifa_name, i->ifa_flags)) continue;
    const unsigned index = ::if_nametoindex(i->ifa_name);
    const auto has_index = [&](const interface& f) { return f.index == index; };
    if (index == 0 || std::any_of(now.begin(), now.end(), has_index)) continue;
    const auto before = std::find_if(interfaces_.begin(), interfaces_.end(), has_index);
    const auto address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr;
    now.push_back({index, address, before != interfaces_.end() && before->joined});
  }
  for (interface& f : now) {
    ip_mreqn membership{};
    membership.imr_multiaddr.s_addr = group_;
    membership.imr_ifindex = static_cast<int>(f.index);
    if (!f.joined)
      f.joined = ::setsockopt(socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) == 0 ||
                 errno == EADDRINUSE;
  }
  interfaces_ = std::move(now);
}

multicast_socket::outcome multicast_socket::send(std::span<const std::byte> datagram) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(options_.port);
  to.sin_addr.s_addr = group_;
  iovec text{const_cast<std::byte*>(datagram.data()), datagram.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control{};
  msghdr m{};
  m.msg_name = &to;
  m.msg_namelen = sizeof to;
  m.msg_iov = &text;
  m.msg_iovlen = 1;
  m.msg_control = control.data();
  m.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = IPPROTO_IP;
  c->cmsg_type = IP_PKTINFO;
  c->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  outcome o;
  for (const interface& f : interfaces_) {
    in_pktinfo by{};
    by.ipi_ifindex = static_cast<int>(f.index);
    by.ipi_spec_dst.s_addr = f.address;  // the system prefers another's on loopback
    std::memcpy(CMSG_DATA(c), &by, sizeof by);
    const ssize_t n = ::sendmsg(socket_, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    n == static_cast<ssize_t>(datagram.size()) ? ++o.sent : ++o.failed;
  }
  return o;
}

unsigned multicast_socket::receive(const taker& take) {
  struct slot {
    std::array<std::byte, datagram_max + 1> bytes;
    sockaddr_in from;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint32_t))> control;
    iovec text;
  };
  static_assert(sizeof(slot) * batch < 64u << 10, "lies on the stack");
  std::array<slot, batch> slots;
  std::array<mmsghdr, batch> messages{};
  for (unsigned i = 0; i < batch; ++i) {
    slots[i].text = {slots[i].bytes.data(), slots[i].bytes.size()};
    msghdr& m = messages[i].msg_hdr;
    m.msg_name = &slots[i].from;
    m.msg_namelen = sizeof slots[i].from;
    m.msg_iov = &slots[i].text;
    m.msg_iovlen = 1;
    m.msg_control = slots[i].control.data();
    m.msg_controllen = slots[i].control.size();
  }
  const int n = ::recvmmsg(socket_, messages.data(), batch, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < n; ++i) {
    msghdr& m = messages[static_cast<unsigned>(i)].msg_hdr;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
      if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) std::memcpy(&lost_, CMSG_DATA(c), sizeof lost_);
    const slot& s = slots[static_cast<unsigned>(i)];
    take(std::span(s.bytes).first(messages[static_cast<unsigned>(i)].msg_len), ntohl(s.from.sin_addr.s_addr));
  }
  return n > 0 ? static_cast<unsigned>(n) : 0;
}

}  // namespace troupe::net
