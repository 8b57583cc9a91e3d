// What this file is for: what a device has under way: a task with what it holds, or a copy home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "actors/execution/run_context.hpp"
#include "actors/gpu/context.hpp"
#include "actors/logic/data/assembly.hpp"
#include "actors/logic/data/residency.hpp"
#include "actors/protocol/peer_loan.hpp"
#include "devices/accelerator.hpp"

namespace troupe::detail {

struct gpu_job {
  /// A copy in the device's memory.
  struct held {
    logic::replica* copy;
    int access;
    bool written;
    bool whole;               // the access is this tile; else a part of it is taken from here
    std::uint64_t write = 0;  // its number, once it is enqueued
  };
  /// Not a whole tile: packed in device memory of its own. It comes from tiles there or from the host's memory, and
  /// what is written goes to the host's.
  struct part {
    int access;
    void* memory;
    std::size_t bytes;
    logic::box4 where;
    bool from_tiles;
    bool goes_out;
    raw_view host;
    std::byte* staged = nullptr;  // what goes out replaces what came in once all has gone well
  };
  /// A piece of a part: from a copy held, or from the host.
  struct source {
    std::size_t part;
    logic::piece piece;
    logic::replica* copy;
  };

  /// A box that a body updates in place, and a copy of it from before, for a retry.
  struct kept {
    void* memory;
    void* before;
    logic::box4 where;
    std::size_t element;
  };

  gpu_job(runtime_state& rt, const char* name, const std::atomic<bool>& stopping)
      : buffers(rt.tiles.get()), host(*rt.host, rt, buffers, name, stopping), device(name, stopping) {}

  void reset() {
    task = nullptr;
    leaving = nullptr;
    error = nullptr;
    launched = counted = from_host = refused = spoiled = false;
    end = 0;
    memory_ready = 0;
    first_launch = 1;
    last_launch = 0;
    calls.reset();
    by_body.reset();
  }

  task_record* task = nullptr;        // null: an eviction
  logic::replica* leaving = nullptr;  // a copy to the host
  std::uint32_t leaving_version = 0;
  std::vector<held> copies;
  std::vector<part> parts;
  std::vector<source> sources;
  std::vector<void*> for_routine;
  std::vector<std::shared_ptr<peer_loan>> loans;  // tiles in other devices' memory, in use until it lets go
  std::vector<kept> updates;
  std::exception_ptr error;
  std::optional<errc> by_body;  // a routine threw it: the code that is told
  bool launched = false;
  bool counted = false;       // among the work that is under way
  bool refused = false;       // this device cannot run it, others may
  bool spoiled = false;       // what it read was written by one that failed
  bool from_host = false;     // boxes that it reads come from there as a whole: there is no room for their tiles
  int lane = 0, compute = 0;  // that it ends on, that its kernel runs on
  devices::ticket end = 0;
  std::uint64_t first_launch = 1, last_launch = 0;          // of its kernels
  std::shared_ptr<const std::vector<std::uint64_t>> calls;  // of a graph: after each of them, the number of launches
  devices::ticket memory_ready = 0;  // of the lane of copies in: room for parts, and what came in for them
  std::uint64_t begin = 0;
  std::list<gpu_job>::iterator self;
  scratch buffers;
  run_context host;
  gpu_context device;
};

}  // namespace troupe::detail
