// What this file is for: a folder of a test's own, that ends with it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <string>

namespace test {

class scratch_folder {
 public:
  scratch_folder() {
    const auto* about = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            ("troupe-" + std::to_string(getpid()) + "-" + about->test_suite_name() + "-" + about->name());
    std::filesystem::create_directories(path_);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code failed;
    std::filesystem::remove_all(path_, failed);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace test
