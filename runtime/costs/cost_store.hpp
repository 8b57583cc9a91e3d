// What this file is for: the file in which runtimes keep what they have measured.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several processes may share the file: it is written aside and renamed, and a process that adds to it holds a lock
// file meanwhile. Nothing here is an error: a file that cannot be read counts as empty, and measurements that cannot be
// written are made again.
#pragma once

#include <filesystem>

#include "runtime/costs/cost_file.hpp"

namespace troupe::detail {

class cost_store {
 public:
  /// Opens the store in a folder; one with an empty path keeps nothing.
  explicit cost_store(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Returns the entries that are not too old.
  cost_table read(cost_time now) const;
  /// Adds to the entries in the file by now. False: the file could not be written.
  bool add(const cost_table& fresh, cost_time now) const noexcept;

  std::filesystem::path file() const { return folder_ / "costs"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace troupe::detail
