// What this file is for: the actor of one accelerator: copies, kernels and the cache of tiles in its memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --run_tasks--> [queue] --> the actor's thread --lanes--> device
//                                             ^     |                     |
//                                  [bell] ----+     +--report_done        |
//                                     +-------- ticket reached -----------+
//
// The thread that has the device's turn makes all calls to it: the actor's own thread, or while that sleeps, one that
// waits for a task of the device and would only spin (see polling.cpp). The device has several tasks under way at once:
// while one computes, the next one's data comes in and the last one's results go out, on lanes of their own. A task's
// room is reserved as a whole, so two tasks never hold what the other one needs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/actor.hpp"
#include "actors/gpu/lanes.hpp"
#include "actors/gpu/peer.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/protocol/trace.hpp"
#include "devices/accelerator.hpp"

namespace troupe::detail {

class placement;
class wait_table;
struct runtime_state;

struct gpu_options {
  executor_facts facts;
  std::chrono::nanoseconds spin{};
  std::chrono::nanoseconds deadline{};  // a task that takes longer hangs; 0: none does
  bool probes_link = false;             // what its link costs is measured, not guessed
  trace_sink* sink = nullptr;
  int lane = 0;                    // of the trace
  std::weak_ptr<void> keep_alive;  // its thread keeps it alive
  std::string_view gather;         // the kernels that assemble boxes (devices/kernels)
  std::string_view gathers;        // the same from several tiles at once
  std::vector<gpu_peer> peers;     // that the device is connected to, until either of the two fails
  /// Opens the device anew after a failure, on any thread; throws if it cannot be had.
  std::function<std::unique_ptr<devices::accelerator>()> open;
};

class gpu : public executor, public actor {
 public:
  actor_kind kind() const override { return actor_kind::gpu; }
  std::string label() const override { return facts().name; }
  /// Ends once what is under way has ended; does not wait.
  virtual void request_stop() = 0;
  virtual bool wait_ended(std::chrono::steady_clock::time_point) = 0;
  /// Names of the tasks that run now, at most n.
  virtual std::vector<task_record*> running() const = 0;

  // ---- for threads that wait for a task, outside all bodies ---------------------------------------------------------
  /// Does what the device's thread would do next, if that sleeps and it is little. True if something was done.
  virtual bool drive() = 0;
  /// Something was under way at the last look.
  virtual bool busy() const = 0;
  /// Counts the calling thread among those that call `drive`, until it calls `unwatch`.
  virtual void watch() = 0;
  virtual void unwatch() = 0;
};

/// Opens the device.
std::shared_ptr<gpu> make_gpu(gpu_options, placement&, wait_table&, runtime_state&);

}  // namespace troupe::detail
