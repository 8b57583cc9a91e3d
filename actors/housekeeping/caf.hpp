// What this file is for: the one place that adapts CAF's names, so that the same source builds against 0.17 and later.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <caf/all.hpp>

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
/// `report`, if there is one, and ends the actor with an error.
template <class Self>
void begin(Self* self, std::function<void(const std::string&)> report) {
  self->set_default_handler(caf::drop);
  self->set_down_handler([](caf::down_msg&) {});
  self->set_exception_handler([report](std::exception_ptr& e) -> caf::error {
    std::string text = "unknown";
    try {
      std::rethrow_exception(e);
    } catch (const std::exception& x) {
      text = x.what();
    } catch (...) {
    }
    if (report) report(text);
    return caf::make_error(caf::sec::runtime_error, text);
  });
}

}  // namespace troupe::detail
