// What this file is for: a disk on which nothing moves but by the test's hand.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "actors/memory/spill_disk.hpp"

namespace test {

using troupe::detail::spill_disk;
using troupe::detail::task_record;

/// A disk that notes what it was told, and moves nothing by itself.
class paper_disk final : public spill_disk {
 public:
  struct order {
    task_record* task;
    std::uint64_t offset;
  };
  void move(task_record& t, std::uint64_t offset) override { orders.push_back({&t, offset}); }
  void read(std::uint64_t, std::byte*, std::size_t) override {}
  void discard(std::uint64_t, std::uint64_t bytes) override { discarded += bytes; }
  std::uint64_t bytes_out() const override { return 0; }
  std::uint64_t bytes_in() const override { return 0; }

  std::deque<order> orders;
  std::uint64_t discarded = 0;
};

}  // namespace test
