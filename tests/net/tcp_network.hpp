// What this file is for: TCP on loopback addresses as a network for the suite, with each kind of proof.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "conformance.hpp"

namespace wires {

enum class proof { none, secret, certificates };

std::unique_ptr<network> tcp_network(proof);
/// The secret of that number, always the same.
credentials::secret_bytes secret(std::uint8_t);
/// Asks `done` again and again, for a minute.
bool in_time(const std::function<bool()>& done);

}  // namespace wires
