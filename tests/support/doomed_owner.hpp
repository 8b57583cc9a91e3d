// What this file is for: an owner that gives others work that never ends, until it is killed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "tests/support/chain_kernels.hpp"
#include "tests/support/nodes.hpp"

namespace test {

/// "owner NAME SECRET JOIN": says "spawned" once it has given the node at that address work, and stays.
inline int own_until_killed(const std::vector<std::string>& words) {
  troupe::options o = node_options(words.at(1), words.at(2));
  o.cluster.join = {words.at(3)};
  o.cluster.listen = {"127.0.0.1:0"};
  troupe::runtime rt(std::move(o));
  if (!rt.wait_for_nodes(1, 10s)) return 1;
  const std::string worker = rt.nodes().front().name;
  const auto a = rt.filled<std::uint64_t>({1 << 20}, troupe::tiles(1 << 14), 1);
  for (std::uint64_t i = 0; i < 40; ++i)
    rt.for_each({.where = scope::at(worker)}, troupe::grid(1 << 20), link_on, troupe::update(a), i,
                std::uint64_t{5'000});
  std::printf("spawned\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}

}  // namespace test
