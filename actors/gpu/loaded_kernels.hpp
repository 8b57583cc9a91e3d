// What this file is for: what a device keeps of the kernels and routines that it has run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include <troupe/detail/task.hpp>

#include "devices/accelerator.hpp"

namespace troupe::detail {

/// Kernels that are loaded, handles that routines keep between calls, and kernels of which was said that the device
/// cannot run them. The device's turn guards it.
class loaded_kernels {
 public:
  bool contains(const kernel_info& k) const { return ids_.contains(&k); }
  /// Returns the kernel's number on the device; `load()` returns it the first time, and what it throws passes through.
  template <class Load>
  devices::kernel_id find(const kernel_info& k, Load&& load) {
    auto known = ids_.find(&k);
    if (known == ids_.end()) known = ids_.emplace(&k, load()).first;
    return known->second;
  }
  /// Returns a routine's handle, which may be set: the same for the same key.
  std::shared_ptr<void>& handle(const void* key) { return handles_[key]; }
  /// Destroys the handles; the device must be there still.
  void drop_handles() { handles_.clear(); }
  /// Forgets the numbers: the device has gone. Handles have been dropped before.
  void forget_loaded() { ids_.clear(); }
  /// Returns true the first time: it is to be said once that the kernel cannot run here.
  bool note_unfit(const kernel_info& k) { return unfit_.insert(&k).second; }

 private:
  std::unordered_map<const kernel_info*, devices::kernel_id> ids_;
  std::map<const void*, std::shared_ptr<void>> handles_;
  std::set<const kernel_info*> unfit_;
};

}  // namespace troupe::detail
