// What this file is for: the views of a body, commit, roll back, reductions; and the buffers for that.
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
#include "actors/memory/tile_room.hpp"

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

// ---- tiles ----------------------------------------------------------------------------------------------------------

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
        data && !x.array->bytes[0].room.load(std::memory_order_acquire) &&
        (x.mode != access_mode::update || !task()->extra))
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
  if (x.mode == access_mode::write && uses_rooms_) {
    make_room(rt_, a, x.tile);
    move_to_place(rt_, a, x.tile);
  }
  v.data = tile(a, x.tile, x.mode == access_mode::write);
  v.lo = b.lo;
  v.hi = b.hi;
  v.stride = host_strides(a, x.tile);
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
    const bool has_boxes = has_boxes_of(a);
    const home_box* const box = has_boxes ? box_at(a, first, b.lo) : nullptr;
    if (box && tb.contains(b) && box->where.contains(b)) {
      v.stride = packed_strides(box->where);
      v.data = box->bytes.get() + bytes_to(*box, b.lo);
      return v;
    }
    const bool inside = !box && tb.contains(b);  // not in parts of several boxes
    if (inside || (!has_boxes && (a.spec.adopted || are_in_place(a, b, x.mode == access_mode::write)))) {
      v.stride = inside ? host_strides(a, first) : packed_strides(a.whole_box());
      v.data = element_at(a, first, tb, v.stride, b.lo);
      if (restorable) keep_for_retry(x, r, b);
      return v;
    }
  }
  if (x.mode == access_mode::read && show_in_room(x, b, v)) return v;
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
      red.combiner->combine(parts[i].get(), parts[i + step].get(), count);
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
  each_run(red.where, [&](std::byte* to, const std::byte* from, std::size_t n) { red.combiner->combine(to, from, n); });
  parts.clear();
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
    if (h.room) h.room->leave();
    if (!h.partial) continue;
    reduction& red = *h.what->where->partials;
    std::lock_guard hold(red.lock);
    red.idle.push_back(std::move(h.partial));  // room was reserved when it was taken
  }
  held_.clear();
}

}  // namespace troupe::detail
