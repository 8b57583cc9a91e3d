// What this file is for: the command `troupe node`.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <troupe/options.hpp>

namespace troupe::tools {

struct node_command {
  options how;
  std::vector<std::string> plugins;  ///< libraries whose kernels are offered
  std::chrono::seconds drain{30};    ///< for what is under way, and what only this node has, once it is asked to end
};

/// "licence=2"; nothing if it is not of that form.
std::optional<resource> quantity_in(const std::string&);

/// A worker, until SIGTERM or SIGINT. Prints a line for each thing that happens.
int run_node(node_command);

}  // namespace troupe::tools
