// What this file is for: the seam of devices: memory of one space and copies within it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Non-blocking but for what a host copy costs. Errors are `troupe::error`; foreign codes never pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <troupe/box.hpp>

namespace troupe::devices {

struct device_facts {
  std::string name;
  std::uint64_t memory_bytes = 0;
};

class device {
 public:
  virtual ~device() = default;

  virtual const device_facts& facts() const = 0;
  /// At least `align` aligned; throws error(out_of_memory) with the size. Zero bytes give a valid pointer.
  virtual std::byte* allocate(std::size_t bytes, std::size_t align) = 0;
  virtual void deallocate(std::byte*, std::size_t bytes, std::size_t align) noexcept = 0;
  /// A strided block of elements, up to 4 dimensions; strides in elements of `element` bytes. No overlap.
  virtual void copy(std::byte* to, const std::array<index_t, rank_max>& to_stride, const std::byte* from,
                    const std::array<index_t, rank_max>& from_stride, const std::array<index_t, rank_max>& count,
                    std::size_t element) = 0;
  /// `count` elements, contiguous, all equal to the `element` bytes at `value`.
  virtual void fill(std::byte* to, const std::byte* value, std::size_t element, std::size_t count) = 0;
};

}  // namespace troupe::devices
