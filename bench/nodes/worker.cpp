// This program as another node: it offers what the benchmarks have nodes run, and works until its input ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "worker.hpp"

#include "kernels.hpp"
#include "tests/support/chain_kernels.hpp"
#include "tests/support/nodes.hpp"

namespace bench {

namespace {
const troupe::offer offered{nothing, update_nothing, look_through, test::link_on, test::weigh};
}

int work_as_node(const std::vector<std::string>& words) { return test::serve(words); }

}  // namespace bench
