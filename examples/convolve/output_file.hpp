// What this file is for: a result that appears under its name complete, or not at all.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <string>

#include "input_error.hpp"

namespace convolution {

class output_error : public input_error {
 public:
  using input_error::input_error;
};

/// Throws `output_error` if a file of this name could not be written later. Leaves nothing behind.
void require_writable(const std::string& path);

/// A file that is written beside its destination and renamed onto it by `commit`. Without `commit` the destructor
/// removes it, and an older file of that name stays as it was. An interrupt (SIGINT, SIGTERM, SIGHUP) removes it too.
/// Only one may exist at a time, because a signal handler can know only one name.
class output_file {
 public:
  /// Opens the file, so that a place that cannot be written is known before any work. Throws `output_error`.
  explicit output_file(const std::string& path);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  std::FILE* stream() const { return stream_; }

  /// Flushes, closes and gives the file its name. Throws `output_error`, for example when the disk is full.
  void commit();

 private:
  std::string asked_;        // as the user wrote it, for messages
  std::string destination_;  // with symbolic links followed
  std::string temporary_;    // empty once committed
  std::FILE* stream_ = nullptr;
};

}  // namespace convolution
