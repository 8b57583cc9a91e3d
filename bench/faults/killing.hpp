// Processes that end without a word.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "aftermath.hpp"

#include <chrono>

namespace bench {

aftermath kill_mid_task();
aftermath kill_mid_transfer();
/// Its results are held back on their way when it dies.
aftermath kill_unacknowledged();
/// Kills a worker every two seconds; the worst of all. More: how many, and KiB that this process has grown by each.
aftermath kill_again_and_again(std::chrono::seconds job);
/// More: until its successor at the same address is there.
aftermath restart_at_the_same_address();
/// More: until the worker has nothing of it any more.
aftermath owner_dies();
/// Ten come, then seven of them are killed. More: until all had come.
aftermath a_crowd_comes_and_goes();

}  // namespace bench
