// What this file is for: the program of the system tests, which is also each of the processes that they start.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe-system-tests                                     the tests
//   troupe-system-tests worker NAME SECRET LISTEN|- [JOIN]  works for others, see tests/support/nodes.hpp; with the
//                                                           memory and the spill folder of WORKER_MEMORY and
//                                                           WORKER_SPILL;
//                                                           "clock SECONDS" sets its clock, and says what it shows
//   troupe-system-tests flood PORT COUNT                    keeps so many connections to a port of this host that say
//                                                           nothing or half of a hello; one line for each round
//   troupe-system-tests owner NAME SECRET JOIN              gives others work that never ends, says so, and stays
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "tests/support/chain_kernels.hpp"
#include "tests/support/clock.hpp"
#include "tests/support/doomed_owner.hpp"
#include "tests/support/nodes.hpp"
#include "tests/support/strangers.hpp"

namespace {

const troupe::offer offered{test::link_on, test::weigh, test::mix_in, test::end_process};

std::string answer(const std::string& line) {
  if (!line.starts_with("clock ")) return "what?";
  test::set_clock(std::chrono::seconds(std::stol(line.substr(6))));
  return "clock " + std::to_string(std::time(nullptr));
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const std::vector<std::string> all(words + 1, words + count);
  try {
    if (what == "worker" && count > 4) return test::serve(all, answer);
    if (what == "owner" && count > 4) return test::own_until_killed(all);
    if (what == "flood" && count > 3) return test::flood(all);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
