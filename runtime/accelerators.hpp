// What this file is for: the accelerators that a runtime's options name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <troupe/options.hpp>

#include "devices/accelerator.hpp"

namespace troupe::detail {

struct opened_accelerator {
  std::string name;  // of the executor: "sim:0", and "sim:0#1" for the second use of one device
  std::unique_ptr<devices::accelerator> opened;
};

/// Throws error(no_executor) for a device that is not there, error(bad_argument) for names that mean nothing.
std::vector<opened_accelerator> open_accelerators(const std::vector<device_use>&);

}  // namespace troupe::detail
