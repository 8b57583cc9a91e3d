// What this file is for: what a runtime knows of its hardware from earlier ones, and leaves to later ones.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/logic/scheduling/cost_model.hpp"
#include "devices/accelerator.hpp"
#include "runtime/costs/cost_store.hpp"

namespace troupe::detail {

/// Costs kept between runtimes. One thread at a time.
class known_costs {
 public:
  /// `where`: options::cost_cache, not "none". `threads`: number of this runtime's cores.
  known_costs(const std::string& where, int threads);

  /// Returns the link speeds of a device that this runtime has open: the kept ones, else, if `measure`, those measured
  /// now. Throws what the device throws.
  std::optional<devices::link_speeds> links_of(devices::accelerator&, bool measure);
  /// Returns the name under which the device's links are kept.
  std::string key_of(const devices::accelerator&) const;
  /// Corrects a device's links by what transfers have shown since; kept if they are faster than was believed.
  void correct(const std::string& key, const devices::link_speeds& learned);
  /// Returns, as links_of does, the speeds between two devices that are connected: into the first one, and into the
  /// second.
  std::optional<devices::link_speeds> peers_of(devices::accelerator&, devices::accelerator&, bool measure);
  /// Returns run times on the cores and on the devices that links_of was asked about.
  std::vector<logic::remembered_time> times() const;
  void keep(const std::vector<logic::remembered_time>&) const;

 private:
  std::optional<devices::link_speeds> known_or(const std::string& hardware, bool measure,
                                               const std::function<devices::link_speeds()>& how);
  std::uint64_t hardware_of(device_kind) const;
  void keep(link_cost);

  cost_store store_;
  cost_table table_;
  std::string processor_;
  std::map<device_kind, std::set<std::string>> hardware_;  // all devices of one kind share their times
};

}  // namespace troupe::detail
