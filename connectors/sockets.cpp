// What this file is for: sockets: addresses, connections that come and go, messages cut out of what they bring.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "connectors/sockets.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/this_task.hpp>

#include "connectors/detail/descriptor.hpp"
#include "connectors/detail/framing.hpp"

namespace troupe::connectors {

namespace {

using detail::descriptor;

constexpr std::size_t block_bytes = 64u << 10;
constexpr std::size_t datagram_max = 64u << 10;

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw error(errc::bad_argument, what + ": " + why);
}
[[noreturn]] void fail(const std::string& what, int why) {
  throw error(errc::io_failed, what + ": " + std::strerror(why));
}

void check(const socket_options& o, const std::string& what) {
  if (o.message_max < 1 || o.message_max > (std::size_t{1} << 30))
    refuse(what, "message_max is " + std::to_string(o.message_max) + "; 1 to 2^30");
  if (o.connections_max < 1 || o.connections_max > 65536)
    refuse(what, "connections_max is " + std::to_string(o.connections_max) + "; 1 to 65536");
  if (o.backoff.count() < 1 || o.backoff_max < o.backoff)
    refuse(what, "backoff is less than 1 ms, or above backoff_max");
  if (o.attempts_max < 0) refuse(what, std::to_string(o.attempts_max) + " attempts");
}

// ---- addresses
struct endpoint {
  enum class kind : std::uint8_t { tcp, udp, unix_path };
  kind what;
  std::string host, port, text;
};

endpoint parse(const std::string& text) {
  const auto rest_of = [&](std::string_view word) { return text.starts_with(word) ? text.substr(word.size()) : ""; };
  if (const std::string path = rest_of("unix:"); !path.empty()) {
    if (path.size() >= sizeof(sockaddr_un::sun_path))
      refuse("'" + text + "'", "the path of a socket has 107 bytes at most");
    return {endpoint::kind::unix_path, path, "", text};
  }
  const bool is_tcp = text.starts_with("tcp:");
  if (!is_tcp && !text.starts_with("udp:"))
    refuse("'" + text + "'", "an address is tcp:HOST:PORT, udp:HOST:PORT or unix:PATH");
  const std::string rest = text.substr(4);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == rest.size() || rest.size() - colon > 6 ||
      rest.find_first_not_of("0123456789", colon + 1) != std::string::npos || std::stoi(rest.substr(colon + 1)) > 65535)
    refuse("'" + text + "'", "behind tcp: or udp: stand a host, ':' and a port");
  std::string host = rest.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {is_tcp ? endpoint::kind::tcp : endpoint::kind::udp, host, rest.substr(colon + 1), text};
}

struct place {
  sockaddr_storage at{};
  socklen_t bytes = 0;
  int family = AF_UNSPEC;
};

