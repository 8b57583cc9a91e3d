// What this file is for: how a gather is cut into groups of work-items.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/gather.hpp"

#include <algorithm>
#include <span>

#include "devices/gpu/copy_plan.hpp"

namespace troupe::devices {

namespace {

// As in gather.kernels.inc. A group writes so many words: enough for its own place in the box to cost little, few
// enough for narrow boxes to have several groups.
constexpr int block_bits = 11;
constexpr std::uint32_t group_items = 256;
// Groups of one launch: what `launch_shape::items` can say.
constexpr std::int64_t blocks_max = std::int64_t{1} << 23;
// A part without border is copied from so many bytes for each of the device's copies on, in rows that are not too short
// for them: the border is then up to eight launches instead of one, each of which takes a GPU a few microseconds.
constexpr index_t copied_min_bytes = index_t{128} << 10, row_min_bytes = 256;
// A box without border is copied in up to so many calls; more take longer than the kernel.
constexpr index_t calls_max = 64;

std::int64_t rounded_up(std::int64_t n, int bits) { return (n + (std::int64_t{1} << bits) - 1) >> bits; }

template <class T>
kernel_argument by_value(const T& v) {
  return {false, {}, std::as_bytes(std::span(&v, 1))};
}

}  // namespace

gather_plan::gather_plan(const gather_side& from, const gather_side& to, std::size_t element) {
  while (element % word_ != 0) word_ /= 2;
  words_ = static_cast<std::int64_t>(element / word_);
  from_.offset = from.offset;
  to_.offset = to.offset;
  // Dimensions of one element count in the offset only; the others are moved to the end, where the fastest belongs.
  int at = rank_max;
  for (int d = rank_max - 1; d >= 0; --d) {
    const index_t nearest = std::clamp(to.lo[d], from.lo[d], from.hi[d] - 1);
    if (to.hi[d] - to.lo[d] == 1) {
      from_.offset += (nearest - from.lo[d]) * from.stride[d];
      continue;
    }
    --at;
    from_.lo[at] = from.lo[d];
    from_.hi[at] = from.hi[d];
    from_.stride[at] = from.stride[d];
    to_.lo[at] = to.lo[d];
    to_.hi[at] = to.hi[d];
    to_.stride[at] = to.stride[d];
  }
  const auto size = [&](int d) { return to_.hi[d] - to_.lo[d]; };
  const std::int64_t columns = size(3) * words_, rows = size(0) * size(1) * size(2);
  while (shift_ < block_bits && (std::int64_t{1} << shift_) < columns) ++shift_;
  across_ = rounded_up(columns, shift_);
  down_ = rounded_up(rows, block_bits - shift_);
}

const char* gather_plan::entry() const {
  return word_ == 8 ? "gather_8" : word_ == 4 ? "gather_4" : word_ == 2 ? "gather_2" : "gather_1";
}

void gather_plan::launch(accelerator& a, int lane, kernel_id kernel, device_pointer from, device_pointer to,
                         std::int64_t first, std::int64_t last) const {
  for (; first < last; first += blocks_max) {
    const std::array<kernel_argument, 8> arguments{{{true, from, {}},
                                                    by_value(from_),
                                                    {true, to, {}},
                                                    by_value(to_),
                                                    by_value(words_),
                                                    by_value(first),
                                                    by_value(across_),
                                                    by_value(shift_)}};
    const auto groups = static_cast<std::uint32_t>(std::min(last - first, blocks_max));
    a.launch(lane, kernel, {{groups * group_items, 1, 1}, {group_items, 1, 1}}, arguments);
  }
}

namespace {

// The offset of a point of the box, in elements from the memory's start.
index_t offset_of(const gather_side& s, const std::array<index_t, rank_max>& at) {
  index_t offset = s.offset;
  for (std::size_t d = 0; d < rank_max; ++d) offset += (at[d] - s.lo[d]) * s.stride[d];
  return offset;
}

}  // namespace

void gather(accelerator& a, int lane, std::string_view text, const gather_side& from, device_pointer from_memory,
            const gather_side& to, device_pointer to_memory, std::size_t element) {
  const auto fill_in = [&](const gather_side& part) {
    const gather_plan plan(from, part, element);
    plan.launch(a, lane, a.load({"gather", text, plan.entry()}), from_memory, to_memory);
  };
  gather_side inner = to;
  std::array<index_t, rank_max> size{};
  auto bytes = static_cast<index_t>(element);
  for (std::size_t d = 0; d < rank_max; ++d) {
    inner.lo[d] = std::max(to.lo[d], from.lo[d]);
    inner.hi[d] = std::min(to.hi[d], from.hi[d]);
    size[d] = std::max<index_t>(inner.hi[d] - inner.lo[d], 0);
    bytes *= size[d];
  }
  const auto copies = gpu::plan_copy(to.stride, from.stride, size, element, 0x7fffffff);
  index_t calls = 1;
  for (const auto& d : copies.outer) calls *= d.count;
  const bool plain = inner.lo == to.lo && inner.hi == to.hi;
  const bool large = copies.width >= row_min_bytes && bytes / calls >= copied_min_bytes;
  if (!large && (!plain || calls > calls_max)) return fill_in(to);
  const auto beginning = [&](const gather_side& s, device_pointer memory) {
    return device_pointer{memory.base, memory.offset + static_cast<std::size_t>(offset_of(s, inner.lo)) * element};
  };
  a.copy(lane, beginning(to, to_memory), to.stride, beginning(from, from_memory), from.stride, size, element);
  // The rest of the box when `inner` is taken out of it: a slice on either side, dimension by dimension.
  gather_side rest = to;
  const auto keep = [&](std::size_t d, index_t lo, index_t hi) {
    gather_side slice = rest;
    slice.lo[d] = lo;
    slice.hi[d] = hi;
    slice.offset = offset_of(rest, slice.lo);
    if (lo < hi) fill_in(slice);
  };
  for (std::size_t d = 0; d < rank_max; ++d) {
    keep(d, rest.lo[d], inner.lo[d]);
    keep(d, inner.hi[d], rest.hi[d]);
    const index_t before = inner.lo[d] - rest.lo[d];
    rest.offset += before * rest.stride[d];
    rest.lo[d] = inner.lo[d];
    rest.hi[d] = inner.hi[d];
  }
}

}  // namespace troupe::devices
