// What this file is for: the loopback network for the suite.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "loopback_network.hpp"

#include <chrono>
#include <utility>

#include "net/loopback/network.hpp"

namespace wires {

namespace {

class imagined final : public network {
 public:
  imagined() { network_.set_links({std::chrono::microseconds(50), std::chrono::microseconds(200), 1'000'000'000, 0}); }
  std::unique_ptr<transport> make(transport_options o) override {
    if (o.proof.secrets.empty()) o.proof.secrets.emplace_back();
    return network_.attach(std::move(o));
  }
  endpoint anywhere() override { return {"10.0.0.1", 0}; }
  endpoint nowhere() override { return {"10.0.0.1", 1}; }
  bool until(const std::function<bool()>& done) override { return network_.run_until(done, std::chrono::minutes(1)); }

 private:
  loopback::network network_{1};
};

}  // namespace

std::unique_ptr<network> loopback_network() { return std::make_unique<imagined>(); }

}  // namespace wires
