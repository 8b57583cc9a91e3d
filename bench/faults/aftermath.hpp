// The cost of a fault, and what is left of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

#include <optional>

namespace bench {

/// More than before the fault, with as many nodes as then and nothing to do, summed over all processes.
struct leftovers {
  double kib = 0;          ///< that arrays hold; one that holds nothing counts 1
  double descriptors = 0;  ///< open
  double threads = 0;
  double slots = 0;  ///< with a task, and tasks that are ready or unfinished

  [[nodiscard]] bool is_nothing() const { return kib == 0 && descriptors == 0 && threads == 0 && slots == 0; }
};

/// Times in milliseconds, nothing where a fault has none.
struct aftermath {
  std::optional<double> lost{};      ///< tasks that have not ended, or not well
  std::optional<double> wrong{};     ///< results: a step that is missing, repeated or out of its place
  std::optional<double> detected{};  ///< from the fault until the owner knows
  std::optional<double> flows{};     ///< from then until the tasks that were first in line have ended
  leftovers left{};
  figures more{};  ///< the fault's own, in the order of its rows
};

}  // namespace bench
