// What this file is for: what a runtime tells about itself: executors, counters, decisions, shutdown.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/options.hpp>
#include <troupe/scope.hpp>

namespace troupe {

// Constructors that the compiler makes name the deprecated members, too: that is no use of them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/// One executor and what it has done since the runtime started. Counters are read while work goes on: each is exact
/// for some moment during the call.
struct executor_report {
  std::string name;  ///< "cpu:0"
  device_kind kind = device_kind::cpu;
  int slots = 0;             ///< tasks it runs at once
  std::uint64_t queued = 0;  ///< tasks that it has been handed and that have not begun
  /// Bodies run. Each attempt of a task counts, and a run of a recorded graph on cores counts beside its calls. For the
  /// first core group also bodies that were repeated because a node had gone with their results. For nodes: bodies of
  /// this runtime's tasks, as the node has reported them; its own report has the same number, except for attempts that
  /// failed here for want of memory before they were sent. If a node goes before it has reported, an attempt counts, as
  /// one that threw, if it is known to have begun or if its task ended with it.
  std::uint64_t tasks = 0;
  std::uint64_t failed = 0;   ///< bodies of these that threw, also if a later attempt succeeded
  std::uint64_t replays = 0;  ///< devices: runs of recorded graphs that were one call of the vendor's
  /// Devices: tasks that were launched by a thread that was waiting in `get()` or `wait()`, not by the device's own
  /// thread.
  std::uint64_t launched_by_waiters = 0;
  std::uint64_t chained = 0;  ///< devices: kernels enqueued before the tasks whose results they use had finished
  [[deprecated("use launched_by_waiters")]] std::uint64_t by_waiters = 0;
  [[deprecated("use chained")]] std::uint64_t behind = 0;
  std::chrono::nanoseconds busy{};       ///< time in bodies, summed over slots
  std::uint64_t bytes_moved = 0;         ///< copied for windows and to commit pieces; devices: from and to the host
  std::uint64_t bytes_from_peers = 0;    ///< devices: copied here directly from the memory of others
  std::uint64_t bytes_out = 0;           ///< devices: of these, from the device to the host
  std::uint64_t memory_bytes = 0;        ///< devices: of their memory, what may be used (`device_use::memory_bytes`)
  std::uint64_t memory_used_max = 0;     ///< devices: the most that was in use at once
  std::chrono::nanoseconds predicted{};  ///< sum of the cost model's predictions for tasks it had a prediction for
  std::chrono::nanoseconds measured{};   ///< what the same tasks took
};

/// A candidate of a placement decision, and its cost terms.
struct candidate {
  std::string executor;
  std::chrono::nanoseconds queue{};     ///< predicted work before it
  std::chrono::nanoseconds transfer{};  ///< to bring what is missing there
  std::chrono::nanoseconds run{};       ///< predicted run time
  std::uint64_t bytes_missing = 0;
  std::uint64_t bytes_from_peers = 0;  ///< of these: directly from other devices, not through host memory
  bool chosen = false;
  std::string left_out{};  ///< why it cannot run the body that there is for its kind, or this call of it; empty: it can
};

/// Number of chunks of a `for_each` that one executor has run.
struct chunk_place {
  std::string executor;
  std::uint64_t chunks = 0;
};

/// An explanation says why a task ran where it did. Chunks of a `for_each` are placed one by one, so for the future of
/// a `for_each` it says where the chunks have run.
struct explanation {
  std::string task;
  std::string executor;  ///< where it ran; empty if it has not been placed
  /// All executors in scope, also the losing ones and those that are left out, each once. Find one by its name.
  std::vector<candidate> candidates;
  bool predicted = false;                ///< false: the kernel was unknown and its time a guess
  std::chrono::nanoseconds measured{};   ///< zero if not measured
  std::uint64_t chunks = 0;              ///< of a `for_each`: how many there are
  std::vector<chunk_place> chunks_at{};  ///< of these, those that have ended, by executor
  std::string text() const;              ///< the same as a small table
};

/// A shutdown report says what `shutdown` left undone.
struct shutdown_report {
  /// True if nothing was abandoned: no task, and nothing that other nodes had yet to fetch from this one.
  bool complete = true;
  std::uint64_t finished = 0;              ///< tasks finished over the runtime's life, failed ones included
  std::uint64_t queued_abandoned = 0;      ///< never started; their futures report `runtime_stopped`
  std::vector<std::string> still_running;  ///< names of tasks whose body had not returned (at most 64)
};

/// The runtime as a whole.
struct runtime_report {
  /// Tasks, failed ones included: one for each spawn, for each chunk of a `for_each` and for the future behind them,
  /// for each access of the host, and for each run of a recorded graph.
  std::uint64_t spawned = 0, finished = 0;
  std::uint64_t scheduling_passes = 0;  ///< times that a thread has made scheduling decisions
  /// Time that these passes have taken, of one thread at a time; that of short ones is estimated from each seventeenth.
  /// As long as it is well below the time that has passed, decisions hold nobody up.
  std::chrono::nanoseconds scheduling_time{0};
  [[deprecated("use scheduling_passes")]] std::uint64_t turns = 0;
  std::uint64_t bytes_allocated = 0;                     ///< of host memory, held by arrays now
  std::uint64_t bytes_allocated_max = 0;                 ///< the most there ever was; at most `options::memory_bytes`
  std::uint64_t bytes_pinned = 0;                        ///< of host memory now; at most `options::pinned_bytes_max`
  std::uint64_t bytes_spilled = 0, bytes_read_back = 0;  ///< written to `options::spill_directory`, read from there
  std::uint64_t bytes_on_disk = 0;                       ///< in use there now
  std::uint64_t arrays = 0;                              ///< arrays alive
  std::uint64_t records = 0;  ///< task records in use: unfinished tasks, and finished ones with a live future
  int threads = 0;            ///< threads the runtime has, spare ones included
  /// Executors. Nodes that have gone are the last entry, "nodes that have gone", all together and without slots, if
  /// they had been given tasks. A node that comes again under its name begins at 0.
  std::vector<executor_report> executors;
  std::vector<resource> resources_free;
  /// Remarks on what deviates from the request without being an error: a kind of device of which there is none, with
  /// the reason; a kernel that a device cannot run as it was called, so that other executors run it; a part of the
  /// runtime that has failed (a device, the disk, a group of cores, the link with a node), and whether it was restarted
  /// or given up. Each once, 64 at most.
  std::vector<std::string> remarks;
};
#pragma GCC diagnostic pop

}  // namespace troupe
