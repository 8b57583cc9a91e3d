// Processes that stand still, and networks that do not carry what they should.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"
#include "scene.hpp"

namespace bench {

/// Stopped for two seconds, which is no reason to give it up: from its going on until a task of its ends.
figures stop_briefly();
/// Stopped until it is given up, `for_s` seconds in all; then until it is taken in again.
figures stop_for_long(std::chrono::seconds for_s);

enum class silence {
  both_ways,  ///< nothing gets to it or comes from it
  unheard,    ///< nothing comes from it
  deaf,       ///< nothing gets to it
};
/// Until it is given up, until work flows, and from healing until it is taken in again.
figures partition(silence);
/// One of two workers is behind a link of 10 Mbit/s: the longest pause, and until 800 steps are done.
figures slow_link();
/// The connections of the only worker end with a reset every half second: the longest pause.
figures resets(int count);

}  // namespace bench
