// What this file is for: the spill file on a real file system: what is written is read, what is full says so.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "devices/host/spill_directory.hpp"

namespace {

using troupe::errc;
using troupe::devices::make_spill_file;

std::vector<std::byte> bytes(std::size_t n, int value) { return std::vector<std::byte>(n, std::byte(value)); }

template <class F>
std::string text_of(F&& f, errc expected) {
  try {
    f();
  } catch (const troupe::error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(expected)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(spill_file, reads_what_was_written_also_with_gaps_and_over_it) {
  const auto file = make_spill_file(testing::TempDir());
  const auto ones = bytes(10'000, 1), twos = bytes(5'000, 2);
  file->write(1 << 20, ones.data(), ones.size());
  file->write((1 << 20) + 2'500, twos.data(), twos.size());
  std::vector<std::byte> back(10'000);
  file->read(1 << 20, back.data(), back.size());
  for (std::size_t i = 0; i < back.size(); ++i)
    ASSERT_EQ(std::to_integer<int>(back[i]), i >= 2'500 && i < 7'500 ? 2 : 1) << i;
}

TEST(spill_file, what_is_discarded_leaves_its_neighbours_as_they_were) {
  const auto file = make_spill_file(testing::TempDir());
  const auto some = bytes(3 * 4096, 7);
  file->write(0, some.data(), some.size());
  file->discard(4096, 4096);
  std::vector<std::byte> back(4096);
  for (const std::uint64_t at : {0u, 8192u}) {
    file->read(at, back.data(), back.size());
    EXPECT_EQ(back, bytes(4096, 7));
  }
}

TEST(spill_file, reading_beyond_the_end_is_an_error_that_names_the_directory) {
  const auto file = make_spill_file(testing::TempDir());
  std::vector<std::byte> back(100);
  const std::string text = text_of([&] { file->read(0, back.data(), back.size()); }, errc::io_failed);
  EXPECT_NE(text.find(testing::TempDir()), std::string::npos) << text;
}

TEST(spill_file, a_file_that_can_grow_no_further_is_a_full_disk_until_it_can) {
  const auto file = make_spill_file(testing::TempDir());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 6'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto some = bytes(4'096, 3);
  file->write(0, some.data(), some.size());
  const std::string text = text_of([&] { file->write(4'096, some.data(), some.size()); }, errc::disk_full);  // in part
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(text.find("4096 bytes"), std::string::npos) << text;
  std::vector<std::byte> back(4'096);
  file->read(0, back.data(), back.size());
  EXPECT_EQ(back, some);
  file->write(4'096, some.data(), some.size());
  file->read(4'096, back.data(), back.size());
  EXPECT_EQ(back, some);
}

TEST(spill_file, leaves_no_name_in_the_directory) {
  const std::filesystem::path where = std::filesystem::path(testing::TempDir()) / "troupe-spill-file-test";
  std::filesystem::create_directory(where);
  {
    const auto file = make_spill_file(where.string());
    EXPECT_TRUE(std::filesystem::is_empty(where));
  }
  std::filesystem::remove(where);
}

TEST(spill_file, a_directory_that_is_missing_or_none_is_an_error_that_names_it) {
  for (const char* wrong : {"/no/such/directory", "/dev/null", ""}) {
    const std::string text = text_of([&] { make_spill_file(wrong); }, errc::io_failed);
    EXPECT_NE(text.find("'" + std::string(wrong) + "'"), std::string::npos) << text;
  }
}

}  // namespace
