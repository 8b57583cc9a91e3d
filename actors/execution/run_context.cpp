// What this file is for: views in place, windows assembled with their borders, commit, roll back, reductions.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/run_context.hpp"

#include <algorithm>
#include <cstring>

#include <troupe/error.hpp>

#include "actors/logic/data/home_box.hpp"
#include "actors/logic/data/reduction.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/tile_memory.hpp"

namespace troupe::detail {

using logic::box4;
using logic::point4;

// ---- scratch --------------------------------------------------------------------------------------------------------

scratch::~scratch() {
  for (buffer& b : buffers_) empty(b);
}

std::byte* scratch::take(std::size_t bytes, const array_core& of) {
  buffer* room = nullptr;
  for (buffer& b : buffers_) {
    if (b.used) continue;
    room = &b;
    if (b.size >= bytes) break;
  }
  if (!room) room = &buffers_.emplace_back();
  if (room->size < bytes) fill(*room, bytes, of);
  room->used = true;
  return room->data;
}

void scratch::give_back(const std::byte* data) noexcept {
  for (buffer& b : buffers_)
    if (b.data == data) b.used = false;
}

void scratch::fill(buffer& b, std::size_t bytes, const array_core& of) {
  empty(b);
  b.data = pinned_ ? pinned_->allocate_pinned(bytes) : nullptr;
  b.pinned = b.data;
  if (!b.data) b.data = new_view_bytes(bytes, of.spec.name).release();
  b.size = bytes;
}

void scratch::empty(buffer& b) noexcept {
  if (b.pinned)
    pinned_->deallocate(b.data, b.size);
  else
    free_view_bytes()(b.data);
  b = {};
}

// ---- parts of tiles that are elsewhere ------------------------------------------------------------------------------

namespace {
bool is_inside(const point4& p, const box4& b) {
  for (int d = 0; d < rank_max; ++d)
    if (p[d] < b.lo[d] || p[d] >= b.hi[d]) return false;
  return true;
}
// Returns the bytes from the start of a box to the element at `p`.
std::size_t bytes_to(const home_box& box, const point4& p) {
  const auto stride = packed_strides(box.where);
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (p[d] - box.where.lo[d]) * stride[d];
  return static_cast<std::size_t>(offset) * box.array->spec.element;
}
}  // namespace

// True if the task has been given parts of the array's tiles, in place of these.
bool run_context::has_boxes_of(const array_core& a) const {
  if (!task()->extra) return false;
  const auto& all = task()->extra->home_boxes;
  return std::ranges::any_of(all, [&](const auto& b) { return b->array == &a; });
}

// Returns the box that the task has been given for that element of a tile, or null: then the host's tile is current.
const home_box* run_context::box_at(const array_core& a, std::uint32_t tile, const point4& p) const {
  if (!task()->extra) return nullptr;
  for (const auto& b : task()->extra->home_boxes)
    if (b->array == &a && b->tile == tile && is_inside(p, b->where)) return b.get();
  return nullptr;
}

// ---- tiles ----------------------------------------------------------------------------------------------------------

std::byte* run_context::tile(array_core& a, std::uint32_t t, bool overwritten) {
  return host_tile(rt_, a, t, overwritten);
}

raw_view run_context::view_of(int i) {
  try {
    return make_view(i);
  } catch (const error& e) {
    failure_ = e.code();
    throw;
  } catch (const std::bad_alloc&) {
    failure_ = errc::out_of_memory;
    throw;
  }
}

raw_view run_context::make_view(int i) {
  access& x = task()->accesses[i];
  if (!x.where && x.array->tile_count == 1)
    if (std::byte* const data = x.array->bytes[0].data.load(std::memory_order_acquire);
        data && (x.mode != access_mode::update || !task()->extra))
      return view_of_whole(*x.array, data);
  if (x.mode == access_mode::reduce) return partial_view(x);
  const bool restorable = task()->extra && attempt_ <= task()->extra->options.retries && x.mode == access_mode::update;
  return x.where ? view_of_box(x, restorable) : view_of_tile(x, restorable);
}

// Returns the view of an array of one tile: nothing has to be looked up.
raw_view run_context::view_of_whole(const array_core& a, std::byte* data) {
  raw_view v;
  v.name = a.spec.name.c_str();
  v.data = data;
  v.hi = a.spec.size;
  index_t step = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    v.stride[d] = step;
    step *= a.spec.size[d];
  }
  return v;
}

