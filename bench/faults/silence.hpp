// Processes that stand still, and networks that do not carry what they should.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "aftermath.hpp"

#include <chrono>

namespace bench {

/// Stopped for two seconds, which is no reason to give it up: from its going on until a task of its ends.
aftermath stop_briefly();
/// Stopped until it is given up, `for_s` seconds in all. More: then until it is taken in again.
aftermath stop_for_long(std::chrono::seconds for_s);

enum class silence {
  both_ways,  ///< nothing gets to it or comes from it
  unheard,    ///< nothing comes from it
  deaf,       ///< nothing gets to it
};
/// Until it is given up, until work flows. More: from healing until it is taken in again.
aftermath partition(silence);
/// Puts one of two workers behind a link of 10 Mbit/s: the longest pause. More: until 800 steps are done.
aftermath slow_link();
/// The connections of the only worker end with a reset every half second: the longest pause.
aftermath resets(int count);
/// Has what goes between the owner and its only worker come late, overtaken by what other connections carry, and twice:
/// the longest time from a connection's end until the tasks first in line had ended.
aftermath late_and_twice(int rounds);

}  // namespace bench
