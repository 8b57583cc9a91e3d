// What this file is for: the base of every error that is the caller's to mend (exit code 2, one line on stderr).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace convolution {

/// Wrong input: an argument, a kernel file, a picture or the place for the result. `what()` is one clear sentence.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace convolution
