// What this file is for: the file in which runtimes keep what they have measured.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several processes may share it: it is written aside and renamed, and who adds to it holds a lock file meanwhile. Nothing
// here is an error: what cannot be read is not there, what cannot be written is measured again.
#pragma once

#include <filesystem>

#include "runtime/costs/cost_file.hpp"

namespace troupe::detail {

class cost_store {
 public:
  /// An empty folder: keeps nothing.
  explicit cost_store(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// What is there and not too old.
  cost_table read(cost_time now) const;
  /// Adds to what is there by now. False: it could not be written.
  bool add(const cost_table& fresh, cost_time now) const noexcept;

  std::filesystem::path file() const { return folder_ / "costs"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace troupe::detail
