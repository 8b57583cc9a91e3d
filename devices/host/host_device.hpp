// What this file is for: the device that is this machine's own memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "devices/device.hpp"

namespace troupe::devices {

/// Thread-safe; copies run on the calling thread.
std::unique_ptr<device> make_host_device();

}  // namespace troupe::devices
