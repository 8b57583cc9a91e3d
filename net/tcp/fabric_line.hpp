// What this file is for: the bodies of a session through a fabric, where both sides have one and it reaches.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   both: fabric (address, token) -> through it: greeting with the other's token -> ready -> from then on offers
//   transfer: offer -> take -> parts through it -> have -> kept      or: offer -> leave
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "net/bulk_fabric.hpp"
#include "net/tcp/fabric_drive.hpp"
#include "net/tcp/fabric_in.hpp"
#include "net/tcp/fabric_out.hpp"
#include "net/tcp/stream.hpp"

namespace troupe::net::tcp {

/// On the bulk thread. Without a drive it has no fabric, and says nothing.
class fabric_line final : private fabric_told {
 public:
  using failure = std::function<void(std::exception_ptr)>;

  fabric_line(fabric_drive* drive, const node_id& peer, std::string name, std::shared_ptr<meter> counts);

  void begin(bulk_in::arriving_told, bulk_in::arrived_told, say_told, failure);
  bool takes(std::uint64_t bytes) const;
  void send(transfer_out t) { out_.add(std::move(t)); }
  /// A note. Throws `error(protocol_error)`.
  void hear(part, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte>);
  /// Answers for every transfer once nothing touches their memory; then `closed`.
  void close(std::function<void()> closed);

 private:
  void greeted() override;
  std::span<std::byte> destination(std::uint64_t transfer, std::uint64_t offset, std::uint64_t bytes) override;
  void placed(std::uint64_t transfer, std::uint64_t offset) override;
  void sent(std::uint64_t transfer, std::uint64_t offset) override;
  void broken(const std::string& why) override;
  void connect(std::span<const std::byte> note);
  void refuse(std::exception_ptr);

  fabric_drive* const drive_;
  const node_id peer_;
  const std::string name_;
  const std::shared_ptr<meter> counts_;
  say_told say_;
  failure failed_;
  std::unique_ptr<fabric_path> path_;
  bool heard_ = false, connected_ = false, ready_ = false, said_ready_ = false, refused_ = false;
  fabric_out out_;
  fabric_in in_;
};

}  // namespace troupe::net::tcp
