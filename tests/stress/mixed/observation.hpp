// What this file is for: what came of an operation: what the player has seen, or what the oracle says.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "arithmetic.hpp"

namespace mixed {

struct observation {
  enum class kind : unsigned char {
    none,       // nobody asked
    value,
    done,       // without a value
    failed,     // a body threw
    poisoned,
    cancelled,
    refused,    // by the call, as it should be
    other,      // an error that nothing explains
  };
  kind what = kind::none;
  word number = 0;     // value
  std::string note{};  // the error's text

  bool is_error() const { return what >= kind::failed && what <= kind::cancelled; }
  std::string text() const {
    constexpr const char* names[] = {"not asked", "value",     "done",    "failed",
                                     "poisoned",  "cancelled", "refused", "other error"};
    std::string s = names[static_cast<int>(what)];
    if (what == kind::value) s += " " + std::to_string(number);
    if (!note.empty()) s += " (" + note + ")";
    return s;
  }
};

/// The contents that are left of an array; `bad` where a reader gets an error.
struct contents {
  std::vector<word> data{};
  std::vector<unsigned char> bad{};
};

}  // namespace mixed
