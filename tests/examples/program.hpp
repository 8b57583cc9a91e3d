// What this file is for: running a built program as a user would, and a folder that vanishes after the test.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace troupe_test {

struct finished_program {
  int exit_code = -1;  ///< 128 + n if signal n ended it
  std::string out;
  std::string err;
};

/// True if the program was built.
bool has_program(const std::string& name);
/// Runs a program of the build's bin folder and waits for it. `input`: the file that it finds at its standard input.
finished_program run_program(const std::string& name, const std::vector<std::string>& arguments,
                             const std::string& input = "/dev/null");
/// The same where no file may grow beyond the given number of 512-byte blocks, as if the disk were full.
finished_program run_program_on_small_disk(int blocks, const std::string& name,
                                           const std::vector<std::string>& arguments);

/// A fresh folder, removed with everything in it.
class scratch_folder {
 public:
  scratch_folder();
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and gives its path.
  std::string put(const std::string& name, const std::string& bytes) const;
  /// The names of everything inside.
  std::set<std::string> names() const;

 private:
  std::filesystem::path path_;
};

std::string bytes_of(const std::string& path);

}  // namespace troupe_test
