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

/// One thread at a time.
class known_costs {
 public:
  /// `where`: options::cost_cache, not "none". `threads`: of this runtime's cores.
  known_costs(const std::string& where, int threads);

  /// The links of a device that this runtime has open: as they were, else, if `measure`, as they are now. Throws what
  /// the device throws.
  std::optional<devices::link_speeds> links_of(devices::accelerator&, bool measure);
  /// Under which name they are kept.
  std::string key_of(const devices::accelerator&) const;
  /// What transfers have shown of a device's links since; kept if they are faster than was thought.
  void correct(const std::string& key, const devices::link_speeds& learned);
  /// The same between two devices that are connected: into the first one, and into the second.
  std::optional<devices::link_speeds> peers_of(devices::accelerator&, devices::accelerator&, bool measure);
  /// Run times on the cores and on the devices that links_of was asked about.
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
  std::map<device_kind, std::set<std::string>> hardware_;  // all of one kind share their times
};

}  // namespace troupe::detail