raw_view run_context::view_of_tile(access& x, bool restorable) {
  array_core& a = *x.array;
  const box4 b = a.tile_box(x.tile);
  raw_view v;
  v.name = a.spec.name.c_str();
  v.data = tile(a, x.tile, x.mode == access_mode::write);
  v.lo = b.lo;
  v.hi = b.hi;
  v.stride = host_strides(a, b);
  if (x.worker != 0)  // a sub-array that is exactly this tile: coordinates start at 0
    for (int d = 0; d < rank_max; ++d) {
      v.hi[d] -= v.lo[d];
      v.lo[d] = 0;
    }
  if (restorable) keep_for_retry(x, {.lo = b.lo, .hi = b.hi, .limit_lo = b.lo, .limit_hi = b.hi}, b);
  return v;
}

raw_view run_context::view_of_box(access& x, bool restorable) {
  array_core& a = *x.array;
  const region& r = *x.where;
  const box4 b = logic::view_box(r);
  raw_view v;
  v.name = a.spec.name.c_str();
  for (int d = 0; d < rank_max; ++d) {
    v.lo[d] = b.lo[d] - r.limit_lo[d];
    v.hi[d] = std::max(b.hi[d], b.lo[d]) - r.limit_lo[d];
  }
  if (b.empty()) return v;
  if (logic::is_plain(r)) {
    const std::uint32_t first = a.tile_at(b.lo);
    const box4 tb = a.tile_box(first);
    if (has_boxes_of(a)) {
      const home_box* const box = tb.contains(b) ? box_at(a, first, b.lo) : nullptr;
      if (box && box->where.contains(b)) {
        v.stride = packed_strides(box->where);
        v.data = box->bytes.get() + bytes_to(*box, b.lo);
        return v;
      }
    }
    if (tb.contains(b) || (a.spec.adopted && !has_boxes_of(a))) {
      v.stride = host_strides(a, tb);
      v.data = element_at(a, first, tb, v.stride, b.lo);
      if (restorable) keep_for_retry(x, r, b);
      return v;
    }
  }
  // Other views are assembled: contiguous, with borders. They are written back on success only.
  index_t step = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    v.stride[d] = step;
    step *= b.size(d);
  }
  std::byte* data = scratch_.take(static_cast<std::size_t>(step) * a.spec.element, a);
  if (x.mode != access_mode::write) gather(r, a, b, data);
  v.data = data;
  held_.push_back({&x, data, b, nullptr, true, nullptr});
  return v;
}

// Copies what the body is about to update in place.
void run_context::keep_for_retry(access& x, const region& r, const box4& b) {
  array_core& a = *x.array;
  std::byte* const saved = scratch_.take(static_cast<std::size_t>(b.volume()) * a.spec.element, a);
  gather(r, a, b, saved);
  held_.push_back({&x, nullptr, b, saved, false, nullptr});
}

const std::byte* run_context::element_at(array_core& a, const point4& p) {
  const std::uint32_t t = a.tile_at(p);
  if (const home_box* const box = box_at(a, t, p)) return box->bytes.get() + bytes_to(*box, p);
  const box4 tb = a.tile_box(t);
  return element_at(a, t, tb, host_strides(a, tb), p);
}

std::byte* run_context::element_at(array_core& a, std::uint32_t t, const box4& tb, const devices::strides& stride,
                                   const point4& p) {
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (p[d] - tb.lo[d]) * stride[d];
  return tile(a, t, false) + static_cast<std::size_t>(offset) * a.spec.element;
}

// ---- assembling -----------------------------------------------------------------------------------------------------

void run_context::gather(const region& r, array_core& a, const box4& view, std::byte* to) {
  const int last = a.spec.rank - 1;
  const std::size_t run = static_cast<std::size_t>(view.size(last)) * a.spec.element;
  point4 at = view.lo;
  for (;;) {
    gather_run(r, a, at, view.size(last), to);
    to += run;
    int d = last - 1;
    while (d >= 0 && ++at[d] == view.hi[d]) {
      at[d] = view.lo[d];
      --d;
    }
    if (d < 0) break;
  }
  bytes_ += static_cast<std::uint64_t>(view.volume()) * a.spec.element;
}

