// What this file is for: a TCP proxy on loopback that a test can cut: connections through it end with a reset.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace support {

class proxy {
 public:
  proxy() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a = address_of(0);
    socklen_t n = sizeof a;
    wake_ = eventfd(0, EFD_CLOEXEC);
    if (listener_ < 0 || wake_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&a), n) != 0 ||
        listen(listener_, 64) != 0 || getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &n) != 0)
      throw std::runtime_error("the proxy cannot listen");
    port_ = ntohs(a.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~proxy() {
    stop_ = true;
    ring();
    thread_.join();
    close(listener_);
    close(wake_);
  }
  proxy(const proxy&) = delete;
  proxy& operator=(const proxy&) = delete;

  /// Forwards to this port of 127.0.0.1 from now on.
  void forward_to(std::uint16_t port) { to_ = port; }
  /// The same by the address of a node, which ends with its port.
  void forward_to(const std::string& address) {
    forward_to(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// Resets all connections that there are; new ones are let through.
  void cut() {
    ++cuts_;
    ring();
  }
  /// What those who have dialled send is held back from now on, or not any more. A cut drops what is held back.
  void hold_back(bool yes) {
    held_ = yes;
    ring();
  }
  /// How many connections have been let through.
  int connections() const { return connections_; }

 private:
  struct pair {
    int a, b;
  };

  static sockaddr_in address_of(std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
  }
  void ring() const {
    const std::uint64_t one = 1;
    if (write(wake_, &one, sizeof one) < 0) throw std::runtime_error("the proxy cannot be woken");
  }
  static void reset(int s) {
    const linger now{1, 0};
    setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(s);
  }
  static bool forward(int from, int to) {
    char bytes[65536];
    const ssize_t n = recv(from, bytes, sizeof bytes, 0);
    for (ssize_t at = 0; at < n;) {
      const ssize_t sent = send(to, bytes + at, static_cast<std::size_t>(n - at), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += sent;
    }
    return n > 0;
  }
  void run() {
    std::vector<pair> pairs;
    const auto drop = [&](std::size_t i) {
      reset(pairs[i].a);
      reset(pairs[i].b);
      pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(i));
    };
    for (int seen = 0; !stop_;) {
      std::vector<pollfd> all{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const pair& p : pairs) {
        all.push_back({held_ ? -1 : p.a, POLLIN, 0});
        all.push_back({p.b, POLLIN, 0});
      }
      poll(all.data(), all.size(), -1);
      if (all[0].revents) {
        std::uint64_t n;
        if (read(wake_, &n, sizeof n) < 0) break;
      }
      if (seen != cuts_) {
        seen = cuts_;
        while (!pairs.empty()) drop(0);
        continue;
      }
      for (std::size_t i = pairs.size(); i-- > 0;) {
        const bool from_a = all[2 + 2 * i].revents != 0, from_b = all[3 + 2 * i].revents != 0;
        if ((from_a && !forward(pairs[i].a, pairs[i].b)) || (from_b && !forward(pairs[i].b, pairs[i].a))) drop(i);
      }
      if (all[1].revents) {
        const int a = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        const int b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to = address_of(to_);
        if (a >= 0 && connect(b, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
          pairs.push_back({a, b});
          ++connections_;
        } else {
          if (a >= 0) reset(a);
          close(b);
        }
      }
    }
    while (!pairs.empty()) drop(0);
  }

  std::atomic<std::uint16_t> to_{0};
  std::uint16_t port_ = 0;
  int listener_ = -1, wake_ = -1;
  std::atomic<bool> stop_{false}, held_{false};
  std::atomic<int> cuts_{0}, connections_{0};
  std::thread thread_;
};

}  // namespace support
