// What this file is for: which accelerators this machine offers, and why there are none of a kind.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/scope.hpp>

namespace troupe {

/// One accelerator, as `options::devices` names it.
struct device_info {
  std::string name;    ///< "cuda:0"
  std::string model;   ///< what the vendor calls it
  std::string driver;  ///< versions, for people
  device_kind kind = device_kind::sim;
  std::uint64_t memory_bytes = 0;
  int compute_units = 0;
};

/// All of one kind.
struct device_listing {
  device_kind kind = device_kind::sim;
  std::string kind_name;  ///< "cuda"
  std::string remark;     ///< why there are none, or what else is to be known; may be empty
  std::vector<device_info> devices;
};

/// Looks for accelerators of every kind. Opens vendors' runtimes, which may take seconds; keeps nothing open. Thread-safe.
std::vector<device_listing> list_devices();

}  // namespace troupe
