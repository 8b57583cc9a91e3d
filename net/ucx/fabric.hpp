// What this file is for: UCX as a fabric: one worker, its address, and what arrives at it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <ucp/api/ucp.h>

#include "net/bulk_fabric.hpp"

namespace troupe::net::ucx {

class way;

/// Before each message; processors of one cluster have the same byte order.
struct head {
  fabric_token token{};
  std::uint64_t transfer = 0, offset = 0;
};
static_assert(std::is_trivially_copyable_v<head> && sizeof(head) == 32);

enum message : unsigned { greeting = 1, part = 2 };

class fabric final : public bulk_fabric {
 public:
  /// Null, and why, if UCX has nothing to work with.
  static std::unique_ptr<fabric> make(std::string& why);
  ~fabric() override;

  const std::string& kind() const override { return kind_; }
  std::span<const std::byte> address() const override { return address_; }
  std::unique_ptr<fabric_path> open(const fabric_token& expected, fabric_told&) override;
  bool work() override;
  bool rest() override;
  int descriptor() const override { return descriptor_; }

  // For the fabric's paths.
  ucp_worker_h worker() const { return worker_; }
  /// With the next `work`, not from inside the call that finds it out.
  void later(std::function<void()> f) { later_.push_back(std::move(f)); }
  void forget(const fabric_token& expected) { ways_.erase(expected); }

 private:
  fabric() = default;
  bool begin(std::string& why);
  template <ucs_status_t (fabric::*Heard)(const head&, void*, std::size_t, const ucp_am_recv_param_t&)>
  bool hear(message, std::string& why);
  ucs_status_t greeted(const head&, void* data, std::size_t bytes, const ucp_am_recv_param_t&);
  ucs_status_t arriving(const head&, void* data, std::size_t bytes, const ucp_am_recv_param_t&);
  std::shared_ptr<way> way_of(const head&) const;

  std::string kind_;
  std::vector<std::byte> address_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  std::map<fabric_token, std::shared_ptr<way>> ways_;
  std::deque<std::function<void()>> later_;
};

}  // namespace troupe::net::ucx
