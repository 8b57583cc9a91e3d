// What this file is for: random programs with every kind of call leave what a serial run does; planted errors are seen.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// troupe-mixed is a program of its own, so that a hang or a crash is a result. What fails prints the command that
// repeats it.
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "process.hpp"
#include "tests/support/processes.hpp"

namespace {

using namespace std::chrono_literals;

test::finished mixed(std::vector<std::string> words, std::chrono::milliseconds patience) {
  words.insert(words.begin(), TROUPE_BIN_DIR "/troupe-mixed");
  return test::run(words, {}, patience);
}

// ---- the load -------------------------------------------------------------------------------------------------------

class mixed_load : public testing::TestWithParam<int> {};

TEST_P(mixed_load, leaves_what_the_serial_run_leaves) {
  const auto seen = mixed({"--seed", std::to_string(1 + 1000 * GetParam()), "--seeds", std::to_string(test::rounds(20)),
                           "--threads", std::to_string(GetParam()), "--quiet", "--patience", "20"},
                          test::sanitized ? 280s : 50s);
  EXPECT_EQ(seen.how, test::ended_with(0)) << seen.how.text() << '\n' << seen.out << seen.err;
}

INSTANTIATE_TEST_SUITE_P(threads, mixed_load, testing::Values(1, 2, 4, 16), testing::PrintToStringParamName());

TEST(slow_mixed_load, leaves_what_the_serial_run_leaves_for_five_minutes) {
  const auto seen = mixed({"--seed", "1000000", "--seconds", "300", "--quiet"}, 420s);
  EXPECT_EQ(seen.how, test::ended_with(0)) << seen.how.text() << '\n' << seen.out << seen.err;
}

// ---- that it sees errors --------------------------------------------------------------------------------------------

// A small program of plain tasks: what is to be seen is the error.
const std::vector<std::string> small = {
    "--seed",       "7",  "--threads", "2",
    "--operations", "40", "--without", "nested,cpu_zero,cpu_many,graphs,borrow,overlap,devices",
    "--patience",   "3",  "--quiet"};

test::finished small_with(const std::vector<std::string>& more) {
  std::vector<std::string> words = small;
  words.insert(words.end(), more.begin(), more.end());
  return mixed(words, test::sanitized ? 200s : 50s);
}

struct planted {
  const char* fault;
  int signal;        // 0: it ends with 1
  const char* says;  // among what it prints
};
std::ostream& operator<<(std::ostream& out, const planted& p) { return out << p.fault; }

class a_planted_error : public testing::TestWithParam<planted> {};

TEST_P(a_planted_error, is_reported_with_the_command_that_repeats_it) {
  const auto [fault, signal, says] = GetParam();
  const auto seen = small_with({"--plant", fault});
  const std::string text = seen.out + seen.err;
  // A sanitizer may end a program that crashes in its own way.
  if (signal != 0 && !test::sanitized)
    EXPECT_EQ(seen.how, test::killed_by(signal)) << text;
  else
    EXPECT_NE(seen.how, test::ended_with(0)) << text;
  EXPECT_NE(text.find(says), std::string::npos) << text;
  EXPECT_NE(text.find("--seed 7"), std::string::npos) << text;
}

TEST(mixed_load, without_a_planted_error_says_nothing_of_the_same_program) {
  const auto seen = small_with({});
  EXPECT_EQ(seen.how, test::ended_with(0)) << seen.out << seen.err;
}

INSTANTIATE_TEST_SUITE_P(faults, a_planted_error,
                         testing::Values(planted{"wrong_value", 0, "elements are wrong"},
                                         planted{"lost_update", 0, "elements are wrong"},
                                         planted{"swapped_order", 0, "elements are wrong"},
                                         planted{"greed", 0, "tasks hold"},
                                         planted{"leak", 0, "closures and results live on"},
                                         planted{"hang", SIGABRT, "begun, not ended"},
                                         planted{"lost_future", SIGABRT, "HANG"},
                                         planted{"crash", SIGSEGV, "CRASH"}),
                         [](const auto& one) { return std::string(one.param.fault); });

}  // namespace
