// What this file is for: plugins are looked for beside the program, whatever name it was started by.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/detail/plugin_folders.hpp>

#include <gtest/gtest.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace {

TEST(plugin_folders, begin_beside_the_program) {
  const auto beside = std::filesystem::canonical("/proc/self/exe").parent_path();
  const auto all = troupe::detail::plugin_folders();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front(), beside);
}

// As a program that starts itself again does.
TEST(plugin_folders, are_the_same_for_a_program_that_was_started_by_a_link) {
  for (const char* name : {"/proc/self/exe", "a-name-without-a-folder"}) {
    std::string words[] = {name, "--gtest_filter=plugin_folders.begin_beside_the_program"};
    char* argv[] = {words[0].data(), words[1].data(), nullptr};
    pid_t child = -1;
    ASSERT_EQ(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, environ), 0);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << name;
  }
}

}  // namespace
