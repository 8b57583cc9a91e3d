// What this file is for: the seam between transports and a fabric that moves bodies from memory to memory, no socket.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A fabric neither encrypts nor proves which process is there: a transport tells a peer it has admitted the address of
// its own end and a token, fresh for each session, and only what carries the token is taken for that peer's. All of it
// happens on one thread, which the transport gives; none of it waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::net {

using fabric_token = std::array<std::byte, 16>;

/// The events of a path, which may not be closed from here.
class fabric_told {
 public:
  /// The peer has come, with the token: what it sends arrives.
  virtual void greeted() = 0;
  /// A part begins to arrive. Answers where its bytes go, which stays valid until `placed` or the path is closed;
  /// empty, and they are not taken.
  virtual std::span<std::byte> destination(std::uint64_t transfer, std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual void placed(std::uint64_t transfer, std::uint64_t offset) = 0;
  /// The peer has taken a part, and nobody reads its memory any more.
  virtual void sent(std::uint64_t transfer, std::uint64_t offset) = 0;
  /// Once. Nothing else is told any more; what was under way still touches its memory until the path is closed.
  virtual void broken(const std::string& why) = 0;

 protected:
  ~fabric_told() = default;
};

/// The way to one peer and back. It is closed before it is destroyed, which may be later than its fabric and on any
/// thread.
class fabric_path {
 public:
  virtual ~fabric_path() = default;
  /// To the end with that address. Nothing if it can be reached; otherwise why not.
  virtual std::optional<std::string> connect(std::span<const std::byte> address, const fabric_token& carried) = 0;
  /// Tells the peer's end that this one is there.
  virtual void greet() = 0;
  /// The memory stays as it is until `sent`, or until the path is closed.
  virtual void send(std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte> body) = 0;
  /// Nothing is told any more. `closed` is called when nothing touches memory of this path's user; perhaps at once.
  virtual void close(std::function<void()> closed) = 0;
};

class bulk_fabric {
 public:
  virtual ~bulk_fabric() = default;
  /// Returns which fabric it is, and its version: both sides have to be the same.
  virtual const std::string& kind() const = 0;
  virtual std::span<const std::byte> address() const = 0;
  /// Returns a path that is not connected yet; a peer that sends to this side has to carry `expected`.
  virtual std::unique_ptr<fabric_path> open(const fabric_token& expected, fabric_told&) = 0;

  /// Does some of what there is to do, which takes less than a millisecond. False: there was nothing.
  virtual bool work() = 0;
  /// Before waiting: `descriptor` becomes readable when there is something to do. False: there is already.
  virtual bool rest() = 0;
  virtual int descriptor() const = 0;
};

}  // namespace troupe::net
