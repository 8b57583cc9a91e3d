// What this file is for: compiled kernels kept on disk, found again by what they were made from.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several processes may share a folder: files are written aside and renamed. Nothing here is an error: what cannot be
// read, or is not whole, is not there; what cannot be written is compiled again next time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::devices::rtc {

class kernel_cache {
 public:
  /// An empty folder: keeps nothing.
  kernel_cache(std::filesystem::path folder, std::uint64_t bytes_max) : folder_(std::move(folder)), max_(bytes_max) {}

  std::optional<std::vector<std::byte>> find(const std::string& key) const;
  void store(const std::string& key, std::span<const std::byte> binary) const noexcept;

  /// The file of a key; for tests.
  std::filesystem::path file(const std::string& key) const { return folder_ / (key + ".kernel"); }

 private:
  void make_room(std::uint64_t bytes) const;

  std::filesystem::path folder_;
  std::uint64_t max_;
};

/// A key for everything that a binary depends on: 32 hexadecimal digits.
std::string key_of(std::span<const std::string_view> parts);

}  // namespace troupe::devices::rtc
