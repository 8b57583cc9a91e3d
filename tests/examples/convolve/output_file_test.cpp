// What this file is for: results that appear whole or not at all.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "examples/convolve/output_file.hpp"

#include <csignal>
#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>

#include "../program.hpp"

namespace {

using convolution::output_error;
using convolution::output_file;
using names = std::set<std::string>;

TEST(output_file, appears_when_it_is_complete) {
  const troupe_test::scratch_folder folder;
  {
    output_file file(folder / "out.png");
    std::fputs("new", file.stream());
    EXPECT_FALSE(folder.names().contains("out.png"));
    file.commit();
    EXPECT_EQ(folder.names(), names{"out.png"});
  }
  EXPECT_EQ(troupe_test::bytes_of(folder / "out.png"), "new");
}

TEST(output_file, leaves_the_older_file_when_given_up) {
  const troupe_test::scratch_folder folder;
  folder.put("out.png", "old");
  {
    output_file file(folder / "out.png");
    std::fputs("new", file.stream());
  }
  EXPECT_EQ(folder.names(), names{"out.png"});
  EXPECT_EQ(troupe_test::bytes_of(folder / "out.png"), "old");
}

TEST(output_file, keeps_the_permissions_of_the_file_it_replaces) {
  namespace fs = std::filesystem;
  const troupe_test::scratch_folder folder;
  const auto mode = fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read;
  fs::permissions(folder.put("out.png", "old"), mode);
  output_file file(folder / "out.png");
  file.commit();
  EXPECT_EQ(fs::status(folder / "out.png").permissions(), mode);
}

TEST(output_file, goes_where_a_symbolic_link_points) {
  const troupe_test::scratch_folder folder;
  folder.put("real.png", "old");
  std::filesystem::create_symlink("real.png", folder / "link.png");
  output_file file(folder / "link.png");
  std::fputs("new", file.stream());
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.png"));
  EXPECT_EQ(troupe_test::bytes_of(folder / "real.png"), "new");
}

TEST(output_file, is_removed_by_an_interrupt) {
  const troupe_test::scratch_folder folder;
  const auto interrupted = [&](int signal) {
    output_file file(folder / "out.png");
    if (folder.names().size() == 1) std::raise(signal);
  };
  EXPECT_EXIT(interrupted(SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(interrupted(SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(folder.names(), names{});
}

TEST(output_file, refuses_a_place_that_cannot_be_written) {
  const troupe_test::scratch_folder folder;
  EXPECT_THROW(output_file(folder / "absent/out.png"), output_error);
  EXPECT_THROW(output_file(folder / "."), output_error);
  EXPECT_EQ(folder.names(), names{});
}

TEST(output_file, asks_whether_a_file_could_be_written_without_a_trace) {
  const troupe_test::scratch_folder folder;
  convolution::require_writable(folder / "run.json");
  EXPECT_EQ(folder.names(), names{});
  EXPECT_THROW(convolution::require_writable(folder / "absent/run.json"), output_error);
}

}  // namespace
