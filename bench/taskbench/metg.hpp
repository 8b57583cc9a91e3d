// METG(50 %): the length of a task at which half of the machine does useful work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>

namespace bench {

/// Returns METG(50 %) in microseconds, at most 1,024. `efficiency` runs a graph with bodies of that many microseconds
/// and returns which part of the time of all threads was useful; nothing where the contender cannot run it.
std::optional<double> metg50(const std::function<std::optional<double>(double body_us)>& efficiency);

}  // namespace bench
