// What this file is for: a plugin for `troupe node --plugin`.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels.hpp"

static const troupe::offer offered{scale};
