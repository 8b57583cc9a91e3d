// What this file is for: the seam of the disk: a file of the runtime's own that holds what host memory has no room for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A file is used by one thread at a time. Calls block for as long as the disk takes. Errors are `troupe::error` with
// the file's name and the system's reason: disk_full where there is no more room, io_failed for the rest. After a
// failed write the bytes at that place are unknown, all others are as they were.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::devices {

class spill_file {
 public:
  virtual ~spill_file() = default;

  /// All of it, or an error. The file grows as needed.
  virtual void write(std::uint64_t offset, const std::byte* from, std::size_t bytes) = 0;
  /// Reads what was written there; an error if less is there.
  virtual void read(std::uint64_t offset, std::byte* to, std::size_t bytes) = 0;
  /// Gives the room back to the file system, where that can; the bytes there are unknown now.
  virtual void discard(std::uint64_t offset, std::size_t bytes) noexcept = 0;
};

}  // namespace troupe::devices