// Copies one run along the array's last dimension, borders included.
void run_context::gather_run(const region& r, array_core& a, point4 at, index_t count, std::byte* to) {
  const int last = a.spec.rank - 1;
  const std::size_t e = a.spec.element;
  for (int d = 0; d < last; ++d) {
    const index_t n = r.limit_hi[d] - r.limit_lo[d];
    if (at[d] >= r.limit_lo[d] && at[d] < r.limit_hi[d]) continue;
    if (r.edge == border::fill) {
      host_.fill(to, r.fill.data(), e, static_cast<std::size_t>(count));
      return;
    }
    at[d] = r.edge == border::clamp ? std::clamp(at[d], r.limit_lo[d], r.limit_hi[d] - 1)
                                    : r.limit_lo[d] + ((at[d] - r.limit_lo[d]) % n + n) % n;
  }
  const index_t lo = r.limit_lo[last], hi = r.limit_hi[last], n = hi - lo;
  const index_t end = at[last] + count;
  for (index_t i = at[last]; i < end;) {
    if (i >= lo && i < hi) {
      const index_t length = std::min(end, hi) - i;
      to = copy_inside(a, at, i, length, to);
      i += length;
    } else if (r.edge != border::fill && r.edge != border::clamp) {  // the array repeats
      const index_t source = lo + ((i - lo) % n + n) % n, length = std::min(end - i, hi - source);
      to = copy_inside(a, at, source, length, to);
      i += length;
    } else {
      const index_t until = i < lo ? std::min(end, lo) : end;
      point4 edge = at;
      edge[last] = i < lo ? lo : hi - 1;
      host_.fill(to, r.edge == border::fill ? r.fill.data() : element_at(a, edge), e,
                 static_cast<std::size_t>(until - i));
      to += static_cast<std::size_t>(until - i) * e;
      i = until;
    }
  }
}

// Copies elements along the last dimension from coordinate `source` of it on, tile by tile; returns where they end.
std::byte* run_context::copy_inside(array_core& a, point4 at, index_t source, index_t length, std::byte* to) {
  const int last = a.spec.rank - 1;
  while (length > 0) {
    at[last] = source;
    const std::uint32_t t = a.tile_at(at);
    const box4 tb = a.tile_box(t);
    const home_box* const box = box_at(a, t, at);
    const index_t here = std::min(length, (box ? box->where : tb).hi[last] - source);
    const std::size_t bytes = static_cast<std::size_t>(here) * a.spec.element;
    std::memcpy(to, box ? box->bytes.get() + bytes_to(*box, at) : element_at(a, t, tb, host_strides(a, tb), at), bytes);
    to += bytes;
    source += here;
    length -= here;
  }
  return to;
}

void run_context::scatter(array_core& a, const box4& view, const std::byte* from) {
  std::array<index_t, rank_max> fs;
  index_t step = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    fs[d] = step;
    step *= view.size(d);
  }
  a.each_tile(view, [&](std::uint32_t t, const box4& tb) {
    const box4 part = intersect(view, tb);
    const auto ts = host_strides(a, tb);
    index_t to_offset = 0, from_offset = 0;
    std::array<index_t, rank_max> count;
    for (int d = 0; d < rank_max; ++d) {
      to_offset += (part.lo[d] - tb.lo[d]) * ts[d];
      from_offset += (part.lo[d] - view.lo[d]) * fs[d];
      count[d] = part.size(d);
    }
    host_.copy(tile(a, t, part == tb) + static_cast<std::size_t>(to_offset) * a.spec.element, ts,
               from + static_cast<std::size_t>(from_offset) * a.spec.element, fs, count, a.spec.element);
  });
  bytes_ += static_cast<std::uint64_t>(view.volume()) * a.spec.element;
}

// ---- reductions -----------------------------------------------------------------------------------------------------

