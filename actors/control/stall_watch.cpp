// What this file is for: the list of the core groups of this process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/stall_watch.hpp"

#include <mutex>

#include "actors/protocol/executor.hpp"

namespace troupe::detail {

namespace {
struct watched {
  std::mutex lock;
  std::vector<const executor*> groups;
};
// Returns the list, which is never destroyed: a runtime may outlive static objects.
watched& all() {
  static auto* const one = new watched;
  return *one;
}
}  // namespace

void watch_for_stalls(const executor& e) {
  const std::lock_guard hold(all().lock);
  all().groups.push_back(&e);
}

void forget_stalls(const executor& e) {
  const std::lock_guard hold(all().lock);
  std::erase(all().groups, &e);
}

std::vector<std::string> stalled_groups() {
  std::vector<std::string> names;
  const std::lock_guard hold(all().lock);
  for (const executor* e : all().groups)
    if (e->is_stalled()) names.push_back(e->facts().name);
  return names;
}

}  // namespace troupe::detail
