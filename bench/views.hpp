// The rows about elements that are read through views, beside pointers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "harness.hpp"

namespace bench {

group views_group();

}  // namespace bench
