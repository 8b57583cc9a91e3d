// What this file is for: how actor systems and actors of CAF are set up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>

#include <caf/all.hpp>

#include "actors/actor.hpp"

namespace troupe::detail {

/// Configures one small thread pool per runtime. The policy and the bounds are set explicitly: the defaults poll, keep
/// at least four threads, and let one actor starve the others.
inline void configure(caf::actor_system_config& c) {
#if CAF_VERSION >= 1800
  c.set("caf.scheduler.policy", "sharing");
  c.set("caf.scheduler.max-threads", std::size_t{1});
  c.set("caf.scheduler.max-throughput", std::size_t{300});
#else
  c.set("scheduler.policy", caf::atom("sharing"));
  c.set("scheduler.max-threads", std::size_t{1});
  c.set("scheduler.max-throughput", std::size_t{300});
#endif
}

/// Sets the handlers that every actor starts with: a library prints nothing, and an exception in a handler is passed to
/// `report` and ends the actor with an error.
template <class Self>
void begin(Self* self, std::function<void(const std::exception_ptr&)> report) {
  self->set_default_handler(caf::drop);
  self->set_down_handler([](caf::down_msg&) {});
  self->set_exception_handler([report](std::exception_ptr& e) -> caf::error {
    report(e);
    return caf::make_error(caf::sec::runtime_error, text_of(e));
  });
}

}  // namespace troupe::detail
