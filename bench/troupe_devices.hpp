// Troupe on an accelerator: the workloads of contender.hpp that need one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contender.hpp"

#include <troupe/troupe.hpp>

#include <string>

namespace bench {

cost launches_on(troupe::runtime&, const std::string& device, std::size_t n);
double round_trip_on(troupe::runtime&, const std::string& device, std::size_t samples);
cost chain_on(troupe::runtime&, const std::string& device, std::size_t n);
cost flow_on(troupe::runtime&, const std::string& device, flow_problem&);
stream_to_hand_cost stream_batches_on(troupe::runtime&, const std::string& device, std::size_t batches);
double traffic_on(troupe::runtime&, const std::string& device, std::size_t calls);
filter_cost filter_on(troupe::runtime&, const std::string& device, filter_problem&, filter_scope, int images);

}  // namespace bench
