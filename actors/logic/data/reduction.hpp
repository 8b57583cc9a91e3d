// What this file is for: the state of an open reduction: private partials and who has them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/box4.hpp"
#include "actors/logic/data/ref_list.hpp"
#include "actors/logic/data/view_bytes.hpp"

namespace troupe::detail {

/// An open reduction: private partials that no task has read through the array yet.
struct reduction {
  std::uint64_t id = 0;  // among those of the runtime; 0: of a recording
  combine_fn combiner = nullptr;
  logic::box4 where;
  std::size_t element = 1;
  std::array<std::byte, fill_bytes_max> identity{};
  ref_list contributors;           // placement
  std::exception_ptr poison;       // placement: a contributor failed
  std::vector<logic::box4> fresh;  // placement, when they are combined: boxes that had not been written before

  std::mutex lock;               // guards the partials, which executors take and give back
  std::vector<view_bytes> idle;  // capacity is reserved when a partial is taken
  std::size_t taken = 0;
};

}  // namespace troupe::detail
