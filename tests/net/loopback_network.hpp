// What this file is for: the loopback network for the suite.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "conformance.hpp"

namespace wires {

std::unique_ptr<network> loopback_network();

}  // namespace wires
