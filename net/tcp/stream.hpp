// What this file is for: bytes over one socket, plain or through TLS; it never blocks and knows no events.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A stream is not for two threads at once: threads that share one lock. The socket is closed with it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "net/tcp/record_cursor.hpp"

struct ssl_st;

namespace troupe::net::tcp {

/// Counts of what went over the wire, of all streams of a session.
struct meter {
  std::atomic<std::uint64_t> sent{0}, received{0};
  std::atomic<std::uint64_t> fabric_sent{0}, fabric_received{0};  ///< of bodies, beside it
  std::atomic<std::int64_t> heard_ns{std::chrono::steady_clock::now().time_since_epoch().count()};
};

enum class outcome {
  moved,       ///< so many bytes, at least one
  wants_read,  ///< again once the socket is readable
  wants_write,
  ended,   ///< the other side sends no more
  failed,  ///< see `failure`
};

struct moved {
  outcome what;
  std::size_t bytes = 0;
};

class tls_guard;

class stream {
 public:
  /// AES-GCM wants a new key before 2^24 records.
  static constexpr std::uint64_t records_a_key = 1u << 22;

  /// Owns the socket and `tls`, which is null for a plain one. `renew_after`: the number of records after which it
  /// renews its key.
  stream(int socket, ssl_st* tls, std::uint64_t renew_after = records_a_key);
  ~stream();
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  /// The same meter for both streams of a session; until then it has one of its own.
  void count_in(std::shared_ptr<meter>);
  /// Ends the bound on what a stranger may make the machine remember.
  void trust();

  moved handshake();
  moved read(void* to, std::size_t bytes);
  moved write(const void* from, std::size_t bytes);
  /// Several pieces at once, where that saves calls: plain only.
  moved read(std::span<const iovec> to);
  moved write(std::span<const iovec> from);
  /// Says that nothing more follows. What arrives after that can only be drained.
  void finish();
  /// At least so many bytes are to be read before there is anything to do: until then the socket need not become
  /// readable, unless it ends. Called when a read has found nothing.
  void await(std::size_t bytes);

  bool plain() const { return tls_ == nullptr; }
  /// Takes what arrives from the socket, whatever it is.
  moved drain(std::span<std::byte> nowhere);
  /// Bytes have been taken from the socket that nobody has read: it will not become readable for them.
  bool holds_more() const;
  int socket() const { return socket_; }
  ssl_st* tls() const { return tls_; }
  const std::string& failure() const { return failure_; }

  // For TLS, which calls them to reach the socket; -1 with errno as the system's.
  ssize_t receive(void* to, std::size_t bytes);
  ssize_t send(const void* from, std::size_t bytes);

 private:
  std::size_t take_saved(std::span<std::byte> to);
  ssize_t take(std::span<std::byte> to);
  moved from_system(ssize_t n, outcome wait);
  moved from_tls(int result);

  int socket_;
  ssl_st* tls_;
  bool short_read_ = false;  ///< the last read took all there was: the next would only hear that
  int socket_error_ = 0, late_error_ = 0;
  // The records of TLS that have been taken from the socket: how far, and a header that TLS has not asked for.
  record_cursor records_taken_;
  std::array<std::byte, record_cursor::header> saved_{};
  std::size_t saved_bytes_ = 0;
  int awaited_ = 1;            ///< bytes that make the socket readable
  int one_by_one_ = 0;         ///< so many records more
  std::uint64_t records_ = 0;  ///< with this key
  const std::uint64_t renew_after_;
  std::shared_ptr<meter> meter_ = std::make_shared<meter>();
  std::unique_ptr<tls_guard> guard_;
  std::string failure_;
};

}  // namespace troupe::net::tcp
