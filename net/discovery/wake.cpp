// What this file is for: an eventfd beside another descriptor.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/wake.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <troupe/error.hpp>

namespace troupe::net {

wake_up::wake_up() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_ < 0) throw error(errc::io_failed, "no eventfd: " + std::generic_category().message(errno));
}

wake_up::~wake_up() { ::close(event_); }

void wake_up::call() noexcept { ::eventfd_write(event_, 1); }

bool wake_up::wait(std::span<const int> descriptors, std::chrono::nanoseconds most) const {
  pollfd all[] = {{event_, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
  for (std::size_t i = 0; i < descriptors.size() && i < 2; ++i) all[i + 1].fd = descriptors[i];
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(
      std::clamp<std::chrono::nanoseconds>(most, std::chrono::nanoseconds(0), std::chrono::hours(1)));
  ::poll(all, 3, static_cast<int>(ms.count()));  // interrupted: as if the time were over
  return (all[0].revents & POLLIN) != 0;
}

}  // namespace troupe::net
