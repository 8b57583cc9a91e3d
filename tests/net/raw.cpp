// What this file is for: sockets by hand.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "raw.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace wires {

namespace {

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &a.sin_addr) != 1) throw std::runtime_error("no address: " + host);
  return a;
}

void need(bool ok) {
  if (!ok) throw std::runtime_error(std::string("a socket of the test: ") + std::strerror(errno));
}

}  // namespace

raw_socket::raw_socket(const std::string& from) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  need(socket_ >= 0);
  const sockaddr_in a = address_of(from, 0);
  need(::bind(socket_, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0);
}

raw_socket::~raw_socket() {
  if (socket_ >= 0) ::close(socket_);
}

raw_socket& raw_socket::connect(const troupe::net::endpoint& to) {
  const sockaddr_in a = address_of(to.host, to.port);
  need(::connect(socket_, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0);
  return *this;
}

bool raw_socket::say(std::span<const std::byte> b) {
  while (!b.empty()) {
    const ssize_t n = ::send(socket_, b.data(), b.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    b = b.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool raw_socket::say_message(std::span<const std::byte> b) {
  const auto size = static_cast<std::uint32_t>(b.size());
  return say(std::as_bytes(std::span(&size, 1))) && say(b);
}

std::vector<std::byte> raw_socket::hear(std::size_t bytes_max, std::chrono::milliseconds within) {
  const auto until = std::chrono::steady_clock::now() + within;
  std::vector<std::byte> heard;
  std::array<std::byte, 4096> some;
  while (heard.size() < bytes_max) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd p{socket_, POLLIN, 0};
    if (left.count() < 0 || ::poll(&p, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t n = ::recv(socket_, some.data(), std::min(some.size(), bytes_max - heard.size()), 0);
    if (n <= 0) break;
    heard.insert(heard.end(), some.begin(), some.begin() + n);
  }
  return heard;
}

std::vector<std::byte> raw_socket::hear_message() {
  const auto head = hear(4);
  std::uint32_t size = 0;
  if (head.size() != sizeof size) return {};
  std::memcpy(&size, head.data(), sizeof size);
  return hear(size);
}

bool raw_socket::ends(std::chrono::milliseconds within) {
  const auto until = std::chrono::steady_clock::now() + within;
  std::array<std::byte, 4096> some;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd p{socket_, POLLIN, 0};
    if (left.count() < 0 || ::poll(&p, 1, static_cast<int>(left.count())) <= 0) return false;
    if (::recv(socket_, some.data(), some.size(), 0) <= 0) return true;
  }
}

raw_listener::raw_listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in a = address_of("127.0.0.1", 0);
  socklen_t size = sizeof a;
  need(::bind(socket_, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0 && ::listen(socket_, 16) == 0);
  need(::getsockname(socket_, reinterpret_cast<sockaddr*>(&a), &size) == 0);
  address_ = {"127.0.0.1", ntohs(a.sin_port)};
}

raw_listener::~raw_listener() { ::close(socket_); }

raw_socket raw_listener::accept() {
  const int s = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  need(s >= 0);
  return raw_socket(s);
}

proxy::proxy(const troupe::net::endpoint& to) : to_(to) {
  need(::pipe(wake_) == 0);
  thread_ = std::thread([this] { run(); });
}

proxy::~proxy() {
  ::close(wake_[1]);
  thread_.join();
  ::close(wake_[0]);
}

std::vector<std::vector<std::byte>> proxy::recorded() const {
  const std::lock_guard hold(lock_);
  std::vector<std::vector<std::byte>> all;
  for (const line& l : lines_) all.push_back(l.said);
  return all;
}

void proxy::spoil() {
  const std::lock_guard hold(lock_);
  spoils_ = true;
}

void proxy::reset() {
  const std::lock_guard hold(lock_);
  const linger at_once{1, 0};
  for (line& l : lines_) {
    // The descriptors stay until the thread lets them go; what they stood for ends here.
    for (raw_socket* s : {&l.near, &l.far}) {
      ::setsockopt(s->socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      sockaddr_in nobody{};
      nobody.sin_family = AF_UNSPEC;
      ::connect(s->socket(), reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody);
    }
    l.open = false;
  }
}

void proxy::run() {
  for (;;) {
    std::vector<pollfd> all{{wake_[0], POLLIN, 0}, {listener_.socket(), POLLIN, 0}};
    std::vector<line*> of;
    {
      const std::lock_guard hold(lock_);
      for (line& l : lines_) {
        if (!l.open) continue;
        of.push_back(&l);
        all.push_back({l.near.socket(), POLLIN, 0});
        all.push_back({l.far.socket(), POLLIN, 0});
      }
    }
    if (::poll(all.data(), all.size(), -1) < 0) continue;
    if (all[0].revents != 0) return;
    if (all[1].revents != 0) {
      raw_socket near = listener_.accept();
      raw_socket far;
      far.connect(to_);
      const std::lock_guard hold(lock_);
      lines_.push_back({std::move(near), std::move(far)});
    }
    const std::lock_guard hold(lock_);
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (all[2 + 2 * i].revents != 0) pass(*of[i], true);
      if (all[3 + 2 * i].revents != 0) pass(*of[i], false);
    }
  }
}

void proxy::pass(line& l, bool towards_far) {
  if (!l.open) return;
  std::array<std::byte, 65536> some;
  const ssize_t n = ::recv((towards_far ? l.near : l.far).socket(), some.data(), some.size(), 0);
  if (n <= 0) {
    l.open = false;
    ::shutdown(l.near.socket(), SHUT_RDWR);
    ::shutdown(l.far.socket(), SHUT_RDWR);
    return;
  }
  const std::span said(some.data(), static_cast<std::size_t>(n));
  if (towards_far && spoils_) said[said.size() / 2] ^= std::byte{1};
  if (towards_far) l.said.insert(l.said.end(), said.begin(), said.end());
  (towards_far ? l.far : l.near).say(said);
}

}  // namespace wires
