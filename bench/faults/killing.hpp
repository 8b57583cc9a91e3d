// Processes that end without a word.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"
#include "scene.hpp"

namespace bench {

recovery kill_mid_task();
recovery kill_mid_transfer();
/// Its results are held back on their way when it dies.
recovery kill_unacknowledged();
/// One every two seconds; the worst of all, and what is left over of descriptors and threads.
figures kill_again_and_again(std::chrono::seconds job);
/// And until its successor at the same address is there.
figures restart_at_the_same_address();
/// Until the worker has nothing of it any more.
double owner_dies();
/// Until ten are there, then seven of them killed.
figures a_crowd_comes_and_goes();

/// "owner SECRET JOIN": this program as the owner that is to die.
int own_until_killed(const std::vector<std::string>& words);

}  // namespace bench
