// Memory and records that processes hold before a fault and after it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "aftermath.hpp"
#include "tests/support/nodes.hpp"

#include <memory>
#include <vector>

namespace bench {

/// Work on each node, all of it let go of again: what is made when it is first needed is there afterwards. Waits until
/// all know each other and hold nothing. Throws `wrong_answer` for a wrong result.
void work_a_little(troupe::runtime&, const std::vector<std::unique_ptr<test::worker>>&);

/// Keeps no process: where one has died its successor in the same place is looked at.
class ledger {
 public:
  using workers = std::vector<std::unique_ptr<test::worker>>;

  /// After `work_a_little`. Both must outlive it.
  ledger(troupe::runtime&, const workers&);
  /// Waits until nothing is left, 10 s at most.
  [[nodiscard]] leftovers compare() const;

 private:
  [[nodiscard]] std::vector<test::process_facts> facts() const;
  [[nodiscard]] leftovers measure() const;

  troupe::runtime& rt_;
  const workers& workers_;
  std::vector<test::process_facts> before_;
};

}  // namespace bench
