// What this file is for: the seam through which actors bind and name their threads.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

namespace troupe::devices {

/// Binds the calling thread to one core; false if the system refuses.
bool bind_this_thread(int core) noexcept;
/// The core that runs the calling thread now; -1 where the system does not say.
int current_cpu() noexcept;
/// The calling thread, for `move_thread_from`; -1 where there is none.
int current_thread() noexcept;
/// Has another thread of this process, which waits for the core `core`, wait for one of the others that it may use;
/// false if it may use no other, or the system refuses. The cores that it may use stay as they are.
bool move_thread_from(int core, int thread) noexcept;
/// Returns the time from when a sleeping thread is called to when it runs: the median of some trials, half a
/// millisecond in all, at the first call in this process. 30 us where the system gives no thread for them. Any thread.
std::chrono::nanoseconds wake_up_time() noexcept;
/// Names the calling thread for debuggers, at most 15 characters.
void name_this_thread(const std::string&) noexcept;
/// The calling thread, and threads and processes that it starts from now on, get a tenth of a core that another thread
/// wants, too. Cannot be undone.
void let_others_pass() noexcept;
/// Throws std::system_error if the system does not give this process so many threads more at this moment. For code that
/// ends the process when it gets none.
void try_threads(int count);

}  // namespace troupe::devices
