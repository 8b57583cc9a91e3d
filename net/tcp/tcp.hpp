// What this file is for: makes the transport that is safe on any network: TCP with TLS 1.3.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "net/bulk_fabric.hpp"
#include "net/transport.hpp"

namespace troupe::net {

/// Two threads, one for control and admission, one for bulk; they run from `start` to `stop`. With a fabric, long
/// bodies go through it, in clear, to and from peers that have the same and are reached by it.
std::unique_ptr<transport> make_tcp(transport_options, std::unique_ptr<bulk_fabric> = nullptr);

}  // namespace troupe::net
