// What this file is for: which accelerators this machine offers, and why there are none of a kind.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/scope.hpp>

namespace troupe {

/// The link between host memory and a device: a copy takes the latency, and its bytes at the rate. Zero: unknown.
struct link_info {
  double in_gb_per_s = 0, out_gb_per_s = 0;  ///< to the device, and back
  double in_latency_us = 0, out_latency_us = 0;
};

/// The direct way from another device's memory to this one's; without one, data goes through host memory.
struct peer_link {
  std::string from;     ///< "cuda:1"
  double gb_per_s = 0;  ///< zero: unknown
  double latency_us = 0;
};

/// One accelerator, as `options::devices` names it.
struct device_info {
  std::string name;    ///< "cuda:0"
  std::string model;   ///< what the vendor calls it
  std::string driver;  ///< versions, for people
  device_kind kind = device_kind::sim;
  std::uint64_t memory_bytes = 0;
  int compute_units = 0;
  int lanes = 0;  ///< kernels side by side, unless `device_use::lanes` says otherwise
  link_info link;
  std::vector<peer_link> peers;
};

/// All accelerators of one kind.
struct device_listing {
  device_kind kind = device_kind::sim;
  std::string kind_name;  ///< "cuda"
  std::string remark;     ///< why there are none, or what else is to be known; may be empty
  std::vector<device_info> devices;
};

/// The cores of this process as a runtime would use them: one group, `cpu:0`. Its memory is the machine's.
device_info describe_host();

/// Options of `list_devices`.
struct listing_options {
  /// Measures links that have not been measured before: 50 ms for each device and 20 ms for each pair of devices that
  /// reach each other. Off: such links are unknown.
  bool measure = false;
  /// As `options::cost_cache`. "none": no earlier measurements are used.
  std::string cost_cache{};
  /// As `options::plugin_folders`.
  std::vector<std::string> plugin_folders{};
};

/// Looks for accelerators of every kind. Opens vendors' runtimes, which may take seconds; keeps nothing open.
/// Thread-safe.
std::vector<device_listing> list_devices(const listing_options& = {});

}  // namespace troupe
