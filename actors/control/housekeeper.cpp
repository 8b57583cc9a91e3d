// What this file is for: the housekeeper: timers, and memory that is given back after idle times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/housekeeper.hpp"

#include <algorithm>
#include <utility>

namespace troupe::detail {

namespace {

struct housekeeper_state {
  std::uint64_t idles = 0;
};

caf::behavior housekeeper(caf::stateful_actor<housekeeper_state>* self, const control_options* o, delay_desk* delays,
                          failure_sink failed) {
  begin(self, std::move(failed));
  return {
      [=](executors_idle) {
        // Only the last of a series of short idle times is followed by tidying.
        self->delayed_send(self, idle_before_tidying, tidy_up{++self->state.idles, idle_before_tidying});
      },
      [=](const tidy_up& m) {
        if (m.seen != self->state.idles || o->tidy()) return;
        const auto next = std::min(2 * m.delay, tidying_delay_max);
        self->delayed_send(self, next, tidy_up{m.seen, next});
      },
      [=](ring_later) {
        for (const std::chrono::milliseconds d : delays->take()) self->delayed_send(self, d, ring_now{});
      },
      [=](ring_now) { o->ring(); },
  };
}

}  // namespace

caf::actor spawn_housekeeper(caf::actor_system& s, const control_options& o, delay_desk& delays, failure_sink failed) {
  return s.spawn(housekeeper, &o, &delays, std::move(failed));
}

}  // namespace troupe::detail
