// What this file is for: the program of the system tests, which is also each of the processes that they start.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe-system-tests                                     the tests
//   troupe-system-tests worker NAME SECRET LISTEN|- [JOIN]  works for others, see tests/support/nodes.hpp
//   troupe-system-tests owner NAME SECRET JOIN              gives others work that never ends, says so, and stays
#include <gtest/gtest.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "tests/support/chain_kernels.hpp"
#include "tests/support/nodes.hpp"

namespace {

const troupe::offer offered{test::link_on, test::weigh, test::end_process};

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int own(char** words) {
  troupe::options o = test::node_options(words[2], words[3]);
  o.cluster.join = {words[4]};
  o.cluster.listen = {"127.0.0.1:0"};
  troupe::runtime rt(std::move(o));
  if (!rt.wait_for_nodes(1, std::chrono::seconds(10))) return 1;
  const std::string worker = rt.nodes().front().name;
  const auto a = rt.filled<std::uint64_t>({1 << 20}, troupe::tiles(1 << 14), 1);
  for (std::uint64_t i = 0; i < 40; ++i)
    rt.for_each({.where = troupe::scope::at(worker)}, troupe::grid(1 << 20), test::link_on, troupe::update(a), i,
                std::uint64_t{5'000});
  say("spawned");
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  try {
    if (what == "worker" && count > 4) return test::serve({words + 1, words + count});
    if (what == "owner" && count > 4) return own(words);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
