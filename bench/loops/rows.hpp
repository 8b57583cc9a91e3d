// The rows about programs that are loops over all elements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

namespace bench {

group loops_group(const settings&);

}  // namespace bench
