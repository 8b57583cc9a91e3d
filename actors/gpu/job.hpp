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
#include <utility>
#include <vector>

#include "actors/execution/run_context.hpp"
#include "actors/gpu/context.hpp"
#include "actors/logic/data/assembly.hpp"
#include "actors/logic/data/residency.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/peer_loan.hpp"
#include "devices/accelerator.hpp"

namespace troupe::detail {

struct recorded_graph;

/// Memory in which each call of a graph in turn has what it reads otherwise than as one tile.
struct graph_windows {
  std::weak_ptr<recorded_graph> graph;
  std::vector<void*> memory;  // null: nothing is read
  devices::ticket ready = 0;  // of the lane of copies in: the memory can be used
  int users = 0;              // runs under way
};

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

  /// The copy that an eviction sends to the host, as of that version.
  struct departure {
    logic::replica* copy = nullptr;
    std::uint32_t version = 0;
  };
  /// Its way over the device's lanes.
  struct route_over_lanes {
    int lane = 0, compute = 0;  // that it ends on, that its kernel runs on
    devices::ticket end = 0;
    devices::ticket memory_ready = 0;  // of the lane of copies in: room for parts, and what came in for them
    devices::ticket all_in = 0;        // of the same lane: all bytes that it waits for are here; 0: they are
    std::uint64_t launching = 0;       // ticks that the call of its kernel took, where it waits for bytes
  };
  /// Numbers of its kernels' launches; none while `last` is below `first`.
  struct launch_range {
    std::uint64_t first = 1, last = 0;
    std::shared_ptr<const std::vector<std::uint64_t>> of_calls;  // of a graph: after each call, the number of launches
  };
  /// What went wrong with it, if anything.
  struct failed {
    std::exception_ptr error;
    std::optional<errc> by_body;  // a routine threw it: the code that is told
    bool refused = false;         // this device cannot run it, others may
    bool spoiled = false;         // what it read was written by one that failed
  };

  gpu_job(runtime_state& rt, const char* name, const std::atomic<bool>& stopping)
      : buffers(rt.tiles.get()), host(*rt.host, rt, buffers, name, stopping), device(name, stopping) {}

  void reset() {
    task = nullptr;
    leaving.copy = nullptr;
    failure = {};
    launched = counted = from_host = false;
    route.end = 0;
    route.memory_ready = route.all_in = 0;
    route.launching = 0;
    launches = {};
  }
  void leave_windows() {
    if (graph_windows* const w = std::exchange(windows, nullptr)) --w->users;
  }

  task_record* task = nullptr;  // null: an eviction
  departure leaving;
  std::vector<held> copies;
  std::vector<part> parts;
  std::vector<source> sources;
  std::vector<void*> for_routine;
  graph_windows* windows = nullptr;               // of the graph, if it is a run of one
  std::vector<std::shared_ptr<peer_loan>> loans;  // tiles in other devices' memory, in use until it lets go
  std::vector<kept> updates;
  failed failure;
  bool launched = false;
  bool counted = false;    // among the work that is under way
  bool from_host = false;  // boxes that it reads come from there as a whole: there is no room for their tiles
  route_over_lanes route;
  launch_range launches;
  std::uint64_t begin = 0;
  std::list<gpu_job>::iterator self;
  scratch buffers;
  run_context host;
  gpu_context device;
};

}  // namespace troupe::detail
