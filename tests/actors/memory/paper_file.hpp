// What this file is for: a spill file in memory that fails when it is told to.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "devices/spill_file.hpp"

namespace test {

/// How a paper_file behaves; lives longer than it. Any thread.
struct paper_faults {
  std::atomic<bool> full{false}, unreadable{false};
  std::atomic<int> writes{0}, reads{0}, discards{0};
};

class paper_file final : public troupe::devices::spill_file {
 public:
  explicit paper_file(paper_faults& f) : faults_(f) {}
  void write(std::uint64_t offset, const std::byte* from, std::size_t bytes) override {
    ++faults_.writes;
    if (bytes_.size() < offset + bytes) bytes_.resize(offset + bytes);
    const bool full = faults_.full;
    std::memcpy(bytes_.data() + offset, from, full ? bytes / 2 : bytes);  // a short write
    if (full) throw troupe::error(troupe::errc::disk_full, "the paper is full");
  }
  void read(std::uint64_t offset, std::byte* to, std::size_t bytes) override {
    ++faults_.reads;
    if (faults_.unreadable) throw troupe::error(troupe::errc::io_failed, "the paper is torn");
    std::memcpy(to, bytes_.data() + offset, bytes);
  }
  void discard(std::uint64_t, std::size_t) noexcept override { ++faults_.discards; }

 private:
  paper_faults& faults_;
  std::vector<std::byte> bytes_;
};

}  // namespace test
