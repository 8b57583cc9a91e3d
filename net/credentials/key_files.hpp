// What this file is for: files that hold keys: read only if nobody else can, made so that nobody else ever could.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::net {

/// Text that is overwritten when it is no longer needed. It does not grow, so no copy stays behind.
class secret_text {
 public:
  explicit secret_text(std::size_t size) : bytes_(size) {}
  secret_text(secret_text&& from) noexcept : bytes_(std::move(from.bytes_)) { from.bytes_.clear(); }
  secret_text& operator=(secret_text&&) = delete;
  ~secret_text();

  char* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::vector<char> bytes_;
};

/// The users who may know what a file holds.
enum class readers { owner_only, everybody };

/// All of a regular file of 64 KiB at most. A file for `owner_only` that its group or others may touch is refused.
/// Throws `error(io_failed)` for what cannot be read, `error(bad_argument)` for what is not fit to be read.
secret_text read_key_file(const std::string& path, readers);

/// Makes a file that was not there; what was is left alone. Throws `error(io_failed)`, and leaves no half of it behind.
void write_key_file(const std::string& path, std::string_view text, readers);

}  // namespace troupe::net
