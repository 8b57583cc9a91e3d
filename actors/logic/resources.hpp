// What this file is for: named quantities: what exists, what is held, what a task asks for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <troupe/detail/task.hpp>
#include <troupe/options.hpp>

namespace troupe::logic {

/// Exact accounting of named amounts. Pure; owned by placement.
class resources {
 public:
  explicit resources(const std::vector<resource>& configured);

  /// Throws `error(no_resource)` if the request could never be met. "cpu" and "gpu" are not counted here.
  void check(const std::vector<resource>& request) const;
  /// Whether so much exists; of names that are counted.
  bool exists(const std::vector<resource>& request) const;
  /// What part of the scarcest of what is asked would be left; below 0: it cannot be had now.
  double left_after(const std::vector<resource>& request) const;
  /// Takes all or nothing.
  bool take(const std::vector<resource>& request);
  void give(const std::vector<resource>& request);
  const std::vector<resource>& free() const { return free_; }

 private:
  std::vector<resource> total_, free_;
};

/// Whether it asks for more than slots and devices, which are counted elsewhere.
bool asks_for_quantities(const std::vector<resource>& request);
/// How many slots of a core group the request says; the call's word comes before the kernel's.
int slots_of(const std::vector<resource>& request);
/// The same of a task.
inline int slots_needed(const detail::task_record& t) { return t.extra ? slots_of(t.extra->options.resources) : 1; }

}  // namespace troupe::logic
