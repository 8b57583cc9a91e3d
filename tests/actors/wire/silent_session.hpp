// What this file is for: a session with a peer that does not exist: it takes what is sent and says nothing.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "net/transport.hpp"

namespace test {

/// Keeps the frames that are sent, in order. One thread.
class silent_session final : public troupe::net::session {
 public:
  /// The peer's id begins with that byte; the rest of it is zero.
  explicit silent_session(std::uint8_t id = 0) { peer_.id.bytes[0] = id; }

  const troupe::net::identity& peer() const override { return peer_; }
  bool dialled() const override { return false; }
  bool send(std::span<const std::byte> frame) override {
    frames.emplace_back(frame.begin(), frame.end());
    return true;
  }
  std::size_t frame_max() const override { return 1u << 20; }
  void send_bulk(std::span<const std::byte>, troupe::net::const_pieces, std::function<void(bool)>) override {}
  std::size_t unsent() const override { return 0; }
  std::chrono::steady_clock::time_point heard() const override { return {}; }
  std::uint64_t bytes_sent() const override { return 0; }
  std::uint64_t bytes_received() const override { return 0; }
  void close(std::exception_ptr) override {}

  std::vector<std::vector<std::byte>> frames;

 private:
  troupe::net::identity peer_;
};

}  // namespace test
