// The rows about streams.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

namespace bench {

group stream_group(const settings&);

}  // namespace bench