// Where an address is; several places for a host with several.
std::vector<place> places_of(const endpoint& a, bool for_listener) {
  std::vector<place> all;
  if (a.what == endpoint::kind::unix_path) {
    place p;
    auto* const at = reinterpret_cast<sockaddr_un*>(&p.at);
    at->sun_family = AF_UNIX;
    std::memcpy(at->sun_path, a.host.c_str(), a.host.size() + 1);
    p.bytes = sizeof(sockaddr_un);
    p.family = AF_UNIX;
    all.push_back(p);
    return all;
  }
  addrinfo wanted{};
  wanted.ai_socktype = a.what == endpoint::kind::tcp ? SOCK_STREAM : SOCK_DGRAM;
  wanted.ai_flags = AI_NUMERICSERV | (for_listener ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  std::optional<this_task::core_yielded> away;
  if (this_task::inside()) away.emplace();  // it may take seconds
  const int fault = ::getaddrinfo(a.host.c_str(), a.port.c_str(), &wanted, &found);
  away.reset();
  if (fault != 0) throw error(errc::io_failed, "'" + a.text + "': " + ::gai_strerror(fault));
  for (const addrinfo* i = found; i; i = i->ai_next) {
    place p;
    std::memcpy(&p.at, i->ai_addr, i->ai_addrlen);
    p.bytes = i->ai_addrlen;
    p.family = i->ai_family;
    all.push_back(p);
  }
  ::freeaddrinfo(found);
  return all;
}

int kind_of(const endpoint& a) { return a.what == endpoint::kind::udp ? SOCK_DGRAM : SOCK_STREAM; }

void set(const descriptor& d, int level, int what, int value) {
  static_cast<void>(::setsockopt(d.get(), level, what, &value, sizeof value));
}
// A machine that is gone says nothing; it is asked after half a minute without a word, and given up after as long again.
void watch_peer(const descriptor& d) {
  set(d, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(d, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(d, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(d, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(d, IPPROTO_TCP, TCP_NODELAY, 1);
}

// Begins to connect. 0: it is done; EINPROGRESS: the socket becomes writable when it is; else why not.
int begin_connect(const place& p, descriptor& to) {
  to = descriptor(::socket(p.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (to.get() < 0) return errno;
  set(to, IPPROTO_TCP, TCP_SYNCNT, 3);  // some 15 s
  watch_peer(to);
  return ::connect(to.get(), reinterpret_cast<const sockaddr*>(&p.at), p.bytes) == 0 ? 0 : errno;
}
int end_connect(const descriptor& d) {
  int fault = 0;
  socklen_t bytes = sizeof fault;
  return ::getsockopt(d.get(), SOL_SOCKET, SO_ERROR, &fault, &bytes) == 0 ? fault : errno;
}

// Pauses between attempts, and how many there were.
class attempts {
 public:
  explicit attempts(const socket_options& o) : options_(o), pause_(o.backoff) {}
  void begin_anew() {
    pause_ = options_.backoff;
    count_ = 0;
  }
  // Throws when it is time to give up.
  std::chrono::milliseconds failed(const std::string& address, const std::string& why) {
    if (++count_ == options_.attempts_max) {
      const int count = count_;
      begin_anew();  // whoever asks again has as many again
      throw error(errc::io_failed, "'" + address + "': " + why + ", " + std::to_string(count) + " attempts");
    }
    const auto now = pause_;
    pause_ = std::min(2 * pause_, options_.backoff_max);
    return now;
  }

 private:
  const socket_options options_;
  std::chrono::milliseconds pause_;
  int count_ = 0;
};

// ---- messages
// Cuts what one connection brings.
class cutter {
 public:
  explicit cutter(const socket_options& o) : cut_(make(o)) {}
  void add(const char* data, std::size_t n) {
    std::visit([&](auto& c) { c.add(data, n); }, cut_);
  }
  std::optional<message> next(std::uint64_t connection) {
    auto p = std::visit([](auto& c) { return c.next(); }, cut_);
    if (!p) return {};
    return message{std::move(p->text), connection, p->is_whole};
  }
  std::optional<message> rest(std::uint64_t connection) {
    if (is_broken()) return message{"", connection, false};
    auto p = std::visit([](auto& c) { return c.rest(); }, cut_);
    if (!p) return {};
    return message{std::move(p->text), connection, false};
  }
  bool is_broken() const {
    const auto* const records = std::get_if<detail::record_cutter>(&cut_);
    return records && records->is_broken();
  }

 private:
  using either = std::variant<detail::line_cutter, detail::record_cutter>;
  static either make(const socket_options& o) {
    if (o.frames == framing::lines) return detail::line_cutter(o.message_max, 0);
    return detail::record_cutter(o.message_max);
  }
  either cut_;
};

// What a read has come to.
enum class got : std::uint8_t { bytes, nothing_now, end };
got read_some(int from, std::vector<char>& to, std::size_t& n) {
  for (;;) {
    const ssize_t r = ::recv(from, to.data(), to.size(), 0);
    if (r > 0) {
      n = static_cast<std::size_t>(r);
      return got::bytes;
    }
    if (r < 0 && errno == EINTR) continue;
    if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return got::nothing_now;
    return got::end;  // a connection that is broken has ended, too
  }
}

stream::source<message> connected(endpoint a, socket_options o) {
  attempts tries(o);
  std::vector<char> block(block_bytes);
  for (std::uint64_t connection = 0;;) {
    descriptor d;
    std::string why = "no address";
    std::vector<place> places;
    try {
      places = places_of(a, false);
    } catch (const error& e) {
      why = e.what();
    }
    bool is_there = false;
    for (const place& p : places) {
      int fault = begin_connect(p, d);
      if (fault == EINPROGRESS) {
        co_await stream::writable(d.get());
        fault = end_connect(d);
      }
      is_there = fault == 0;
      if (is_there) break;
      why = std::strerror(fault);
    }
    if (!is_there) {
      co_await stream::sleep(tries.failed(a.text, why));
      continue;
    }
    cutter cut(o);
    bool has_come = false;
    for (bool is_open = true; is_open && !cut.is_broken();) {
      co_await stream::readable(d.get());
      std::size_t n = 0;
      switch (read_some(d.get(), block, n)) {
        case got::bytes:
          tries.begin_anew();
          has_come = true;
          cut.add(block.data(), n);
          while (auto m = cut.next(connection)) co_yield std::move(*m);
          break;
        case got::nothing_now:
          break;
        case got::end:
          is_open = false;
          break;
      }
    }
    if (auto m = cut.rest(connection)) co_yield std::move(*m);
    if (!o.reconnects) co_return;
    ++connection;
    std::chrono::milliseconds pause = o.backoff;
    if (!has_come) pause = tries.failed(a.text, "the connection has ended");
    co_await stream::sleep(pause);
  }
}

struct connection {
  descriptor socket;
  std::uint64_t number;
  cutter cut;
};

// Accepts and reads in turn what has something to say, each as much as one read gives.
stream::source<message> accepted(int listening, socket_options o, std::shared_ptr<const void> keep) {
  static_cast<void>(keep);
  const descriptor all(::epoll_create1(EPOLL_CLOEXEC));
  if (all.get() < 0) fail("a listener", errno);
  const auto watch = [&](int d) {
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.fd = d;
    return ::epoll_ctl(all.get(), EPOLL_CTL_ADD, d, &e) == 0;
  };
  if (!watch(listening)) fail("a listener", errno);
  bool accepts = true;
  std::map<int, connection> open;
  std::uint64_t next = 0;
  std::vector<char> block(block_bytes);
  std::array<epoll_event, 64> events{};
  for (;;) {
    co_await stream::readable(all.get());
    const int count = ::epoll_wait(all.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const int from = events[static_cast<std::size_t>(i)].data.fd;
      if (from == listening) {
        descriptor d(::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        int fault = d.get() < 0 ? errno : 0;
        // Waiting takes a descriptor, too: one is to be left.
        if (fault == 0 && descriptor(::fcntl(listening, F_DUPFD_CLOEXEC, 0)).get() < 0) {
          d = descriptor();
          fault = EMFILE;
        }
        if (fault == 0) {
          watch_peer(d);
          const int number = d.get();
          if (watch(number)) open.emplace(number, connection{std::move(d), next++, cutter(o)});
        }
        const bool is_short = fault == EMFILE || fault == ENFILE || fault == ENOBUFS || fault == ENOMEM;
        if (open.size() >= o.connections_max || (is_short && !open.empty())) {
          ::epoll_ctl(all.get(), EPOLL_CTL_DEL, listening, nullptr);
          accepts = false;
        } else if (is_short) {
          co_await stream::sleep(o.backoff);  // others may close something
        }
        continue;
      }
      const auto at = open.find(from);
      if (at == open.end()) continue;
      connection& c = at->second;
      std::size_t n = 0;
      const got what = read_some(from, block, n);
      if (what == got::bytes) {
        c.cut.add(block.data(), n);
        while (auto m = c.cut.next(c.number)) co_yield std::move(*m);
      }
      if (what != got::end && !c.cut.is_broken()) continue;
      if (auto m = c.cut.rest(c.number)) co_yield std::move(*m);
      open.erase(at);
      if (!accepts) accepts = watch(listening);
    }
  }
}

stream::source<message> datagrams(int socket, socket_options o, std::shared_ptr<const void> keep) {
  static_cast<void>(keep);
  std::vector<char> block(std::min(o.message_max, datagram_max));
  for (;;) {
    co_await stream::readable(socket);
    const ssize_t n = ::recv(socket, block.data(), block.size(), MSG_TRUNC | MSG_DONTWAIT);
    if (n < 0) continue;  // of an answer that another one's machine has refused
    const auto bytes = static_cast<std::size_t>(n);
    message m{std::string(block.data(), std::min(bytes, block.size())), 0, bytes <= block.size()};
    co_yield std::move(m);
  }
}

}  // namespace

stream::source<message> connect_messages(const std::string& to, const socket_options& o) {
  const endpoint a = parse(to);
  check(o, "'" + to + "'");
  if (a.what == endpoint::kind::udp) refuse("'" + to + "'", "datagrams come to a listener");
  return connected(a, o);
}

// ---- listeners
struct listener::state {
  endpoint at;
  descriptor socket;
  state() = default;
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    if (at.what == endpoint::kind::unix_path && socket.get() >= 0) ::unlink(at.host.c_str());
  }
};

namespace {

// A socket at whose path nobody listens any more is removed.
void clear_path(const place& p, const std::string& path) {
  struct stat s {};
  if (::lstat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode)) return;
  const descriptor d(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(d.get(), reinterpret_cast<const sockaddr*>(&p.at), p.bytes) != 0 && errno == ECONNREFUSED)
    ::unlink(path.c_str());
}

std::string name_of(const endpoint& a, const descriptor& d) {
  if (a.what == endpoint::kind::unix_path) return a.text;
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  if (::getsockname(d.get(), reinterpret_cast<sockaddr*>(&at), &bytes) != 0) return a.text;
  const auto port = at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&at)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&at)->sin_port;
  return a.text.substr(0, a.text.rfind(':') + 1) + std::to_string(ntohs(port));
}

}  // namespace

listener::listener(const std::string& text) : state_(std::make_shared<state>()) {
  state_->at = parse(text);
  int fault = EADDRNOTAVAIL;
  for (const place& p : places_of(state_->at, true)) {
    if (p.family == AF_UNIX) clear_path(p, state_->at.host);
    descriptor d(::socket(p.family, kind_of(state_->at) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (d.get() >= 0 && p.family != AF_UNIX) set(d, SOL_SOCKET, SO_REUSEADDR, state_->at.what == endpoint::kind::tcp);
    if (d.get() >= 0 && ::bind(d.get(), reinterpret_cast<const sockaddr*>(&p.at), p.bytes) == 0 &&
        (state_->at.what == endpoint::kind::udp || ::listen(d.get(), 128) == 0)) {
      state_->at.text = name_of(state_->at, d);
      state_->socket = std::move(d);
      return;
    }
    fault = errno;
  }
  fail("'" + text + "'", fault);
}

const std::string& listener::address() const { return state_->at.text; }

stream::source<message> listener::messages(const socket_options& o) const {
  check(o, "'" + address() + "'");
  if (state_->at.what == endpoint::kind::udp) return datagrams(state_->socket.get(), o, state_);
  return accepted(state_->socket.get(), o, state_);
}

// ---- writers
struct socket_writer::state {
  state(endpoint a, const socket_options& o) : to(std::move(a)), options(o), tries(o) {}
  const endpoint to;
  const socket_options options;
  attempts tries;
  descriptor socket;
  std::string buffer;

  // Waits without a worker. Throws when the stream has ended, or the runtime stops.
  static constexpr int slice_ms = 50;
  static void wait_writable(const descriptor& d) {
    for (pollfd p{d.get(), POLLOUT, 0}; !wait(&p, slice_ms);) {
    }
  }
  static void pause(std::chrono::milliseconds t) {
    for (const auto until = std::chrono::steady_clock::now() + t;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0) return;
      wait(nullptr, static_cast<int>(std::min<std::int64_t>(left.count(), slice_ms)));
    }
  }
  static bool wait(pollfd* p, int limit_ms) {
    std::optional<this_task::core_yielded> away;
    if (this_task::inside()) away.emplace();
    if (this_task::stop_requested()) throw error(errc::cancelled, "the stream has ended");
    return ::poll(p, p ? 1 : 0, limit_ms) > 0;
  }
  // The other end has closed the connection: what is sent now would be lost.
  bool is_closed() const {
    char c;
    const ssize_t n = ::recv(socket.get(), &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }
  void connect() {
    for (;;) {
      std::string why = "no address";
      try {
        for (const place& p : places_of(to, false)) {
          descriptor d;
          int fault = begin_connect(p, d);
          if (fault == EINPROGRESS) {
            wait_writable(d);
            fault = end_connect(d);
          }
          if (fault == 0) {
            socket = std::move(d);
            return;
          }
          why = std::strerror(fault);
        }
      } catch (const error& e) {
        why = e.what();
      }
      pause(tries.failed(to.text, why));
    }
  }
  // 0: all of the buffer has gone out; else why not.
  int send_all() {
    for (std::size_t at = 0; at < buffer.size();) {
      const ssize_t n = ::send(socket.get(), buffer.data() + at, buffer.size() - at, MSG_NOSIGNAL);
      if (n >= 0) {
        at += static_cast<std::size_t>(n);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        wait_writable(socket);
      } else if (errno != EINTR) {
        return errno;
      }
    }
    return 0;
  }
};

socket_writer::socket_writer(const std::string& to, const socket_options& o) {
  endpoint a = parse(to);
  check(o, "'" + to + "'");
  if (a.what == endpoint::kind::udp) refuse("'" + to + "'", "datagrams are not written");
  state_ = std::make_shared<state>(std::move(a), o);
}

void socket_writer::operator()(const std::string& bytes) {
  state& s = *state_;
  s.buffer.clear();
  if (s.options.frames == framing::records) {
    if (bytes.size() > 0xffffffffU) refuse("'" + s.to.text + "'", "a record of more than 4 GiB");
    for (int shift = 24; shift >= 0; shift -= 8) s.buffer += static_cast<char>(bytes.size() >> shift);
    s.buffer += bytes;
  } else {
    s.buffer.append(bytes).push_back('\n');
  }
  for (;;) {
    if (s.socket.get() >= 0 && s.is_closed()) s.socket = descriptor();
    if (s.socket.get() < 0) s.connect();
    const int fault = s.send_all();
    if (fault == 0) {
      s.tries.begin_anew();
      return;
    }
    s.socket = descriptor();
    state::pause(s.tries.failed(s.to.text, std::strerror(fault)));
  }
}

}  // namespace troupe::connectors
