// The rows about graphs in steps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

namespace bench {

group taskbench_group(const settings&);

}  // namespace bench
