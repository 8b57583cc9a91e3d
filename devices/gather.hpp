// What this file is for: launches of the kernels that put a box of an array together from a tile (kernels/gather).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "devices/accelerator.hpp"

namespace troupe::devices {

/// A side of a gather: a box of up to four dimensions, whose first element is `offset` elements after the memory it is
/// launched with. Dimensions beyond the array's rank have one element.
struct gather_side {
  std::array<index_t, rank_max> lo{}, hi{};
  strides stride{};  ///< elements
  std::int64_t offset = 0;
};

/// A piece of a box, which comes from one tile.
struct gather_piece {
  gather_side from;
  device_pointer memory;  // of the tile
  gather_side to;
};

/// Into every element of `to` the element of `from` with the same coordinates, or the nearest there is. Any size, of
/// any shape: work-items stand in one row, and what is more than one launch takes is several. Pure; one for each
/// gather.
class gather_plan {
 public:
  /// Neither box is empty.
  gather_plan(const gather_side& from, const gather_side& to, std::size_t element);

  /// The kernel, by the size of the words that an element is copied in: "gather_4".
  const char* entry() const;
  /// So many blocks of words, each of which one group writes.
  std::int64_t blocks() const { return across_ * down_; }
  /// The same of the kernel for several pieces: "gathers_4".
  const char* entry_of_several() const;
  /// Enqueues all of it. `kernel`: what `load` gave for the entry.
  void launch(accelerator& a, int lane, kernel_id kernel, device_pointer from, device_pointer to) const {
    launch(a, lane, kernel, from, to, 0, blocks());
  }
  /// Enqueues the blocks [first, last).
  void launch(accelerator&, int lane, kernel_id, device_pointer from, device_pointer to, std::int64_t first,
              std::int64_t last) const;

 private:
  friend void launch_several(accelerator&, int lane, std::string_view text, std::span<const gather_piece* const>,
                             device_pointer to, std::size_t element);
  struct shape {  // as devices/kernels declares it
    std::array<std::int64_t, rank_max> lo{}, hi{1, 1, 1, 1}, stride{};
    std::int64_t offset = 0;
  };

  shape from_, to_;
  std::size_t word_ = 8;
  std::int64_t words_ = 1;              // of an element
  std::int64_t across_ = 1, down_ = 1;  // blocks
  int shift_ = 0;                       // a block is 2^shift words wide
};

/// Enqueues a gather. What needs no border is copied where that takes few calls and is large, or there is no border at
/// all: a copy of the device's own is several times faster. `text`: the kernels.
void gather(accelerator&, int lane, std::string_view text, const gather_side& from, device_pointer from_memory,
            const gather_side& to, device_pointer to_memory, std::size_t element);

/// Enqueues the gathers of the pieces of one box, which do not overlap. What is small is one launch for nine of them,
/// where the device takes so many arguments: a launch takes a GPU longer than such a piece. `several`: the kernels for
/// that.
void gather(accelerator&, int lane, std::string_view text, std::string_view several, std::span<const gather_piece>,
            device_pointer to_memory, std::size_t element);

}  // namespace troupe::devices
