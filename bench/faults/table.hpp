// The faults of a run as one line each.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

#include <ostream>
#include <vector>

namespace bench {

/// The worst of all turns in each column; `rows` are those of faults, as they were measured.
void print_faults(std::ostream&, const std::vector<row_result>& rows);

}  // namespace bench
