// What this file is for: TCP on loopback addresses as a network for the suite, with each kind of proof.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "conformance.hpp"
#include "net/bulk_fabric.hpp"

namespace wires {

enum class proof { none, secret, certificates };

std::unique_ptr<network> tcp_network(proof);
/// The same with a cluster secret, and with long bodies through a fabric, made anew for each node.
std::unique_ptr<network> fabric_network(std::function<std::unique_ptr<bulk_fabric>()> make);
/// UCX, or the test fails.
std::unique_ptr<bulk_fabric> real_ucx();
/// The secret of that number, always the same.
credentials::secret_bytes secret(std::uint8_t);
/// Asks `done` again and again, for a minute.
bool in_time(const std::function<bool()>& done);

}  // namespace wires
