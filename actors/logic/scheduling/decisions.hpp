// What this file is for: the offers for the latest tasks, to explain why one ran where it did.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by assignment. Remembers a bounded number of choices, and forgets the oldest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/report.hpp>

#include "actors/logic/scheduling/cost_model.hpp"
#include "actors/protocol/executor_facts.hpp"

namespace troupe::logic {

class decisions {
 public:
  explicit decisions(std::size_t kept_max) : kept_max_(kept_max) {}

  /// Notes that the task went to the executor that made the chosen offer.
  void note(std::uint64_t task, std::span<const offer>, std::size_t chosen);
  /// Notes that the task goes to that executor instead.
  void note_move(std::uint64_t task, std::uint16_t executor);
  /// Returns the offers for the task, of each executor the latest, in the order of their numbers; empty if they are
  /// forgotten. A task that was returned and placed again has more than one decision: the latest says what was chosen.
  std::vector<candidate> candidates(std::uint64_t task, std::span<const detail::executor_facts>) const;

 private:
  struct decision {
    std::uint64_t task = 0;
    std::vector<offer> offers;
    std::size_t chosen = 0;
  };

  const std::size_t kept_max_;
  std::vector<decision> kept_;
  std::size_t oldest_ = 0;  // once kept_max_ are kept
};

}  // namespace troupe::logic
