// What this file is for: collecting arguments and the shape of a launch.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/context.hpp"

#include <algorithm>
#include <cstring>

#include <troupe/error.hpp>

namespace troupe::detail {

namespace {
// Work-items have numbers of 32 bits with a sign, and those that fill the last group up have one too.
constexpr index_t ids_max = index_t{1} << 31;

devices::cannot_run too_large() {
  return {errc::bad_argument, "an array of the kernel is too large for one launch: use smaller chunks"};
}
}  // namespace

void gpu_context::bind(const task_record& t) {
  task_ = &t;
  routine_ = nullptr;
  views_.assign(t.access_count, {});
  offsets_.assign(t.access_count, 0);
  entries_.clear();
  bytes_.clear();
  next_access_ = 0;
  attempt_ = 1;
  items_from_ = 0;
  items_ = {1, 1, 1};
}

void gpu_context::set_view(int access, const raw_view& v, index_t offset) {
  views_[static_cast<std::size_t>(access)] = v;
  offsets_[static_cast<std::size_t>(access)] = offset;
}

void gpu_context::next_attempt() {
  ++attempt_;
  entries_.clear();
  bytes_.clear();
  next_access_ = items_from_ = 0;
}

bool gpu_context::stop_requested() const {
  return stopping_.load(std::memory_order_relaxed) || (task_->extra && task_->extra->options.stop.stop_requested());
}

void gpu_context::array(const raw_view& v, int rank, std::size_t element) {
  while (!task_->accesses[next_access_].array) ++next_access_;
  gpu_shape s{};
  s.offset = offsets_[static_cast<std::size_t>(next_access_)];
  const access_mode mode = task_->accesses[next_access_++].mode;
  index_t volume = 1;
  for (int d = 0; d < rank; ++d) {
    s.lo[d] = v.lo[d];
    s.hi[d] = v.hi[d];
    s.stride[d] = v.stride[d];
    volume *= std::max<index_t>(v.hi[d] - v.lo[d], 0);
  }
  entries_.push_back({v.data, element, 0});
  value(&s, sizeof s);
  // The first that is written or updated; until then, the first that is read.
  const bool written = mode == access_mode::write || mode == access_mode::update;
  const int worth = written ? 2 : mode == access_mode::read ? 1 : 0;
  if (worth <= items_from_) return;
  items_from_ = worth;
  rank_ = rank;
  std::array<index_t, 3> n{1, 1, 1};
  for (int d = 0; d < rank; ++d) n[static_cast<std::size_t>(std::min(rank - 1 - d, 2))] *= v.hi[d] - v.lo[d];
  for (int d = 0; d < 3; ++d) {
    if (n[d] > ids_max || volume < 0) throw too_large();
    items_[d] = static_cast<std::uint32_t>(std::max<index_t>(n[d], 1));
  }
}

void gpu_context::value(const void* data, std::size_t size) {
  const std::size_t at = (bytes_.size() + 15) / 16 * 16;
  bytes_.resize(at + size);
  std::memcpy(bytes_.data() + at, data, size);
  entries_.push_back({nullptr, at, size});
}

devices::launch_shape gpu_context::shape(const kernel_text& text) const {
  devices::launch_shape s;
  s.items = items_;
  const bool said = text.group[0] != 0 || text.group[1] != 0 || text.group[2] != 0;
  if (said)
    for (std::size_t d = 0; d < 3; ++d) s.group[d] = std::max<std::uint32_t>(text.group[d], 1);
  else
    s.group = rank_ == 1   ? std::array<std::uint32_t, 3>{256, 1, 1}
              : rank_ == 2 ? std::array<std::uint32_t, 3>{16, 16, 1}
                           : std::array<std::uint32_t, 3>{16, 4, 4};
  for (std::size_t d = 0; d < 3; ++d)
    if ((index_t{s.items[d]} + s.group[d] - 1) / s.group[d] * s.group[d] > ids_max) throw too_large();
  return s;
}

std::span<const devices::kernel_argument> gpu_context::arguments() {
  arguments_.clear();
  for (const entry& e : entries_) {
    devices::kernel_argument& a = arguments_.emplace_back();
    if (e.size == 0) {
      a.is_memory = true;
      a.memory.base = e.memory;
      a.element_bytes = e.at;
    } else {
      a.value = std::span(bytes_.data() + e.at, e.size);
    }
  }
  return arguments_;
}

}  // namespace troupe::detail
