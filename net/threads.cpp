// What this file is for: the names of the network's threads, by the system's own call.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/threads.hpp"

#include <pthread.h>

namespace troupe::net {

void name_this_thread(const std::string& name) noexcept {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace troupe::net
