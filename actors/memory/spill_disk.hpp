// What this file is for: the actor of the disk: moves tiles between host memory and the spill file.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --move, discard--> [queue] --> the actor's thread --> spill file
//       ^                                        |
//       +--------------report_done---------------+
//
// Orders are carried out as given. Placement decides what moves when; until it is told that a tile has been moved, no
// other thread touches the tile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "actors/actor.hpp"
#include "actors/protocol/trace.hpp"
#include "actors/protocol/wait_table.hpp"
#include "devices/spill_file.hpp"

namespace troupe::detail {

class spill_disk {
 public:
  virtual ~spill_disk() = default;

  /// Has a tile moved: a spill writes it at `offset` and frees its memory, a load allocates memory and reads it. Either
  /// is reported, with its error if it has one: then the tile is where it was. Any thread; never blocks.
  virtual void move(task_record&, std::uint64_t offset) = 0;
  /// Copies bytes from the file, after all orders that were given before; blocks. Throws the disk's errors.
  virtual void read(std::uint64_t offset, std::byte* to, std::size_t bytes) = 0;
  /// Frees a range of the file, whose bytes are not needed any more.
  virtual void discard(std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual std::uint64_t bytes_out() const = 0;
  virtual std::uint64_t bytes_in() const = 0;
};

/// The actor of the disk, with a thread of its own. If that fails, the order that it was at is reported as failed, the
/// others wait for its restart.
class disk_thread : public spill_disk, public actor {
 public:
  /// Throws std::system_error.
  virtual void start() = 0;
  /// Ends the thread after the current order; the rest is reported as failed.
  virtual void request_stop() = 0;
  /// Waits until the thread has ended; false if the deadline passes before.
  virtual bool wait_ended(std::chrono::steady_clock::time_point) = 0;
};

struct disk_options {
  std::unique_ptr<devices::spill_file> file;
  std::function<void(task_record&)> report_done;
  trace_sink* sink = nullptr;
  int lane = 0;                    // in the trace
  std::weak_ptr<void> keep_alive;  // the engine; the thread keeps it alive
};

std::shared_ptr<disk_thread> make_disk(disk_options, wait_table&, runtime_state&);

}  // namespace troupe::detail
