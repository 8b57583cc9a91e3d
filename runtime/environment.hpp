// What this file is for: what a runtime has around it, so that many can live in one thread and in imagined time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "actors/core_group/core_group.hpp"
#include "actors/protocol/clock.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// Parts of the world that a runtime uses. Empty members: the machine's. A simulation provides all that it has need of.
struct runtime_environment {
  runtime_clock clock{};
  /// Returns the CPU quota of this process, in cores; 0: there is none.
  std::function<double()> core_quota{};
  /// Makes a core group; the runtime then has no background services: no traces, and idle memory is kept.
  std::function<std::shared_ptr<core_group>(core_group_options, placement&, wait_table&, runtime_state&)> make_cores{};
  std::function<std::unique_ptr<net::transport>(net::transport_options)> make_transport{};
  std::function<net::node_id()> make_id{};
  /// Calls the function back after that time.
  std::function<void(std::chrono::milliseconds, std::function<void()>)> call_later{};
  /// Carries out long work; see placement::use_for_long_work.
  std::function<void(std::function<void()>)> long_work{};
  /// Lets time pass for a waiting thread until the condition is true; false: it will not become true.
  std::function<bool(const std::function<bool()>&)> wait{};
};

}  // namespace troupe::detail
