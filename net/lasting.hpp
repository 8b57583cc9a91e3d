// What this file is for: a session that outlives its connections: what a broken one had under way comes over the next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Frames are numbered and kept until the peer has them, transfers too. After a new connection each side says which
// frame it expects next, and the other one sends again from there. What comes twice is dropped. So its user sees each
// frame and each transfer once, in order, or the end of the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "net/transfer_rate.hpp"
#include "net/transport.hpp"

namespace troupe::net {

/// The first bytes of what it sends; others are not its own.
inline constexpr std::uint8_t lasting_first = 0x30, lasting_last = 0x34;

/// The events of what arrives, unwrapped. As in transport_events, on the same threads.
class lasting_events {
 public:
  virtual void frame(std::span<const std::byte>) = 0;
  /// Asked again for the same transfer, if a connection broke in the middle of it.
  virtual pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) = 0;
  /// Once for each time that `arriving` has given all the room that was asked for, as then nothing writes there any
  /// more. Not `whole`: the connection broke, and it may come again over another one.
  virtual void arrived(std::span<const std::byte> head, bool whole) = 0;

 protected:
  ~lasting_events() = default;
};

class lasting_session final : public session, public std::enable_shared_from_this<lasting_session> {
 public:
  using clock = std::function<transfer_rate::time_point()>;
  explicit lasting_session(std::shared_ptr<session> first, clock = std::chrono::steady_clock::now);

  /// Another connection to the same process, which has kept its side, too.
  void attach(std::shared_ptr<session>);
  /// Takes what the connection brings; throws error(protocol_error).
  void take(session& over, std::span<const std::byte> frame, lasting_events&);
  pieces arriving(session& over, std::span<const std::byte> head, std::uint64_t bytes, lasting_events&);
  void arrived(session& over, std::span<const std::byte> head, bool whole, lasting_events&);
  /// The peer is gone: what was to be sent never will be, and nothing is sent any more.
  void end();

  // ---- session
  const identity& peer() const override { return peer_; }
  bool dialled() const override { return false; }
  /// False also where a frame is larger than `frame_max`: it could not be sent again for ever.
  bool send(std::span<const std::byte> frame) override;
  std::size_t frame_max() const override { return frame_max_; }
  /// `done(true)` once the peer has all of it.
  void send_bulk(std::span<const std::byte> head, const_pieces body, std::function<void(bool)> done) override;
  std::size_t unsent() const override;
  std::chrono::steady_clock::time_point heard() const override;
  std::uint64_t bytes_sent() const override;
  std::uint64_t bytes_received() const override;
  std::uint64_t fabric_sent() const override;
  std::uint64_t fabric_received() const override;
  /// Breaks the connection; another one may follow.
  void close(std::exception_ptr why) override;

  // ---- what it has seen of the link
  /// Times that a connection was replaced by another one.
  std::uint64_t resets() const;
  /// Returns the rate of bodies, while some were under way: out until the peer has said that it has them, in as they
  /// came. 0: none.
  double rate_out() const;
  double rate_in() const;

 private:
  struct parcel {
    std::vector<std::byte> head;
    const_pieces body;
    std::function<void(bool)> done;
    std::uint64_t bytes = 0;
    bool whole = false;      // the peer has all of it
    int under_way = 0;       // over connections that have not let go of it
    std::uint64_t over = 0;  // the last of these, counted
  };
  /// A transfer of the peer's, over one connection. What was begun twice has ended once all of it has.
  struct arrival {
    std::uint64_t bytes = 0;
    int begun = 1;
    bool whole = true;
  };

  bool is_current(const session& s) const { return now_.get() == &s; }
  void send_kept(std::uint64_t number, std::span<const std::byte> frame);
  void start(std::uint64_t number);
  void let_go(std::uint64_t number);
  void forget_until(std::uint64_t number);
  void acknowledge();
  static void confirm(session& over, std::uint64_t number);

  const identity peer_;
  const std::size_t frame_max_;  // what the first connection takes, less what is put before a frame
  const clock clock_;
  mutable std::mutex lock_;
  std::shared_ptr<session> now_;
  std::uint64_t connections_ = 1;
  bool ended_ = false, in_step_ = true;  // false: the peer has not said what it expects over this connection
  // Over connections that are gone.
  std::uint64_t sent_before_ = 0, received_before_ = 0, fabric_sent_before_ = 0, fabric_received_before_ = 0;

  std::uint64_t resets_ = 0;
  transfer_rate out_, in_;
  std::map<std::pair<const session*, std::uint64_t>, arrival> coming_;  // that there is room for, by number

  std::uint64_t first_ = 1;  // of the frames that are kept
  std::deque<std::vector<std::byte>> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t expected_ = 1, told_ = 0;  // the next frame of the peer's; the last that it has been told of
  std::size_t taken_bytes_ = 0;            // since then

  std::uint64_t next_parcel_ = 1;
  std::map<std::uint64_t, parcel> parcels_;  // that the peer has not all of
  std::uint64_t whole_until_ = 0;            // of the peer's, all up to here have arrived
  std::set<std::uint64_t> whole_;            // and these
};

}  // namespace troupe::net
