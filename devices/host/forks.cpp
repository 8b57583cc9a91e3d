// What this file is for: counting forks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/forks.hpp"

#include <pthread.h>

namespace troupe::devices {

constinit std::atomic<unsigned> forks{0};

namespace {
// Without memory for it forks are not noticed; there is nobody to tell.
[[maybe_unused]] const int registered =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
}  // namespace

}  // namespace troupe::devices
