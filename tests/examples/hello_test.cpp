// What this file is for: the first program that a reader sees is the one that is built, and prints what README.md says.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <string>

#include "program.hpp"

namespace {

using troupe_test::bytes_of;

const std::string root = TROUPE_SOURCE_DIR "/";

/// Returns what stands between a line that opens a block and the one that ends it; from `at` on, which is then the end
/// of the latter.
std::string next_block(const std::string& text, const std::string& opening, std::size_t& at) {
  const std::size_t begin = text.find("\n" + opening + "\n", at) + opening.size() + 2, end = text.find("\n```", begin);
  at = end + 4;
  return text.substr(begin, end + 1 - begin);
}

TEST(hello, is_the_program_of_the_readme_and_prints_what_that_says) {
  const std::string readme = bytes_of(root + "README.md"), program = bytes_of(root + "examples/hello.cpp");
  std::size_t at = 0;
  const std::string shown = next_block(readme, "```cpp", at);
  const std::string printed = next_block(readme, "```", at);
  EXPECT_TRUE(program.ends_with(shown)) << shown;
  for (int i = 0; i < 20; ++i) {
    const auto done = troupe_test::run_program("troupe-hello", {});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    ASSERT_EQ(done.out, printed);
  }
}

}  // namespace
