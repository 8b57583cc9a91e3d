// What this file is for: calls of the system for multicast that must not fail, and what is said if they do.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <system_error>

#include <troupe/error.hpp>

namespace troupe::net {

/// Throws `error(io_failed)` with the system's own words.
[[noreturn]] inline void refused(const std::string& what) {
  const int code = errno;
  throw error(errc::io_failed, "multicast: " + what + ": " + std::generic_category().message(code));
}

template <class T>
void set(int socket, int level, int name, const T& value, const char* what) {
  if (::setsockopt(socket, level, name, &value, sizeof value) != 0) refused(what);
}

}  // namespace troupe::net
