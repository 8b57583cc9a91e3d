// What this file is for: the state that outlives a runtime while handles or futures refer to it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include <troupe/detail/task.hpp>

#include "actors/memory/shard_pool.hpp"
#include "actors/memory/tile_memory.hpp"
#include "actors/protocol/clock.hpp"
#include "devices/device.hpp"
#include "devices/forks.hpp"

namespace troupe::detail {

/// Room for the accesses of a task that has more than fit into its record.
struct alignas(64) access_block {
  static constexpr std::size_t room = 16;
  std::array<access, room> accesses;
  access_block* next = nullptr;  // in the pool
};

/// Room for what few tasks need, which is too large for the heap: threads that end tasks would meet at its locks those
/// that submit them.
struct extra_room {
  alignas(task_extra) std::array<std::byte, sizeof(task_extra)> bytes;
  extra_room* next = nullptr;  // in the pool
};

/// The state that records and arrays point to. Lives as long as the runtime, any handle and any future.
struct runtime_state {
  std::atomic<engine*> the_engine{nullptr};  // null once the runtime is gone
  std::weak_ptr<engine> shared_engine;       // set before any use; waits lock it, as the engine may go
  std::atomic<long> references{1};
  std::atomic<std::size_t> array_bytes{0}, array_bytes_max{0}, arrays{0};
  std::atomic<std::uint64_t> array_ids{0};
  std::atomic<std::size_t> on_nodes{0};  // tasks and transfers under way on other nodes
  bool bounded = false;                  // there is a host memory budget
  // Locks by tile: where memory is bounded, one of two threads allocates it; where it is filled in its place, one does.
  std::array<std::mutex, 16> makers;
  std::array<std::mutex, 16> pieces;  // for array_core::piece, by array; may be taken with one of `makers`
  std::unique_ptr<devices::device> host;
  std::unique_ptr<tile_memory> tiles;  // null: everything comes from the host's allocator
  std::shared_ptr<void> kernels;       // owns the kernel_info that records point to
  runtime_clock clock;                 // set before any use
  const devices::birthplace birth;     // tells a child by fork, which touches nothing of this
  shard_pool<task_record> records;
  shard_pool<region> regions;
  shard_pool<access_block> access_blocks;
  shard_pool<extra_room> extras{0};  // turns take some, too: the headroom is for them

  void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

}  // namespace troupe::detail
