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

const char* gather_plan::entry_of_several() const {
  return word_ == 8 ? "gathers_8" : word_ == 4 ? "gathers_4" : word_ == 2 ? "gathers_2" : "gathers_1";
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

// How a piece is copied by the device's own calls, where that is better than a kernel.
struct copies {
  gather_side inner;  // what has no border
  std::array<index_t, rank_max> size{};
  bool plain = false;  // that is all of it
  bool large = false, few = false;
};
copies copies_of(const gather_side& from, const gather_side& to, std::size_t element) {
  copies c{to};
  auto bytes = static_cast<index_t>(element);
  for (std::size_t d = 0; d < rank_max; ++d) {
    c.inner.lo[d] = std::max(to.lo[d], from.lo[d]);
    c.inner.hi[d] = std::min(to.hi[d], from.hi[d]);
    c.size[d] = std::max<index_t>(c.inner.hi[d] - c.inner.lo[d], 0);
    bytes *= c.size[d];
  }
  const auto plan = gpu::plan_copy(to.stride, from.stride, c.size, element, 0x7fffffff);
  index_t calls = 1;
  for (const auto& d : plan.outer) calls *= d.count;
  c.plain = c.inner.lo == to.lo && c.inner.hi == to.hi;
  c.large = plan.width >= row_min_bytes && bytes / calls >= copied_min_bytes;
  c.few = calls <= calls_max;
  return c;
}

constexpr std::size_t pieces_max = 9;

}  // namespace

// At most nine.
void launch_several(accelerator& a, int lane, std::string_view text, std::span<const gather_piece* const> pieces,
                    device_pointer to, std::size_t element) {
  struct cut {  // as devices/kernels declares it
    std::array<std::int64_t, pieces_max> first{}, across{};
    std::array<std::int32_t, pieces_max> shift{};
  } where;
  where.first.fill(INT64_MAX);
  std::array<gather_plan::shape, pieces_max> from{}, target{};
  std::array<kernel_argument, 3 * pieces_max + 3> arguments;
  std::int64_t groups = 0, words = 0;
  const char* entry = nullptr;
  for (std::size_t k = 0; k < pieces_max; ++k) {
    if (k < pieces.size()) {
      const gather_plan plan(pieces[k]->from, pieces[k]->to, element);
      where.first[k] = groups;
      where.across[k] = plan.across_;
      where.shift[k] = plan.shift_;
      from[k] = plan.from_;
      target[k] = plan.to_;
      groups += plan.blocks();
      words = plan.words_;
      entry = plan.entry_of_several();
    }
    arguments[2 * k] = {true, pieces[k < pieces.size() ? k : 0]->memory, {}};
    arguments[2 * k + 1] = by_value(from[k]);
    arguments[2 * pieces_max + 1 + k] = by_value(target[k]);
  }
  arguments[2 * pieces_max] = {true, to, {}};
  arguments[3 * pieces_max + 1] = by_value(words);
  arguments[3 * pieces_max + 2] = by_value(where);
  a.launch(lane, a.load({"gathers", text, entry}),
           {{static_cast<std::uint32_t>(groups) * group_items, 1, 1}, {group_items, 1, 1}}, arguments);
}

void gather(accelerator& a, int lane, std::string_view text, std::string_view several,
            std::span<const gather_piece> pieces, device_pointer to_memory, std::size_t element) {
  std::array<const gather_piece*, pieces_max> small{};
  std::size_t n = 0;
  const auto alone = [&](const gather_piece& p) { gather(a, lane, text, p.from, p.memory, p.to, to_memory, element); };
  const auto launch = [&] {
    if (n == 1)
      alone(*small[0]);
    else if (n != 0)
      launch_several(a, lane, several, std::span(small).first(n), to_memory, element);
    n = 0;
  };
  for (const gather_piece& p : pieces) {
    if (!a.facts().large_arguments ||
        gather_plan(p.from, p.to, element).blocks() > blocks_max / static_cast<std::int64_t>(pieces_max) ||
        copies_of(p.from, p.to, element).large) {
      alone(p);
      continue;
    }
    if (n == pieces_max) launch();
    small[n++] = &p;
  }
  launch();
}

void gather(accelerator& a, int lane, std::string_view text, const gather_side& from, device_pointer from_memory,
            const gather_side& to, device_pointer to_memory, std::size_t element) {
  const auto fill_in = [&](const gather_side& part) {
    const gather_plan plan(from, part, element);
    plan.launch(a, lane, a.load({"gather", text, plan.entry()}), from_memory, to_memory);
  };
  const copies how = copies_of(from, to, element);
  const gather_side& inner = how.inner;
  if (!how.large && !(how.plain && how.few)) return fill_in(to);
  const auto beginning = [&](const gather_side& s, device_pointer memory) {
    return device_pointer{memory.base, memory.offset + static_cast<std::size_t>(offset_of(s, inner.lo)) * element};
  };
  a.copy(lane, beginning(to, to_memory), to.stride, beginning(from, from_memory), from.stride, how.size, element);
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
