// What this file is for: what comes over sockets as a stream, and items that go out over one: TCP, UDP, Unix.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Addresses: "tcp:HOST:PORT" ("tcp:[::1]:PORT"), "unix:PATH", and for listeners "udp:HOST:PORT". Nothing is encrypted,
// and nobody asks who is at the other end. No source here can replay. A socket is read only while there is room in the
// stream, so who writes faster waits; datagrams that find no room are dropped by the system.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <troupe/stream.hpp>

namespace troupe::connectors {

/// How messages are told apart. Datagrams need no such thing.
enum class framing : std::uint8_t {
  lines,   ///< each ends with a newline, which is not part of it
  records  ///< before each stands its length, in four bytes with the largest first
};

struct message {
  std::string bytes;
  /// Number of the connection that it came over, from 0 on in the order in which they began; 0 for datagrams.
  std::uint64_t connection = 0;
  /// False for what is not a whole message: a part of a line above `message_max`, what a connection has left when it
  /// ends in the middle of one, the beginning of a datagram that is longer. A record that claims to be longer than
  /// `message_max` comes as an empty message that is not whole, and its connection is closed.
  bool is_whole = true;
};

struct socket_options {
  framing frames = framing::lines;
  std::size_t message_max = 1u << 20;  ///< bytes, 1 to 2^30
  /// Of listeners: connections at once, 1 to 65536; further ones wait in the system until one has ended.
  std::size_t connections_max = 1024;
  /// Of sources and writers that connect: the pause before another attempt; doubles up to `backoff_max` until something
  /// has come, or gone, over a connection.
  std::chrono::milliseconds backoff{100}, backoff_max{10'000};
  /// Attempts that fail one after the other until the source or writer gives up with `error(io_failed)`. 0: never.
  int attempts_max = 0;
  /// Of sources that connect: false ends the stream when the other end closes the connection.
  bool reconnects = true;
};

/// Connects, and yields the messages that the other end sends. Connects again when the connection is lost. Host names
/// are looked up on a worker, which does other things meanwhile. Throws `error(bad_argument)` at once for an address or
/// options that make no sense.
stream::source<message> connect_messages(const std::string& address, const socket_options& o = {});

/// A socket at which others connect, or to which they send datagrams. Open from its constructor on. A handle: copies
/// are the same socket. A Unix socket's path is removed with it; one that a process which is gone has left is taken
/// over.
class listener {
 public:
  /// Throws `error(bad_argument)` for what is no address, `error(io_failed)` where it cannot listen there.
  explicit listener(const std::string& address);
  /// The address, with the port that the system chose for port 0.
  const std::string& address() const;
  /// The messages of all connections, those of one in their order. It never ends by itself. What goes wrong with a
  /// connection ends that connection. One such source for a listener at a time.
  stream::source<message> messages(const socket_options& o = {}) const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// Sends each text as a message over a connection, of lines one for each line in it: the function of a sink,
/// `st::sink("out", socket_writer(address))`. Connects with the first one, and again when the connection is lost; a
/// message that had begun is then sent as a whole once more, so the other end may have seen it, or a part of it, on the
/// connection before. Nobody answers: what was sent before a connection is lost may never have arrived. While it waits
/// its worker does other things. Throws `error(io_failed)` after `attempts_max` attempts.
class socket_writer {
 public:
  explicit socket_writer(const std::string& address, const socket_options& o = {});
  void operator()(const std::string& bytes);

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace troupe::connectors

/// A message counts with its bytes.
template <>
struct troupe::stream::item_bytes<troupe::connectors::message> {
  static std::size_t of(const troupe::connectors::message& m) noexcept { return sizeof m + m.bytes.size(); }
};
