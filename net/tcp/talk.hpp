// What this file is for: a connection before it is part of a session: a handshake, a message each way, a deadline.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A talk takes one step at a time; each calls what follows it, or `failed` once for all. Reads to the end of a message
// and no further, so that nothing has to be handed over with the stream.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/tcp/address.hpp"
#include "net/tcp/loop.hpp"
#include "net/tcp/stream.hpp"

namespace troupe::net::tcp {

/// Lives on its loop. Somebody holds it until it has been taken or dropped.
class talk : public std::enable_shared_from_this<talk> {
 public:
  using next = std::function<void()>;
  using heard = std::function<void(std::span<const std::byte>)>;
  using failure = std::function<void(std::exception_ptr)>;

  talk(loop&, std::unique_ptr<stream>, address peer, std::string peer_text);
  ~talk();

  /// Ends at that time at the latest; `failed` is called for it, and for all else that goes wrong. One that lingers
  /// does so when the handshake fails.
  void begin(loop::time_point deadline, bool lingers, failure failed);
  /// Until the socket is connected.
  void connected(next);
  void handshake(next);
  void write(std::vector<std::byte> message, next);
  void read(heard);
  /// Says that nothing follows and drops what arrives until the other side ends as well: closing at once could destroy
  /// what was written last on its way. `failed` is called at the end.
  void linger();

  stream& io() { return *io_; }
  const address& peer() const { return peer_; }
  /// The stream, for a session. Nothing is called any more.
  std::unique_ptr<stream> take();
  /// The same, and the connection is closed.
  void drop();

 private:
  void try_handshake();
  void try_write();
  void try_read();
  void try_drain();
  /// Waits for what the outcome asks for; false if there is nothing to wait for.
  bool wait(outcome, void (talk::*again)());
  void fail(std::exception_ptr);
  void fail(const std::string& what);

  loop& loop_;
  std::unique_ptr<stream> io_;
  std::unique_ptr<watch> watch_;
  address peer_;
  std::string peer_text_;
  failure failed_;
  next next_;
  heard heard_;
  std::vector<std::byte> message_;
  std::size_t at_ = 0;
  std::size_t wanted_ = 0;  ///< of the message that is being read, once its length is known
  bool lingers_ = false;
};

}  // namespace troupe::net::tcp
