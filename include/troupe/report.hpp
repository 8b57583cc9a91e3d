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
  /// Bodies run: each attempt of a task counts, and a run of a recorded graph on cores beside its calls. The first core
  /// group: also those that were run again because a node had gone with what they had made. Nodes: of this runtime's tasks,
  /// as they have told it; they have the same in their own reports, but for an attempt that failed here, for want of memory,
  /// before it was sent. Of what a node had not told when it went, an attempt counts that is known to have begun, or with
  /// which its task ended, as one that threw.
  std::uint64_t tasks = 0;
  std::uint64_t failed = 0;   ///< of these, those that threw, also where a later attempt went well
  std::uint64_t replays = 0;  ///< devices: runs of recorded graphs that were one call of the vendor's
  /// Devices: of the tasks, those that a thread launched itself which waits for one, in `get()` or `wait()`.
  std::uint64_t launched_by_waiters = 0;
  std::uint64_t chained = 0;  ///< devices: kernels enqueued before the tasks whose results they use had finished
  [[deprecated("use launched_by_waiters")]] std::uint64_t by_waiters = 0;
  [[deprecated("use chained")]] std::uint64_t behind = 0;
  std::chrono::nanoseconds busy{};  ///< time in bodies, summed over slots
  std::uint64_t bytes_moved = 0;    ///< copied to assemble windows and to commit pieces; devices: from and to the host
  std::uint64_t bytes_from_peers = 0;    ///< devices: copied here directly from the memory of others
  std::uint64_t bytes_out = 0;           ///< devices: of these, from the device to the host
  std::uint64_t memory_bytes = 0;        ///< devices: of their memory, what may be used (`device_use::memory_bytes`)
  std::uint64_t memory_used_max = 0;     ///< devices: the most that was in use at once
  std::chrono::nanoseconds predicted{};  ///< sum of the cost model's predictions for tasks it had a prediction for
  std::chrono::nanoseconds measured{};   ///< what the same tasks took
};

/// One candidate of a placement decision and its cost terms.
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

/// Where chunks of a `for_each` have run.
struct chunk_place {
  std::string executor;
  std::uint64_t chunks = 0;
};

/// Why a task ran where it did. The future of a `for_each` stands for its chunks, which are placed one by one: of it there is
/// where they have run.
struct explanation {
  std::string task;
  std::string executor;                  ///< where it ran; empty if it has not been placed
  /// All executors in scope, also the losing ones and those that are left out, each once. Find one by its name.
  std::vector<candidate> candidates;
  bool predicted = false;                ///< false: the kernel was unknown and its time a guess
  std::chrono::nanoseconds measured{};   ///< zero if not measured
  std::uint64_t chunks = 0;              ///< of a `for_each`: how many there are
  std::vector<chunk_place> chunks_at{};  ///< of these, those that have ended, by executor
  std::string text() const;              ///< the same as a small table
};

/// What `shutdown` left undone.
struct shutdown_report {
  /// True if nothing was abandoned: no task, and nothing that other nodes had yet to fetch from this one.
  bool complete = true;
  std::uint64_t finished = 0;              ///< tasks finished over the runtime's life, failed ones included
  std::uint64_t queued_abandoned = 0;      ///< never started; their futures report `runtime_stopped`
  std::vector<std::string> still_running;  ///< names of tasks whose body had not returned (at most 64)
};

/// The runtime as a whole.
struct runtime_report {
  /// Tasks, failed ones included: one for each spawn, each chunk of a `for_each` and the future behind them, each access of
  /// the host, each run of a recorded graph.
  std::uint64_t spawned = 0, finished = 0;
  std::uint64_t scheduling_passes = 0;  ///< times that a thread has made scheduling decisions
  [[deprecated("use scheduling_passes")]] std::uint64_t turns = 0;
  std::uint64_t bytes_allocated = 0;                     ///< of host memory, held by arrays now
  std::uint64_t bytes_allocated_max = 0;                 ///< the most there ever was; at most `options::memory_bytes`
  std::uint64_t bytes_pinned = 0;                        ///< of host memory now; at most `options::pinned_bytes_max`
  std::uint64_t bytes_spilled = 0, bytes_read_back = 0;  ///< written to `options::spill_directory`, read from there
  std::uint64_t bytes_on_disk = 0;                       ///< in use there now
  std::uint64_t arrays = 0;                              ///< arrays alive
  std::uint64_t records = 0;  ///< task records in use: unfinished tasks, and finished ones with a live future
  int threads = 0;            ///< threads the runtime has, spare ones included
  /// Nodes that have gone come last, all in one of the name "nodes that have gone", if they had been given something; it has
  /// no slots. A node that comes again under its name begins at 0.
  std::vector<executor_report> executors;
  std::vector<resource> resources_free;
  /// What is not as it was asked for, and no error: a kind of device of which there is none, and why; a kernel that a
  /// device cannot run as it was called, so that others do; an actor that has failed (a device, the disk, a group of
  /// cores, the link with a node), and whether it was restarted or given up. Each once, 64 at most.
  std::vector<std::string> remarks;
};
#pragma GCC diagnostic pop

}  // namespace troupe
