// What this file is for: where the system gives few threads a runtime says so, and leaves nothing behind.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

std::size_t threads_of(const std::string& process) {
  std::error_code gone;
  std::size_t n = 0;
  for (const auto& t : std::filesystem::directory_iterator("/proc/" + process + "/task", gone)) n += !t.path().empty();
  return n;
}

// Returns the threads of all processes of this user.
std::size_t threads_of_user() {
  std::size_t n = 0;
  for (const auto& p : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(p.path() / "status");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("Uid:") && line.find('\t' + std::to_string(::getuid()) + '\t') != std::string::npos)
        n += threads_of(p.path().filename());
  }
  return n;
}

// A thread that has been joined is seen for a moment longer.
bool come_down_to(std::size_t threads) {
  const auto give_up = std::chrono::steady_clock::now() + test::patience;
  while (threads_of("self") > threads) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

// Limits do not hold for root, so that it becomes a user that has no other process: no other test beside it either.
[[noreturn]] void try_each_limit(const troupe::options& o, int most) {
  if (::getuid() == 0 && ::setuid(static_cast<uid_t>(1'000'000 + ::getpid())) != 0) std::_Exit(3);
  const auto fail = [](int more, const char* what) {
    std::fprintf(stderr, "with %d threads more: %s\n", more, what);
    std::_Exit(1);
  };
  bool worked = false;
  std::thread([] {}).join();  // a sanitizer starts one of its own with the first
  std::size_t before = threads_of("self");
  for (int more = 0; more <= most && !worked; ++more) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_cur = threads_of_user() + static_cast<rlim_t>(more);
    if (::setrlimit(RLIMIT_NPROC, &limit) != 0) fail(more, "the limit cannot be set");
    try {
      troupe::runtime rt(o);
      worked = true;
      if (rt.spawn([] { return 5; }).get() != 5) fail(more, "a task gives something else");
    } catch (const troupe::error& e) {
      if (o.devices.empty() && e.code() != troupe::errc::no_resource) fail(more, e.what());  // a device words it itself
    } catch (const std::exception& e) {
      fail(more, e.what());
    }
    if (!come_down_to(before)) fail(more, "threads are left");
  }
  if (!worked) fail(most, "it never worked");
  std::_Exit(0);
}

class few_threads : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // anew, since this process has threads
  }
};

TEST_F(few_threads, a_runtime_starts_or_says_that_there_are_too_few) {
  EXPECT_EXIT(try_each_limit({.threads = 3}, 40), testing::ExitedWithCode(0), "");
}

TEST_F(few_threads, a_runtime_with_devices_and_a_disk_starts_or_says_that_there_are_too_few) {
  troupe::options o{.threads = 2, .core_groups = 2};
  o.devices = {{.name = "sim:0"}};
  o.cost_cache = "none";
  o.memory_bytes = 64 << 20;
  o.spill_directory = std::filesystem::temp_directory_path();
  EXPECT_EXIT(try_each_limit(o, 80), testing::ExitedWithCode(0), "");
}

TEST_F(few_threads, a_node_starts_or_says_that_there_are_too_few) {
  troupe::options o{.threads = 1};
  o.cluster.cluster_name = "few";
  o.cluster.listen = {"127.0.0.1:0"};
  o.cluster.join = {"127.0.0.1:1"};
  o.cluster.insecure_loopback = true;
  EXPECT_EXIT(try_each_limit(o, 40), testing::ExitedWithCode(0), "");
}

}  // namespace
