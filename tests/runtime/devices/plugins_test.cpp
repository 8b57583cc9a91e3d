// What this file is for: every plugin that was built can be loaded, whatever hardware there is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <troupe/devices.hpp>

#include "devices/gpu/gpu.hpp"
#include "devices/opencl/opencl.hpp"

namespace {

constexpr const char* variable = "TROUPE_TEST_PLUGIN";

std::vector<std::filesystem::path> built() {
  std::vector<std::filesystem::path> all;
  std::istringstream list(TROUPE_TEST_PLUGINS);  // separated by ':'
  for (std::string file; std::getline(list, file, ':');)
    if (!file.empty()) all.emplace_back(file);
  return all;
}

bool is_built(const std::string& name) {
  for (const auto& file : built())
    if (file.filename() == name) return true;
  return false;
}

// In a process of its own, since not all of what they bring can live together.
TEST(plugins, DISABLED_loads_the_one_that_the_environment_names) {
  const char* const file = std::getenv(variable);
  ASSERT_NE(file, nullptr);
  EXPECT_NE(::dlopen(file, RTLD_NOW | RTLD_LOCAL), nullptr) << ::dlerror();
}

TEST(plugins, that_were_built_load_with_all_their_symbols) {
  // UCX is told to leave the C library's code alone, as the runtime tells it: it would write over a sanitizer's.
  ASSERT_EQ(::setenv("UCX_MEM_EVENTS", "no", 1), 0);
  for (const auto& file : built()) {
    ASSERT_TRUE(std::filesystem::exists(file)) << file;
    ASSERT_EQ(::setenv(variable, file.c_str(), 1), 0);
    std::string words[] = {"plugins", "--gtest_also_run_disabled_tests",
                           "--gtest_filter=plugins.DISABLED_loads_the_one_that_the_environment_names"};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t child = -1;
    ASSERT_EQ(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, environ), 0);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << file << " does not load: see above";
  }
  ::unsetenv(variable);
  ::unsetenv("UCX_MEM_EVENTS");
}

// "No plugin" would hide for ever that one is dead.
TEST(plugins, that_were_built_say_what_devices_there_are) {
  const auto expect_found = [](const std::string& file, const troupe::devices::accelerator_source& source) {
    if (!is_built(file)) return;
    EXPECT_EQ(source.remark().find("no plugin"), std::string::npos) << file << ": " << source.remark();
    if (source.count() == 0) {
      EXPECT_EQ(source.remark().substr(0, 3), "no ") << source.remark();
    }
  };
  expect_found("libtroupe_hip.so", *troupe::devices::make_hip_source());
  expect_found("libtroupe_opencl.so", *troupe::devices::make_opencl_source());
}

}  // namespace
