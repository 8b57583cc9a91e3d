// What this file is for: the programs with --devices: the same answers, the device at work, names that mean nothing.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "program.hpp"

namespace {

using troupe_test::run_program;

// As on a machine that has never run the programs: nobody knows yet that the software GPU is the slower one, which is
// tried out however little there is to do.
class first_time {
 public:
  first_time() : before_(std::getenv("XDG_CACHE_HOME") ? std::getenv("XDG_CACHE_HOME") : "") {
    setenv("XDG_CACHE_HOME", (folder_ / "").c_str(), 1);
    setenv("TROUPE_EAGER_DEVICES", "1", 1);
  }
  first_time(const first_time&) = delete;
  first_time& operator=(const first_time&) = delete;
  ~first_time() {
    unsetenv("TROUPE_EAGER_DEVICES");
    if (before_.empty())
      unsetenv("XDG_CACHE_HOME");
    else
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

 private:
  const troupe_test::scratch_folder folder_;
  const std::string before_;
};

// The line of an executor says how many tasks it ran.
int tasks_of(const std::string& out, const std::string& executor) {
  std::istringstream words(out);
  for (std::string line; std::getline(words, line);)
    if (line.rfind(executor, 0) == 0) return std::stoi(line.substr(executor.size()));
  return -1;
}

std::string without_executors(const std::string& out) {
  std::istringstream lines(out);
  std::string rest;
  for (std::string line; std::getline(lines, line);)
    if (line.find("MiB moved") == std::string::npos) rest += line + "\n";
  return rest;
}

TEST(devices_flag, leaves_the_answer_of_life_and_histogram_as_it_is) {
  for (const auto& [name, number] :
       {std::pair<const char*, const char*>{"troupe-life", "7"}, {"troupe-histogram", "400000"}}) {
    const auto plain = run_program(name, {number});
    ASSERT_EQ(plain.exit_code, 0) << plain.err;
    // The tasks are short. Where a busy machine makes the link look slow, it is not worth sending them there.
    int by_device = 0;
    for (int tries = 0; tries < 5 && by_device == 0; ++tries) {
      const first_time here;
      const auto with = run_program(name, {number, "--devices", "sim:0"});
      ASSERT_EQ(with.exit_code, 0) << with.err;
      EXPECT_EQ(without_executors(with.out), plain.out);
      by_device = tasks_of(with.out, "sim:0");
    }
    EXPECT_GT(by_device, 0) << name;
  }
}

TEST(devices_flag, gives_cholesky_a_part_on_the_device_and_the_factor_is_right) {
  if (!troupe_test::has_program("troupe-cholesky")) GTEST_SKIP() << "troupe-cholesky is not built without OpenBLAS";
  const first_time here;
  const auto done = run_program("troupe-cholesky", {"--devices", "sim:0", "300", "64"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find(": right"), std::string::npos) << done.out;
  EXPECT_GT(tasks_of(done.out, "sim:0"), 0) << done.out;
}

TEST(devices_flag, is_refused_in_one_line_where_it_names_nothing) {
  for (const char* program : {"troupe-life", "troupe-histogram", "troupe-cholesky"}) {
    if (!troupe_test::has_program(program)) continue;
    const auto refused = [&](const std::vector<std::string>& words, const std::string& reason) {
      const auto done = run_program(program, words);
      EXPECT_EQ(done.exit_code, 2) << done.err;
      EXPECT_EQ(done.out, "");
      EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
      EXPECT_EQ(done.err.rfind(std::string(program) + ": ", 0), 0u) << done.err;
      EXPECT_NE(done.err.find(reason), std::string::npos) << done.err;
    };
    refused({"--devices", "toaster"}, "'toaster' is no kind of device");
    refused({"--devices", "sim:99"}, "there is no sim:99");
    refused({"--devices", "sim,,sim"}, "separated by commas, not 'sim,,sim'");
    refused({"--devices"}, "--devices needs a value");
    refused({"many"}, "usage: ");
    refused({"-1"}, "usage: ");
    refused({"1", "2", "3"}, "usage: ");
  }
}

}  // namespace
