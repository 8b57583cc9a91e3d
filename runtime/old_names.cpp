// What this file is for: deprecated members are read and filled.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/old_names.hpp"

#include <utility>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace troupe::detail {

void take_old_names(cluster_options& o) {
  const auto take = [](auto& now, auto& before) {
    if (now.empty()) now = std::exchange(before, {});
  };
  take(o.cluster_name, o.name);
  take(o.node_name, o.node);
  take(o.join_dns, o.join_names);
}

void fill_old_names(executor_report& r) {
  r.by_waiters = r.launched_by_waiters;
  r.behind = r.chained;
}

void fill_old_names(runtime_report& r) {
  r.turns = r.scheduling_passes;
  for (executor_report& e : r.executors) fill_old_names(e);
}

}  // namespace troupe::detail
