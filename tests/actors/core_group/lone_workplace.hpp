// What this file is for: what workers of a core group share, without a group and without a runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

#include "actors/core_group/worker.hpp"
#include "actors/memory/runtime_state.hpp"
#include "tests/support/plain_device.hpp"

namespace test {

/// Outlives the workers that are made with `where`.
class lone_workplace {
 public:
  lone_workplace() = default;
  ~lone_workplace() { rt_->release(); }
  lone_workplace(const lone_workplace&) = delete;
  lone_workplace& operator=(const lone_workplace&) = delete;

 private:
  troupe::detail::runtime_state* const rt_ = new troupe::detail::runtime_state;
  troupe::detail::wait_table board_;
  plain_device host_;
  std::atomic<bool> stopping_{false};
  const std::atomic<bool> over_{false};

 public:
  const troupe::detail::workplace where{nullptr, host_, *rt_, board_, "cpu:0", stopping_, over_, 1.0};
};

}  // namespace test
