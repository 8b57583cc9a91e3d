// What this file is for: the accelerators that a runtime's options name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <troupe/options.hpp>

#include "devices/accelerator.hpp"

namespace troupe::detail {

struct found_accelerator {
  std::string name;  // of the executor: "sim:0", and "sim:0#1" for the second use of one device
  device_kind kind;
  int index;         // among devices of its kind
  std::string card;  // devices of one card are slots of it
  int compute_lanes;
  std::chrono::milliseconds deadline;
  std::function<std::unique_ptr<devices::accelerator>()> open;
  std::function<std::unique_ptr<devices::page_pinning>()> pinning;  // for all of its kind; may return null
};

/// Returns the accelerators that the options name, or, if they name none, those of `environment`, a list with commas;
/// null or "": none. Throws error(no_executor) for a device that does not exist, error(bad_argument) for names without
/// a meaning; the error says which of the two lists has them. `plugins`, `check_kernels`: as in the options. `absent`:
/// gets, for each kind that was named and has no device, the reason.
std::vector<found_accelerator> find_accelerators(const std::vector<device_use>& in_options, const char* environment,
                                                 const std::vector<std::string>& plugins, bool check_kernels,
                                                 std::vector<std::string>& absent);

}  // namespace troupe::detail
