// What this file is for: waiting in tests for what other threads make true, with a limit instead of a hang.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <thread>

namespace test {

/// Looks until it is true; false if it does not become true in time.
template <class F>
[[nodiscard]] bool comes_true(F&& holds, std::chrono::seconds limit = std::chrono::seconds(30)) {
  for (const auto end = std::chrono::steady_clock::now() + limit; !holds(); std::this_thread::yield())
    if (std::chrono::steady_clock::now() > end) return false;
  return true;
}

}  // namespace test
