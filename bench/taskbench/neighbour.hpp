// The rows about graphs in steps beside another process that computes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

namespace bench {

group neighbour_group();

}  // namespace bench
