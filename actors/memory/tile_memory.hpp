// What this file is for: the host memory of tiles: pinned slabs where a device gains by that.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pinning takes longer than allocating and takes memory from all other programs, so slabs are kept and used again,
// their sum is limited, and tiles that find no room in them come from the host's allocator, as all tiles do where no
// device gains. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/view.hpp>

#include "actors/logic/data/extents.hpp"
#include "devices/accelerator.hpp"
#include "devices/device.hpp"

namespace troupe::detail {

class tile_memory {
 public:
  explicit tile_memory(devices::device& host) : host_(host) {}
  /// Unmaps the slabs without unpinning them: no tile is in use any more, or `unpin_all` has been called.
  ~tile_memory();
  tile_memory(const tile_memory&) = delete;
  tile_memory& operator=(const tile_memory&) = delete;

  /// Has slabs pinned for these devices from now on, at most `bytes_max` together. Called once, before the first tile.
  void pin_for(std::vector<std::unique_ptr<devices::page_pinning>>, std::uint64_t bytes_max);
  /// Pins all slabs again: a device that failed has been opened anew, and its driver may have forgotten them.
  void pin_again();
  /// Unpins all slabs, as the devices are gone. Tiles that are still in use stay where they are.
  void unpin_all() noexcept;
  /// Gives back slabs without tiles.
  void tidy() noexcept;

  /// Allocates bytes aligned to element_align_max. Throws error(out_of_memory).
  std::byte* allocate(std::size_t bytes);
  void deallocate(std::byte*, std::size_t bytes) noexcept;
  /// Allocates bytes in a pinned slab; null: there is no room in slabs, and no more of them may be had.
  std::byte* allocate_pinned(std::size_t bytes);

  /// Pins memory that is not the runtime's, beyond the limit. Returns a number for `unpin_outside`, 0 where there is
  /// nothing to undo, and whether a device gains: also where somebody else has pinned it.
  std::pair<unsigned long, bool> pin_outside(std::byte*, std::size_t bytes);
  void unpin_outside(unsigned long number) noexcept;

  /// True if slabs are pinned: a device gains, and its driver has not refused all.
  bool pins() const { return limit_.load(std::memory_order_relaxed) != 0; }
  std::uint64_t pinned_bytes() const { return pinned_.load(std::memory_order_relaxed); }

 private:
  struct slab {
    std::size_t bytes;
    logic::extents used{256};  // units of 256 bytes, as on devices
    static_assert(256 % element_align_max == 0);
    std::size_t tiles = 0;
  };
  using slabs = std::map<std::byte*, slab>;  // by address
  struct outside {
    std::byte* begin;
    std::size_t bytes;
    std::vector<devices::page_pinning*> by;  // those that were not told that it is pinned already
  };

  std::byte* take(std::size_t bytes);
  bool grow(std::size_t bytes);
  std::byte* make_slab(std::size_t bytes) noexcept;
  slabs take_empty() noexcept;
  void give_back(slabs) noexcept;
  std::uint64_t room() const { return limit_.load() - std::min(limit_.load(), pinned_.load()); }

  devices::device& host_;
  std::vector<std::unique_ptr<devices::page_pinning>> pinnings_;
  std::uint64_t wanted_ = 0;              // the limit as it was given
  std::atomic<std::uint64_t> limit_{0};   // less once the driver has refused; 0: nothing is pinned
  std::atomic<std::uint64_t> pinned_{0};  // changed while growing
  std::mutex growing_;                    // taken before lock_; allocations in slabs go on meanwhile
  std::mutex lock_;
  slabs slabs_;

  // Not with growing_: a driver may wait for its device when it unpins, and no allocation is to wait for that.
  std::mutex outside_lock_;                   // also for a change of pinnings_
  std::map<unsigned long, outside> outside_;  // by number
  unsigned long outside_ever_ = 0;            // the last number given
};

}  // namespace troupe::detail
