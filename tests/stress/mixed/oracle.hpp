// What this file is for: runs a plan one operation after the other, on plain memory, without the library.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "observation.hpp"
#include "plan.hpp"

namespace mixed {

/// The outcome that one client must have.
struct expectation {
  std::vector<observation> operations{};
  std::vector<contents> arrays{};
  std::vector<std::vector<word>> borrowed{};  // of arrays that were renewed, in order, with bad ones left out (empty)
};

/// An error in the oracle on purpose, to prove that it shows: two operations of client 0 change places.
struct swapped {
  int first = -1;
};

class oracle {
 public:
  explicit oracle(const plan& p, swapped s = {}) : plan_(p), swapped_(s), common_(static_cast<std::size_t>(p.common)) {}

  /// `seen` are the observations of this client: they decide what chance decides, tasks that are stopped while they may
  /// be running.
  expectation client(std::size_t number, const std::vector<observation>& seen);
  /// The common array, once all clients have been here.
  const std::vector<word>& common() const { return common_; }

 private:
  const plan& plan_;
  swapped swapped_;
  std::vector<word> common_;
};

/// Returns what client `number` adds to element p of the common array by one operation.
word addend(std::uint64_t salt, index at);

}  // namespace mixed
