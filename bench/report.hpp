// The report of a run: the table on a terminal, the rows as JSON, and which machine it was.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "harness.hpp"

#include <ostream>
#include <string>
#include <vector>

namespace bench {

struct machine {
  std::string cpu;
  unsigned cores = 0;  ///< that this process may use
  std::string kernel;
  std::string date;    ///< UTC, to the second
  std::string commit;  ///< of the working tree this program was built in, else "unknown"

  [[nodiscard]] static machine here();
  [[nodiscard]] std::string line() const;
};

unsigned usable_cores();

/// How much of the machine other processes took since construction: a table measured beside a build proves little.
class disturbance {
 public:
  disturbance();
  /// Percent of all cores of the machine.
  [[nodiscard]] double percent() const;

 private:
  double all_busy_;
  double ours_;
  double wall_;
};

/// Prints one block per row: troupe first, then each peer; `ratio` is how many times better troupe is.
void print_table(std::ostream&, const std::vector<row_result>&);

void write_json(std::ostream&, const machine&, double others_percent, const std::vector<row_result>&);

}  // namespace bench
