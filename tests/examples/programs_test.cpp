// What this file is for: what every program that the build makes for users says of itself, and how it refuses what it
// does not know.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <troupe/version.hpp>

#include "program.hpp"

namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;
using troupe_test::run_program;

// The examples, the tools, the benchmark and the random load, as CMake knows them. All but the README's first program,
// whose text is shown there as a whole: it takes no words.
std::vector<std::string> programs() {
  std::vector<std::string> all;
  const std::string names = TROUPE_PROGRAMS;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(':', begin), names.size());
    if (const std::string name = names.substr(begin, end - begin); name != "troupe-hello") all.push_back(name);
    begin = end + 1;
  }
  return all;
}

TEST(programs, are_all_in_the_list) {
  for (const char* name : {"troupe", "troupe-mixed", "troupe-life", "troupe-two_nodes", "troupe-convolve"})
    EXPECT_THAT(programs(), testing::Contains(name));
  EXPECT_THAT(programs(), testing::Contains("troupe-bench").Times(TROUPE_BENCH_IS_BUILT));
}

TEST(programs, say_what_they_take) {
  for (const std::string& program : programs())
    for (const char* word : {"--help", "-h"}) {
      const auto done = run_program(program, {word});
      EXPECT_EQ(done.exit_code, 0) << program << ": " << done.err;
      EXPECT_THAT(done.err, IsEmpty()) << program;
      EXPECT_THAT(done.out, HasSubstr(program)) << program;
      EXPECT_THAT(done.out, testing::AnyOf(StartsWith("usage: "), HasSubstr("Usage: "))) << program;
    }
}

TEST(programs, say_which_version_they_are) {
  EXPECT_THAT(troupe::version(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  for (const std::string& program : programs()) {
    const auto done = run_program(program, {"--version"});
    EXPECT_EQ(done.exit_code, 0) << program << ": " << done.err;
    EXPECT_EQ(done.out, program + " " + troupe::version() + "\n");
    EXPECT_THAT(done.err, IsEmpty()) << program;
  }
}

TEST(programs, refuse_what_they_do_not_know) {
  for (const std::string& program : programs())
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--no-such-thing"}, {"-q"}, {"--no-such-thing", "1"}}) {
      const auto done = run_program(program, words);
      EXPECT_EQ(done.exit_code, 2) << program << ": " << done.err;
      EXPECT_THAT(done.out, IsEmpty()) << program;
      EXPECT_THAT(done.err, StartsWith(program + ": ")) << program;
      EXPECT_THAT(done.err, testing::AnyOf(HasSubstr(words[0]), HasSubstr("usage: "))) << program;
    }
}

}  // namespace
