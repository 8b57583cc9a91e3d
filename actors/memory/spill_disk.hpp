// What this file is for: the actor of the disk: moves tiles between host memory and the spill file.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --move, discard--> [queue] --> the actor's thread --> spill file
//       ^                                        |
//       +--------------report_done---------------+
//
// In the order given. Placement decides what moves when; until it is told that a tile has been moved nobody else
// touches it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "actors/memory/record_pool.hpp"
#include "actors/protocol/trace.hpp"
#include "actors/protocol/wait_board.hpp"
#include "devices/spill_file.hpp"

namespace troupe::detail {

class spill_disk {
 public:
  virtual ~spill_disk() = default;

  /// A spill writes the tile there and frees its memory; a load allocates and reads. Either is reported with its error,
  /// after which the tile is where it was. Any thread; never blocks.
  virtual void move(task_record&, std::uint64_t offset) = 0;
  /// Waits for all that was asked before, then copies what is there. Throws what the disk says.
  virtual void read(std::uint64_t offset, std::byte* to, std::size_t bytes) = 0;
  /// Nobody needs what is there.
  virtual void discard(std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual std::uint64_t bytes_out() const = 0;
  virtual std::uint64_t bytes_in() const = 0;
};

/// The actor with a thread of its own.
class disk_thread : public spill_disk {
 public:
  virtual void start() = 0;
  /// Ends once what it is at has ended; the rest is reported as failed.
  virtual void request_stop() = 0;
  virtual bool wait_ended(std::chrono::steady_clock::time_point) = 0;
};

struct disk_options {
  std::unique_ptr<devices::spill_file> file;
  std::function<void(task_record&)> report_done;
  trace_sink* sink = nullptr;
  int lane = 0;               // of the trace
  std::weak_ptr<void> house;  // its thread keeps it alive
};

std::shared_ptr<disk_thread> make_disk(disk_options, wait_board&, house_link&);

}  // namespace troupe::detail