raw_view run_context::partial_view(access& x) {
  reduction& red = *x.where->partials;
  const box4 b = red.where;
  const auto count = static_cast<std::size_t>(b.volume());
  view_bytes partial;
  {
    std::lock_guard hold(red.lock);
    if (!red.idle.empty()) {
      partial = std::move(red.idle.back());
      red.idle.pop_back();
    } else {
      red.idle.reserve(++red.taken);
    }
  }
  if (!partial) {
    partial = new_view_bytes(count * red.element, x.array->spec.name);
    host_.fill(partial.get(), red.identity.data(), red.element, count);
  }
  std::byte* saved = nullptr;
  if (task()->extra && attempt_ <= task()->extra->options.retries) {
    saved = scratch_.take(count * red.element, *x.array);
    std::memcpy(saved, partial.get(), count * red.element);
  }
  raw_view v;
  v.name = x.array->spec.name.c_str();
  v.data = partial.get();
  index_t step = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    v.lo[d] = b.lo[d] - x.where->limit_lo[d];
    v.hi[d] = b.hi[d] - x.where->limit_lo[d];
    v.stride[d] = step;
    step *= b.size(d);
  }
  held_.push_back({&x, partial.get(), b, saved, false, std::move(partial)});
  return v;
}

void combine_partials(task_record& t, devices::device& host, run_context& c) {
  access& x = t.accesses[0];
  reduction& red = *x.where->partials;
  const auto count = static_cast<std::size_t>(red.where.volume());
  // Combines the partials as a tree, then the result into the array.
  auto& parts = red.idle;
  for (std::size_t step = 1; step < parts.size(); step *= 2)
    for (std::size_t i = 0; i + step < parts.size(); i += 2 * step)
      red.combiner(parts[i].get(), parts[i + step].get(), count);
  const raw_view v = c.view_of(0);
  if (count == 0) return;
  // Elements that no task had written start from the identity.
  const auto e = static_cast<index_t>(red.element);
  const auto each_run = [&](const box4& b, auto&& f) {  // runs along the array's last dimension
    const int last = x.array->spec.rank - 1;
    point4 at = b.lo;
    for (;;) {
      index_t in_view = 0, in_partial = 0, step = 1;
      for (int d = rank_max - 1; d >= 0; --d) {
        in_view += (at[d] - red.where.lo[d]) * v.stride[d];
        in_partial += (at[d] - red.where.lo[d]) * step;
        step *= red.where.size(d);
      }
      f(v.data + in_view * e, parts.empty() ? nullptr : parts[0].get() + in_partial * e,
        static_cast<std::size_t>(b.size(last)));
      int d = last - 1;
      while (d >= 0 && ++at[d] == b.hi[d]) {
        at[d] = b.lo[d];
        --d;
      }
      if (d < 0) return;
    }
  };
  for (const box4& b : red.fresh)
    each_run(
        b, [&](std::byte* to, const std::byte*, std::size_t n) { host.fill(to, red.identity.data(), red.element, n); });
  if (parts.empty()) return;
  each_run(red.where, [&](std::byte* to, const std::byte* from, std::size_t n) { red.combiner(to, from, n); });
  parts.clear();  // a recorded reduction begins anew with the next run
  red.taken = 0;
}

// ---- the end of a run -----------------------------------------------------------------------------------------------

void run_context::commit() {
  if (held_.empty()) return;
  for (held& h : held_)
    if (h.assembled && h.what->mode != access_mode::read) scatter(*h.what->array, h.where, h.data);
  finish();
}

void run_context::roll_back() noexcept {
  if (held_.empty()) return;
  for (held& h : held_) {
    if (!h.saved) continue;
    if (h.partial) {
      const reduction& red = *h.what->where->partials;
      std::memcpy(h.partial.get(), h.saved, static_cast<std::size_t>(red.where.volume()) * red.element);
    } else {
      scatter(*h.what->array, h.where, h.saved);
    }
  }
  finish();
}

void run_context::finish() noexcept {
  for (held& h : held_) {
    if (h.assembled) scratch_.give_back(h.data);
    if (h.saved) scratch_.give_back(h.saved);
    if (!h.partial) continue;
    reduction& red = *h.what->where->partials;
    std::lock_guard hold(red.lock);
    red.idle.push_back(std::move(h.partial));  // room was reserved when it was taken
  }
  held_.clear();
}

}  // namespace troupe::detail
