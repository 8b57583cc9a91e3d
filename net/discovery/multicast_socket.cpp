// What this file is for: the system calls for multicast.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/multicast_socket.hpp"

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
#include "net/discovery/socket_calls.hpp"

namespace troupe::net {

namespace {

constexpr unsigned batch = 64;

}  // namespace

multicast_socket::multicast_socket(const multicast_options& o, const multicast_group& group)
    : options_(o), group_(group) {
  if (o.port == 0) throw error(errc::bad_argument, "multicast needs a port that all nodes know, not 0");
  if (o.hops < 0 || o.hops > 255) throw error(errc::bad_argument, "multicast passes 0 to 255 hops");
  for (const std::string& name : o.interfaces)
    if (::if_nametoindex(name.c_str()) == 0)
      throw error(errc::bad_argument, "there is no network interface '" + name + "' for multicast");
  socket_ = ::socket(group_.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) refused("no socket");
  try {
    // Several nodes of one host share the port; each gets what is sent to the group.
    set(socket_, SOL_SOCKET, SO_REUSEADDR, 1, "the port cannot be shared");
    set(socket_, SOL_SOCKET, SO_RXQ_OVFL, 1, "losses cannot be counted");
    group_.prepare(socket_, o.hops);
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
    if (!i->ifa_addr || i->ifa_addr->sa_family != group_.family() || !is_wanted(i->ifa_name, i->ifa_flags)) continue;
    multicast_way way{::if_nametoindex(i->ifa_name), {}};
    const auto has_index = [&](const interface& f) { return f.way.index == way.index; };
    if (way.index == 0 || std::any_of(now.begin(), now.end(), has_index)) continue;
    const auto before = std::find_if(interfaces_.begin(), interfaces_.end(), has_index);
    if (group_.family() == AF_INET) way.own = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
    now.push_back({way, before != interfaces_.end() && before->joined});
  }
  for (interface& f : now)
    if (!f.joined) f.joined = group_.join(socket_, f.way.index);
  interfaces_ = std::move(now);
}

multicast_socket::outcome multicast_socket::send(std::span<const std::byte> datagram) {
  iovec text{const_cast<std::byte*>(datagram.data()), datagram.size()};
  alignas(cmsghdr) std::array<char, multicast_group::way_max> control{};
  msghdr m{};
  m.msg_name = const_cast<sockaddr*>(group_.address());
  m.msg_namelen = group_.address_size();
  m.msg_iov = &text;
  m.msg_iovlen = 1;
  m.msg_control = control.data();
  outcome o;
  for (const interface& f : interfaces_) {
    m.msg_controllen = control.size();
    group_.leave_by(m, f.way);
    const ssize_t n = ::sendmsg(socket_, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    n == static_cast<ssize_t>(datagram.size()) ? ++o.sent : ++o.failed;
  }
  return o;
}

unsigned multicast_socket::receive(const taker& take) {
  struct slot {
    std::array<std::byte, datagram_max + 1> bytes;
    sockaddr_in6 from;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint32_t)) + CMSG_SPACE(sizeof(in6_pktinfo))> control;
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
    if (!group_.was_meant(m)) continue;
    const slot& s = slots[static_cast<unsigned>(i)];
    take(std::span(s.bytes).first(messages[static_cast<unsigned>(i)].msg_len), group_.source_of(m));
  }
  return n > 0 ? static_cast<unsigned>(n) : 0;
}

}  // namespace troupe::net
