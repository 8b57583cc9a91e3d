// What this file is for: strangers that connect to a port, many of them, and say nothing or half of a hello.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "tests/support/processes.hpp"

namespace test {

/// "flood PORT COUNT": keeps so many connections to a port of this host; a line for each round, until its input ends.
int flood(const std::vector<std::string>& words);

/// The process of strangers: this program, started again; its `main` hands `flood PORT COUNT` to `flood`.
struct strangers_at {
  strangers_at(const std::string& address, int count)
      : process({"/proc/self/exe", "flood", address.substr(address.rfind(':') + 1), std::to_string(count)}) {}
  /// Until they have all been there once more.
  void come_again() { process.line_after("round "); }
  ending leave() {
    process.end_input();
    return process.wait();
  }

  child process;
};

}  // namespace test
