// What this file is for: the command line of troupe-convolve, checked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "input_error.hpp"

namespace convolution {

class argument_error : public input_error {
 public:
  using input_error::input_error;
};

struct arguments {
  std::string input;
  std::string output;
  std::optional<std::string> kernel;   ///< none: the 31x31 Gaussian
  std::optional<std::string> trace;    ///< Chrome/Perfetto JSON
  std::size_t tile = 64;               ///< pixels along each side
  std::optional<std::size_t> groups;   ///< none: two, or one where there is only one thread
  std::optional<std::size_t> threads;  ///< none: what this process may use
  std::vector<std::string> devices;    ///< accelerators to use as well
  std::size_t nodes = 0;               ///< other nodes of the cluster to wait for
  bool work = false;                   ///< no picture: works for other nodes
  bool raw = false;
  bool verify = false;
  bool quiet = false;
  bool help = false;
  bool version = false;
};

/// Reads the command line. Throws `argument_error` that names the offending word.
arguments parse_arguments(int argc, const char* const* argv);

/// Returns what `--help` prints.
std::string usage();

}  // namespace convolution
