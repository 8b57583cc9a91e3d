// The rows about what one order of a program costs, and how many cores it feeds.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

namespace bench {

group scheduling_group(const settings&);

}  // namespace bench
