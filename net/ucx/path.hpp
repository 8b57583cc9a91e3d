// What this file is for: the way to one peer: an endpoint of UCX, and how much is under way on it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/ucx/fabric.hpp"

namespace troupe::net::ucx {

/// Lives until UCX has answered for everything, whatever else has forgotten it.
class way : public std::enable_shared_from_this<way> {
 public:
  way(fabric& f, const fabric_token& expected, fabric_told& told) : fabric_(f), expected_(expected), told_(&told) {}

  std::optional<std::string> connect(std::span<const std::byte> address, const fabric_token& carried);
  void greet();
  void send(std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte> body);
  void close(std::function<void()> closed);

  void greeted();
  ucs_status_t arriving(const head&, void* data, std::size_t bytes, bool waits);

 private:
  struct record {
    std::shared_ptr<way> of;
    head what{};  ///< UCX reads it until it has answered
  };

  static void on_sent(void* request, ucs_status_t, void* what);
  static void on_placed(void* request, ucs_status_t, std::size_t, void* what);
  static void on_closed(void* request, ucs_status_t, void* what);
  static void on_failure(void* self, ucp_ep_h, ucs_status_t);
  void sent(const record&, ucs_status_t);
  void placed(const record&, ucs_status_t);
  void fail(ucs_status_t);
  void tell_if_closed();

  fabric& fabric_;
  const fabric_token expected_;
  fabric_token carried_{};
  fabric_told* told_;  ///< null once nothing is told any more
  ucp_ep_h end_ = nullptr;
  int under_way_ = 0;  ///< requests that touch memory, and that of closing
  bool closing_ = false;
  std::function<void()> closed_;
};

}  // namespace troupe::net::ucx
