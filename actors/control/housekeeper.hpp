// What this file is for: the housekeeper: timers, and memory that is given back after idle times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "actors/control/caf.hpp"
#include "actors/control/control.hpp"

namespace troupe::detail {

struct executors_idle {};
struct ring_later {};
struct ring_now {};
struct tidy_up {  // to itself
  std::uint64_t seen = 0;
  std::chrono::milliseconds delay{};
};

/// Idle time before `tidy` is called. If some memory is still in use, the time doubles, up to the maximum.
inline constexpr std::chrono::milliseconds idle_before_tidying{200}, tidying_delay_max{5'000};

/// Delays that were asked for and not yet begun. Any thread.
class delay_desk {
 public:
  void add(std::chrono::milliseconds d) {
    std::lock_guard hold(lock_);
    all_.push_back(d);
  }
  std::vector<std::chrono::milliseconds> take() {
    std::lock_guard hold(lock_);
    return std::exchange(all_, {});
  }

 private:
  std::mutex lock_;
  std::vector<std::chrono::milliseconds> all_;
};

/// Takes executors_idle and ring_later; sends tidy_up and ring_now to itself, delayed. An exception of what it calls
/// goes to `failed`, and ends it. Options and desk outlive it.
caf::actor spawn_housekeeper(caf::actor_system&, const control_options&, delay_desk&, failure_sink failed);

}  // namespace troupe::detail

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::executors_idle)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::ring_later)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::ring_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::tidy_up)
