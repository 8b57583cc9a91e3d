// What this file is for: the bulk connection of a session: both directions on the bulk thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/tcp/bulk_in.hpp"
#include "net/tcp/bulk_out.hpp"
#include "net/tcp/fabric_line.hpp"
#include "net/tcp/loop.hpp"
#include "net/tcp/stream.hpp"

namespace troupe::net::tcp {

class bulk_line {
 public:
  using failure = std::function<void(std::exception_ptr)>;

  /// Chunks that are sent, and those that arrive, are no larger than that. Long bodies go through the fabric, if there
  /// is one that both sides have.
  bulk_line(loop&, std::unique_ptr<stream>, std::size_t out_max, std::size_t in_max, std::string peer,
            std::unique_ptr<fabric_line> fabric);
  ~bulk_line();

  /// Sets the holder of this line, before anybody else knows it.
  void owned_by(std::weak_ptr<void> owner) { owner_ = std::move(owner); }
  /// On the loop: begins to read and to write.
  void begin(bulk_in::arriving_told, bulk_in::arrived_told, failure failed);
  /// Any thread.
  void send(transfer_out);
  /// On the loop: answers for every transfer and closes the connection; then `closed`, perhaps at once.
  void close(std::function<void()> closed);

 private:
  void take_in();
  void put_out();
  void collect();
  void wait_to_write();
  bool broken(outcome);

  loop& loop_;
  const std::string peer_;
  std::weak_ptr<void> owner_;
  failure failed_;
  std::unique_ptr<stream> io_;
  std::unique_ptr<watch> watch_;
  bulk_in in_;
  bulk_out out_;
  const std::unique_ptr<fabric_line> fabric_;
  bool writing_ = false;              ///< waits until it may go on
  bool reading_wants_write_ = false;  ///< TLS has to say something before it reads on

  std::mutex lock_;
  bool closed_ = false;
  bool told_ = false;  ///< the loop knows that there is something new
  std::vector<transfer_out> new_;
};

}  // namespace troupe::net::tcp
