// What this file is for: a TCP proxy on loopback that a test can cut, hold back and slow down.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
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
  /// Holds back what the dialling sides send from now on, or not any more. A cut drops what is held back.
  void hold_back(bool yes) {
    held_ = yes;
    ring();
  }
  /// From now on each piece that passes is late by a time of its own, up to that: within a connection they keep their
  /// order, as TCP does, and what two connections carry comes in any order. 0: nothing is late any more.
  void delay(std::chrono::milliseconds most) {
    late_ms_ = static_cast<int>(most.count());
    ring();
  }
  /// How many connections have been let through.
  int connections() const { return connections_; }

 private:
  using clock = std::chrono::steady_clock;
  struct piece {
    clock::time_point due;
    std::vector<char> bytes;
  };
  /// The bytes that one end has sent and the other has not got yet.
  struct way {
    int from, to;
    std::deque<piece> late{};
    std::size_t bytes = 0;
  };
  struct pair {
    way there, back;
  };
  static constexpr std::size_t late_max = 4 << 20;

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
  static bool pass_on(int to, const char* bytes, ssize_t n) {
    for (ssize_t at = 0; at < n;) {
      const ssize_t sent = send(to, bytes + at, static_cast<std::size_t>(n - at), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += sent;
    }
    return true;
  }
  /// Takes what has come; false at the end of the connection.
  bool take(way& w) {
    char bytes[65536];
    const ssize_t n = recv(w.from, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    if (late_ms_ == 0 && w.late.empty()) return pass_on(w.to, bytes, n);
    clock::time_point due = clock::now();
    if (late_ms_ != 0)
      due += std::chrono::milliseconds(random_() % (static_cast<std::minstd_rand::result_type>(late_ms_) + 1));
    if (!w.late.empty()) due = std::max(due, w.late.back().due);
    w.late.push_back({due, {bytes, bytes + n}});
    w.bytes += static_cast<std::size_t>(n);
    return true;
  }
  static bool pass_on_what_is_due(way& w) {
    while (!w.late.empty() && w.late.front().due <= clock::now()) {
      const piece p = std::move(w.late.front());
      w.late.pop_front();
      w.bytes -= p.bytes.size();
      if (!pass_on(w.to, p.bytes.data(), static_cast<ssize_t>(p.bytes.size()))) return false;
    }
    return true;
  }
  /// Until something is due; -1: nothing ever is.
  static int patience(const std::vector<pair>& pairs) {
    auto first = clock::time_point::max();
    for (const pair& p : pairs)
      for (const way* w : {&p.there, &p.back})
        if (!w->late.empty()) first = std::min(first, w->late.front().due);
    if (first == clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - clock::now()).count();
    return left < 0 ? 0 : static_cast<int>(left);
  }
  void let_in(std::vector<pair>& pairs) {
    const int a = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = address_of(to_);
    if (a >= 0 && connect(b, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
      pairs.push_back({{a, b}, {b, a}});
      ++connections_;
    } else {
      if (a >= 0) reset(a);
      close(b);
    }
  }
  void run() {
    std::vector<pair> pairs;
    const auto drop = [&](std::size_t i) {
      reset(pairs[i].there.from);
      reset(pairs[i].back.from);
      pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(i));
    };
    for (int seen = 0; !stop_;) {
      std::vector<pollfd> all{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const pair& p : pairs) {
        all.push_back({held_ || p.there.bytes > late_max ? -1 : p.there.from, POLLIN, 0});
        all.push_back({p.back.bytes > late_max ? -1 : p.back.from, POLLIN, 0});
      }
      poll(all.data(), all.size(), patience(pairs));
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
        const bool there = all[2 + 2 * i].revents != 0, back = all[3 + 2 * i].revents != 0;
        if ((there && !take(pairs[i].there)) || (back && !take(pairs[i].back)) ||
            !pass_on_what_is_due(pairs[i].there) || !pass_on_what_is_due(pairs[i].back))
          drop(i);
      }
      if (all[1].revents) let_in(pairs);
    }
    while (!pairs.empty()) drop(0);
  }

  std::atomic<std::uint16_t> to_{0};
  std::uint16_t port_ = 0;
  int listener_ = -1, wake_ = -1;
  std::atomic<bool> stop_{false}, held_{false};
  std::atomic<int> cuts_{0}, connections_{0}, late_ms_{0};
  std::minstd_rand random_{1};  // of the thread's
  std::thread thread_;
};

}  // namespace support
