// What this file is for: the other end of a wire without any of our code: sockets by hand, a proxy that records.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/transport.hpp"

namespace wires {

/// A socket that blocks.
class raw_socket {
 public:
  explicit raw_socket(int socket) : socket_(socket) {}
  /// Made now, connected later; from another address of loopback if wanted.
  explicit raw_socket(const std::string& from = "127.0.0.1");
  raw_socket(raw_socket&& o) noexcept : socket_(std::exchange(o.socket_, -1)) {}
  raw_socket& operator=(raw_socket&&) = delete;
  ~raw_socket();

  raw_socket& connect(const troupe::net::endpoint&);
  /// False: the other side has gone.
  bool say(std::span<const std::byte>);
  /// With its length before it.
  bool say_message(std::span<const std::byte>);
  /// Returns what comes until so many bytes, the end, or that much time.
  std::vector<std::byte> hear(std::size_t bytes_max, std::chrono::milliseconds = std::chrono::minutes(1));
  /// A message with its length before it; empty if none comes.
  std::vector<std::byte> hear_message();
  /// The other side ends within that time; what it says until then is thrown away.
  bool ends(std::chrono::milliseconds = std::chrono::minutes(1));
  int socket() const { return socket_; }

 private:
  int socket_;
};

/// Listens on a port of its own, for tests that play a server.
class raw_listener {
 public:
  raw_listener();
  ~raw_listener();
  raw_socket accept();
  troupe::net::endpoint address() const { return address_; }
  int socket() const { return socket_; }

 private:
  int socket_;
  troupe::net::endpoint address_;
};

/// Passes connections on to another address, and keeps what the dialling side says.
class proxy {
 public:
  explicit proxy(const troupe::net::endpoint& to);
  ~proxy();

  troupe::net::endpoint address() const { return listener_.address(); }
  /// Returns the bytes of each connection, in the order of their coming.
  std::vector<std::vector<std::byte>> recorded() const;
  /// From now on one bit of each piece that the dialling side says is another.
  void spoil();
  /// Every connection ends with a reset.
  void reset();

 private:
  struct line {
    raw_socket near, far;
    std::vector<std::byte> said{};
    bool open = true;
  };
  void run();
  void pass(line&, bool towards_far);

  raw_listener listener_;
  troupe::net::endpoint to_;
  int wake_[2];
  mutable std::mutex lock_;
  std::list<line> lines_;
  bool spoils_ = false;
  std::thread thread_;
};

}  // namespace wires
