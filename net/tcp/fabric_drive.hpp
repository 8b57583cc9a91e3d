// What this file is for: gives a fabric its turns on the bulk thread, and remembers for which peers it does not work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <unordered_map>

#include "net/bulk_fabric.hpp"
#include "net/tcp/loop.hpp"
#include "net/transport.hpp"

namespace troupe::net::tcp {

/// On the loop, from `begin` to `end`.
class fabric_drive {
 public:
  fabric_drive(loop& bulk, std::unique_ptr<bulk_fabric> f) : loop_(bulk), fabric_(std::move(f)) {}

  void begin();
  /// Afterwards nothing of the fabric happens any more.
  void end();
  /// After it has been given something to do.
  void kick();
  bulk_fabric& fabric() { return *fabric_; }

  bool is_tried_with(const node_id& peer) const;
  void failed_with(const node_id& peer) { ++failures_[peer]; }

 private:
  void run();

  loop& loop_;
  const std::unique_ptr<bulk_fabric> fabric_;
  std::unique_ptr<watch> watch_;
  bool kicked_ = false, waiting_ = false;
  std::unordered_map<node_id, int, node_id_hash> failures_;
};

}  // namespace troupe::net::tcp
