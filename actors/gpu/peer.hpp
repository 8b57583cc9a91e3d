// What this file is for: another device, as the actor of a device that copies from its memory knows it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "actors/protocol/memory_space.hpp"
#include "devices/accelerator.hpp"

namespace troupe::detail {

struct gpu_peer {
  memory_space space = host_space;
  std::string name;  // of its executor
  devices::accelerator_facts facts;
};

}  // namespace troupe::detail
