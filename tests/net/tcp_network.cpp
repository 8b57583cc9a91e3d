// What this file is for: makes transports over TCP that admit each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tcp_network.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "certificates.hpp"
#include "net/tcp/tcp.hpp"
#include "net/ucx/ucx.hpp"

namespace wires {

namespace {

class tcp final : public network {
 public:
  explicit tcp(proof p, std::function<std::unique_ptr<bulk_fabric>()> fabric = {})
      : proof_(p), fabric_(std::move(fabric)) {}

  std::unique_ptr<transport> make(transport_options o) override {
    if (proof_ == proof::none) o.insecure_loopback = true;
    if (proof_ == proof::secret && o.proof.secrets.empty()) o.proof.secrets = {secret(1)};
    if (proof_ == proof::certificates && o.proof.certificate.empty()) {
      if (!authority_) authority_ = std::make_unique<authority>();
      o.proof = authority_->issue({.cluster = o.self.cluster});
    }
    if (proof_ != proof::none) o.looks = std::chrono::microseconds(50);  // one of these waits as users' nodes do
    return make_tcp(std::move(o), fabric_ ? fabric_() : nullptr);
  }
  endpoint anywhere() override { return {"127.0.0.1", 0}; }
  endpoint nowhere() override { return {"127.0.0.1", 1}; }
  bool until(const std::function<bool()>& done) override { return in_time(done); }

 private:
  const proof proof_;
  const std::function<std::unique_ptr<bulk_fabric>()> fabric_;
  std::unique_ptr<authority> authority_;
};

}  // namespace

std::unique_ptr<network> tcp_network(proof p) { return std::make_unique<tcp>(p); }

std::unique_ptr<network> fabric_network(std::function<std::unique_ptr<bulk_fabric>()> make) {
  return std::make_unique<tcp>(proof::secret, std::move(make));
}

std::unique_ptr<bulk_fabric> real_ucx() {
  std::string why;
  auto fabric = open_ucx(why);
  EXPECT_TRUE(fabric) << why;
  return fabric;
}

credentials::secret_bytes secret(std::uint8_t number) {
  credentials::secret_bytes s{};
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = static_cast<std::uint8_t>(number * 31 + i);
  return s;
}

bool in_time(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace wires
