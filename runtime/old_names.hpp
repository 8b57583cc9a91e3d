// What this file is for: names of an earlier release that are deprecated: what is said or asked under them still holds.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/cluster.hpp>
#include <troupe/report.hpp>

namespace troupe::detail {

/// Moves what stands under a deprecated name to the new one, where that is empty.
void take_old_names(cluster_options&);
/// Puts counters under their deprecated names, too.
void fill_old_names(executor_report&);
void fill_old_names(runtime_report&);

}  // namespace troupe::detail
