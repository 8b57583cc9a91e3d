// What this file is for: what troupe-convolve tells its user: progress, which executor ran what, and the verdict.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference.hpp"

namespace convolution {

/// Progress on stderr: one line that is redrawn on a terminal, at most ten lines anywhere else.
class progress {
 public:
  explicit progress(bool shown);
  ~progress();  // leaves a terminal's line clean
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// `done` of `total` tiles are finished. Cheap to call when nothing has changed.
  void show(std::uint64_t done, std::uint64_t total);
  /// Says what is being done after the tiles; on a terminal only.
  void say(const std::string& what);

 private:
  bool shown_;
  bool terminal_;
  int tenths_ = 0;
  std::uint64_t drawn_ = ~std::uint64_t{0};
};

/// The share of one executor.
struct executor_share {
  std::string executor;
  std::uint64_t tasks = 0;
  double busy_s = 0;
  std::uint64_t moved_bytes = 0;
  double predicted_s = 0;  ///< what the cost model expected of those tasks for which it had a figure
  double measured_s = 0;   ///< what the same tasks took
};

/// A table of the shares, with a line of sums where there is more than one.
std::string table(const std::vector<executor_share>& shares);

/// Returns one line on how the comparison went.
std::string sentence(const verdict& result);

}  // namespace convolution
