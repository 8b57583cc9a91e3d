// Graphs in steps on cores that are only imagined: how many of them the one order of a program can feed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// One real thread and imagined time. Submission, order, release and retirement are the product; each call of it is
// timed, and takes as long in imagined time, on the thread that would make it. Bodies take what they are said to take.
// Not imagined: what a cache line costs that another core has written last (`order_ns` stands for it), ready queues and
// their locks, sleep and wake-ups.
#pragma once

#include "bench/taskbench/steps.hpp"

namespace bench {

struct imagined_machine {
  int cores = 1;
  double body_ns = 0;   ///< of each task
  double order_ns = 0;  ///< time of turns for each task that is ordered there; 0: as it was measured
};

/// Times are for each task of the later half of the program, in nanoseconds of the machine.
struct imagined_pace {
  double efficiency = 0;  ///< of the time of all cores what was spent in bodies
  double in_turn_ns = 0;  ///< of the threads that take the turn, one at a time
  double submit_ns = 0;   ///< of the thread that submits
  double beside_ns = 0;   ///< of the cores that run bodies, beside these
};

/// Spawns the tasks of the problem, which check their inputs, and runs them. Turns are taken by a thread beside the
/// cores and beside the one that submits. Throws `wrong_answer` if a task is missing, or takes another turn than that.
imagined_pace run_on_imagined_cores(step_problem&, const imagined_machine&);

}  // namespace bench
