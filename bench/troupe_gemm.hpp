// Troupe on an accelerator: matrix products and large transfers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contender.hpp"

#include <troupe/troupe.hpp>

#include <string>

namespace bench {

double gemm_on(troupe::runtime&, const std::string& device, const gemm_problem&);
transfer_cost transfer_on(troupe::runtime&, const std::string& device, std::size_t bytes);
out_of_core_cost out_of_core_on(troupe::runtime&, const std::string& device, const out_of_core_problem&);

}  // namespace bench
