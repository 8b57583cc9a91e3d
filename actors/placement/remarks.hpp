// What this file is for: what users are told in reports that is no error: why something runs elsewhere, or not as fast.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace troupe::detail {

/// Texts for `runtime_report::remarks`, each once, in the order in which they came. With placement's turn only.
class remarks {
 public:
  /// Texts that are kept; what comes later says nothing that many others have not.
  static constexpr std::size_t most = 64;

  /// Adds a text, unless it is there already or there are many.
  void add(std::string text) {
    if (texts_.size() < most && std::ranges::find(texts_, text) == texts_.end()) texts_.push_back(std::move(text));
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace troupe::detail
