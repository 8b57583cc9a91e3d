// What this file is for: a test in a process of its own, where it needs what no process can be given later.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "tests/support/processes.hpp"

namespace test {

/// Runs the test that runs now once more, in a process of its own with what `how` says, to its end; the test must find
/// out from its environment that it is there. Its failures are those of this test, and so is a skip. Where no such
/// process can be started, the test is skipped: `needs` says what that takes.
inline void run_apart(const child_options& how, const std::string& needs) {
  const auto* about = testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + about->test_suite_name() + "." + about->name();
  finished f;
  try {
    f = run({"/proc/self/exe", filter}, how, std::chrono::seconds(50));
  } catch (const too_late& e) {
    FAIL() << e.what();
  } catch (const std::runtime_error& e) {
    GTEST_SKIP() << needs << ": " << e.what();
  }
  if (f.how == ended_with(0) && f.out.find("[  SKIPPED ]") != f.out.npos) GTEST_SKIP() << f.out;
  // Where the filter finds no test, the program ends well, too.
  EXPECT_TRUE(f.how == ended_with(0) && f.out.find("[  PASSED  ] 1 test.") != f.out.npos) << f.how.text() << "\n"
                                                                                          << f.out << f.err;
}

}  // namespace test
