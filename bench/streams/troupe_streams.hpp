// Streams of troupe, for the rows about them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/troupe.hpp>

#include "problem.hpp"

namespace bench {

cost stream_on(troupe::runtime&, stream_problem&);

}  // namespace bench
