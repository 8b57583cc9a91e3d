// What this file is for: one trial: a plan carried out by threads and by the oracle, and what differs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "plan.hpp"
#include "session.hpp"

namespace mixed {

struct trial_options {
  planted fault = planted::nothing;
  std::chrono::seconds patience{60};  // of the watchdog
  std::string replay{};               // the command that repeats it
  std::size_t complaints_max = 12;
};

/// Returns what was found wrong, in words; empty: nothing. Does not return if nothing moves any more.
std::vector<std::string> try_plan(const plan&, const trial_options&);

}  // namespace mixed
