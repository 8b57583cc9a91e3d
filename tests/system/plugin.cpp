// What this file is for: the kernels of the system tests as a plugin of `troupe node`.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/chain_kernels.hpp"

namespace {
const troupe::offer offered{test::link_on, test::weigh, test::mix_in, test::end_process};
}
