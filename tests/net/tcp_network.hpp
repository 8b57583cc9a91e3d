// What this file is for: TCP on loopback addresses as a network for the suite, with each kind of proof.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "conformance.hpp"

namespace wires {

enum class proof { none, secret, certificates };

std::unique_ptr<network> tcp_network(proof);
/// The same with a cluster secret, and with long bodies through UCX.
std::unique_ptr<network> ucx_network();
/// Why there is none here; empty if there is one.
std::string no_ucx();
/// The secret of that number, always the same.
credentials::secret_bytes secret(std::uint8_t);
/// Asks `done` again and again, for a minute.
bool in_time(const std::function<bool()>& done);

}  // namespace wires
