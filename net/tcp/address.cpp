// What this file is for: addresses of sockets by the system's calls.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <troupe/error.hpp>

#include "net/threads.hpp"

namespace troupe::net::tcp {

namespace {

const sockaddr_in& v4(const address& a) { return reinterpret_cast<const sockaddr_in&>(a.bytes); }
const sockaddr_in6& v6(const address& a) { return reinterpret_cast<const sockaddr_in6&>(a.bytes); }
bool is_v6(const address& a) { return a.bytes.ss_family == AF_INET6; }

/// The IPv4 address inside, in the order of the host; 0 if it is none.
std::uint32_t as_v4(const address& a) {
  std::uint32_t n = 0;
  if (!is_v6(a)) {
    n = v4(a).sin_addr.s_addr;
  } else if (IN6_IS_ADDR_V4MAPPED(&v6(a).sin6_addr)) {
    std::memcpy(&n, v6(a).sin6_addr.s6_addr + 12, 4);
  }
  return ntohl(n);
}

void on(int socket, int level, int option) {
  const int yes = 1;
  ::setsockopt(socket, level, option, &yes, sizeof yes);
}

std::string system_text(int code) { return std::generic_category().message(code); }

}  // namespace

endpoint address::told() const {
  char text[INET6_ADDRSTRLEN] = "", interface[IF_NAMESIZE] = "";
  if (!is_v6(*this)) {
    ::inet_ntop(AF_INET, &v4(*this).sin_addr, text, sizeof text);
    return {text, ntohs(v4(*this).sin_port)};
  }
  const in6_addr& a = v6(*this).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&a)) {
    ::inet_ntop(AF_INET, a.s6_addr + 12, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, &a, text, sizeof text);
    // Without its interface nobody can dial it.
    if (IN6_IS_ADDR_LINKLOCAL(&a) && ::if_indextoname(v6(*this).sin6_scope_id, interface))
      return {std::string(text) + "%" + interface, ntohs(v6(*this).sin6_port)};
  }
  return {text, ntohs(v6(*this).sin6_port)};
}

std::string address::neighbourhood() const {
  if (!is_v6(*this) || as_v4(*this) != 0) return told().host;
  in6_addr first = v6(*this).sin6_addr;
  std::memset(first.s6_addr + 8, 0, 8);
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &first, text, sizeof text);
  return std::string(text) + "/64%" + std::to_string(v6(*this).sin6_scope_id);
}

bool address::loopback() const {
  return (is_v6(*this) && IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr)) || as_v4(*this) >> 24 == 127;
}

bool address::any() const {
  return is_v6(*this) ? IN6_IS_ADDR_UNSPECIFIED(&v6(*this).sin6_addr) : v4(*this).sin_addr.s_addr == 0;
}

std::vector<address> look_up(const endpoint& e) {
  addrinfo want{};
  want.ai_family = AF_UNSPEC;
  want.ai_socktype = SOCK_STREAM;
  want.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(e.host.c_str(), std::to_string(e.port).c_str(), &want, &list);
  if (failed != 0)
    throw error(errc::unreachable, "the host of " + e.text() + " is not known (" + ::gai_strerror(failed) +
                                       "): check the name, or write the address");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, ::freeaddrinfo);
  std::vector<address> found;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    address next;
    next.size = a->ai_addrlen;
    std::memcpy(&next.bytes, a->ai_addr, a->ai_addrlen);
    found.push_back(next);
  }
  return found;
}

void look_up(const endpoint& e, std::function<void(std::vector<address>)> found,
             std::function<void(std::exception_ptr)> failed) {
  in6_addr number;
  if (::inet_pton(AF_INET, e.host.c_str(), &number) == 1 || ::inet_pton(AF_INET6, e.host.c_str(), &number) == 1) {
    found(look_up(e));
    return;
  }
  try {
    std::thread([e, found = std::move(found), failed] {
      name_this_thread("troupe-lookup");
      try {
        found(look_up(e));
      } catch (...) {
        failed(std::current_exception());
      }
    }).detach();
  } catch (const std::system_error& none) {
    failed(std::make_exception_ptr(
        error(errc::no_resource, "no thread to look '" + e.host + "' up on: " + none.code().message())));
  }
}

int listen_at(const address& a, const endpoint& as_written, bool version_6_only) {
  const auto fail = [&](int socket) {
    const int code = errno;
    if (socket >= 0) ::close(socket);
    throw error(errc::io_failed, "cannot listen on " + as_written.text() + ": " + system_text(code) +
                                     (code == EADDRINUSE ? "; stop what listens there, or choose another port" : ""));
  };
  const int s = ::socket(a.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (s < 0) fail(s);
  on(s, SOL_SOCKET, SO_REUSEADDR);
  if (is_v6(a)) {
    const int only = version_6_only ? 1 : 0;
    ::setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (::bind(s, a.raw(), a.size) != 0 || ::listen(s, SOMAXCONN) != 0) fail(s);
  return s;
}

dial_error cannot_connect(const std::string& where, int code) {
  using reason = dial_error::reason;
  return {code == ECONNREFUSED ? reason::nobody_listens : reason::no_answer,
          "cannot connect to " + where + ": " + system_text(code)};
}

int connect_to(const address& a) {
  const auto fail = [&](int socket) {
    const int code = errno;
    if (socket >= 0) ::close(socket);
    throw cannot_connect(a.told().text(), code);
  };
  const int s = ::socket(a.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (s < 0) fail(s);
  tune(s);
  if (::connect(s, a.raw(), a.size) != 0 && errno != EINPROGRESS) fail(s);
  return s;
}

int connect_failure(int socket) {
  int code = 0;
  socklen_t size = sizeof code;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

address local_address(int socket) {
  address a;
  a.size = sizeof a.bytes;
  ::getsockname(socket, a.raw(), &a.size);
  return a;
}

namespace {
// Linux, from 6.15 on; older headers have no name for it.
constexpr int tcp_rto_max_ms = 44;
// After a cut what was under way is tried again by then. Without a limit the pauses double: after 1.5 s without a
// network the next try came at 3 s, when the peer is given up.
constexpr int retry_max_ms = 1000;
}  // namespace

void tune(int socket) {
  on(socket, IPPROTO_TCP, TCP_NODELAY);
  ::setsockopt(socket, IPPROTO_TCP, tcp_rto_max_ms, &retry_max_ms, sizeof retry_max_ms);  // an older system has none
}

}  // namespace troupe::net::tcp
