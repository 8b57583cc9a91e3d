// What this file is for: a session over TCP: its two lines, and its end, which comes once and in order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   end (any thread) -> control: frames stop -> bulk: transfers are answered for, closed -> control: closed, `ended`
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "net/tcp/bulk_line.hpp"
#include "net/tcp/control_line.hpp"
#include "net/tcp/hello.hpp"
#include "net/tcp/loop.hpp"
#include "net/tcp/stream.hpp"
#include "net/transport.hpp"

namespace troupe::net::tcp {

class tcp_session final : public session, public std::enable_shared_from_this<tcp_session> {
 public:
  /// The terms that both sides have agreed on.
  struct terms {
    identity peer;
    endpoint remote;                    ///< where the peer's end of the control connection is
    std::optional<endpoint> dialled{};  ///< by this side, and where
    std::uint64_t number = 0;
    limits peer_takes{};
    limits takes{};
    std::size_t unsent_max = 0;
  };
  struct streams {
    std::unique_ptr<stream> control, bulk;
  };
  /// On the control thread: nothing of this session is called any more.
  using ended_told = std::function<void(const std::shared_ptr<tcp_session>&, std::exception_ptr why)>;

  /// `fabric`: null, if this side has none.
  static std::shared_ptr<tcp_session> make(loop& control, loop& bulk, fabric_drive* fabric, terms, streams,
                                           transport_events&, ended_told);

  /// On the control thread, after `up` has been told: what arrives is passed on.
  void begin();

  const identity& peer() const override { return terms_.peer; }
  bool dialled() const override { return terms_.dialled.has_value(); }
  std::optional<endpoint> dialled_at() const override { return terms_.dialled; }
  bool send(std::span<const std::byte> frame) override { return control_line_.send(frame); }
  std::size_t frame_max() const override {
    return static_cast<std::size_t>(std::min(terms_.takes.frame_max, terms_.peer_takes.frame_max));
  }
  void send_bulk(std::span<const std::byte> head, const_pieces body, std::function<void(bool)> done) override;
  std::size_t unsent() const override { return control_line_.unsent(); }
  std::chrono::steady_clock::time_point heard() const override;
  std::uint64_t bytes_sent() const override { return meter_->sent + meter_->fabric_sent; }
  std::uint64_t bytes_received() const override { return meter_->received + meter_->fabric_received; }
  std::uint64_t fabric_sent() const override { return meter_->fabric_sent; }
  std::uint64_t fabric_received() const override { return meter_->fabric_received; }
  void close(std::exception_ptr why) override;

  const terms& agreed() const { return terms_; }

 private:
  tcp_session(loop& control, loop& bulk, fabric_drive*, terms, streams, transport_events&, ended_told);
  void end(std::exception_ptr why);

  loop& control_;
  loop& bulk_;
  const terms terms_;
  transport_events& events_;
  const ended_told ended_;
  std::shared_ptr<meter> meter_ = std::make_shared<meter>();
  control_line control_line_;
  bulk_line bulk_line_;
  std::atomic<bool> ending_{false};
};

}  // namespace troupe::net::tcp
