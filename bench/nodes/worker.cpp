// The program as another node: it offers what the benchmarks have nodes run, and works until its input ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "worker.hpp"

#include "../faults/clocks.hpp"
#include "kernels.hpp"
#include "tests/support/chain_kernels.hpp"
#include "tests/support/nodes.hpp"

#include <dlfcn.h>

namespace bench {

namespace {
const troupe::offer offered{nothing, update_nothing, look_through, step_of_any, test::link_on, test::weigh};
}

std::optional<std::uint64_t> bytes_copied() {
  using counter = std::uint64_t (*)();
  const auto ask = reinterpret_cast<counter>(dlsym(RTLD_DEFAULT, "troupe_bench_copied"));
  return ask == nullptr ? std::nullopt : std::optional(ask());
}

int work_as_node(const std::vector<std::string>& words) {
  return test::serve(words, [](const std::string& line) {
    if (const auto about_clock = answer_about_clock(line)) return *about_clock;
    return line == "copied" ? "copied " + std::to_string(bytes_copied().value_or(0)) : "what?";
  });
}

}  // namespace bench
