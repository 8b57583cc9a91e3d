// What this file is for: how long a peer takes to answer: the median of the last few times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace troupe::logic {

class round_trips {
 public:
  static constexpr std::size_t window = 15;

  void add(std::chrono::nanoseconds t) {
    last_[next_] = t;
    next_ = (next_ + 1) % window;
    count_ = std::min(count_ + 1, window);
  }
  /// Returns the median, the smaller of two in the middle; 0: none yet. (A mean would keep the cost of a single pause
  /// or reset.)
  std::chrono::nanoseconds median() const {
    if (count_ == 0) return {};
    auto all = last_;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>((count_ - 1) / 2);
    std::nth_element(all.begin(), middle, all.begin() + static_cast<std::ptrdiff_t>(count_));
    return *middle;
  }
  /// Returns the shortest; 0: none yet. A busy machine makes round trips longer, never shorter.
  std::chrono::nanoseconds least() const {
    return count_ == 0 ? std::chrono::nanoseconds{}
                       : *std::min_element(last_.begin(), last_.begin() + static_cast<std::ptrdiff_t>(count_));
  }

 private:
  std::array<std::chrono::nanoseconds, window> last_{};
  std::size_t next_ = 0, count_ = 0;
};

}  // namespace troupe::logic
