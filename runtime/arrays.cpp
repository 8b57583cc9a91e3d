// What this file is for: arrays from the caller's side: making, describing accesses, host views.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/execution/run_context.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/memory/contiguous_tiles.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/task_name.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

using logic::box4;

namespace {

std::string text_of_box(const array_core& a, const std::array<index_t, rank_max>& lo,
                        const std::array<index_t, rank_max>& hi) {
  std::string s;
  for (int d = 0; d < a.spec.rank; ++d)
    s += (d ? " x [" : "[") + std::to_string(lo[d]) + "," + std::to_string(hi[d]) + ")";
  return s;
}

// Constant of a filled array, kept beside it.
struct filled_owner {
  std::array<std::byte, filled_bytes_max> value;
};

// Sizes in bytes beyond this do not fit their type.
constexpr double addressable_bytes = 9e18;

// Refuses views that reach too far outside when they are asked for: later their size is computed without a check for
// overflow.
void check_frame(const array_core& a, const std::array<index_t, rank_max>& lo,
                 const std::array<index_t, rank_max>& hi) {
  double bytes = static_cast<double>(a.spec.element);
  for (int d = 0; d < rank_max; ++d) bytes *= std::max(1.0, static_cast<double>(hi[d]) - static_cast<double>(lo[d]));
  if (bytes > addressable_bytes)
    throw error(errc::bad_argument, "array '" + a.spec.name + "': the access to " + text_of_box(a, lo, hi) +
                                        " is too large to be addressed: choose a smaller radius");
}

}  // namespace

array_core* new_array(engine& the_engine, array_spec s) {
  for (int d = 0; d < s.rank; ++d) {
    if (s.size[d] < 0)
      throw error(errc::bad_argument, "array '" + s.name + "': negative size along dimension " + std::to_string(d));
    if (s.size[d] > 0 && s.tile[d] < 1)
      throw error(errc::bad_argument,
                  "array '" + s.name + "': tiles must be at least 1 along dimension " + std::to_string(d));
    s.tile[d] = std::clamp<index_t>(s.tile[d], 1, std::max<index_t>(s.size[d], 1));
  }
  if (s.replicas != 1 && s.replicas != 2)
    throw error(errc::bad_argument, "array '" + s.name + "': " + std::to_string(s.replicas) +
                                        " replicas; 1 or 2 (array_options::replicas)");
  // Sizes that cannot be addressed are caught before anything is allocated.
  double elements = 1, tiles_wanted = 1;
  auto a = std::make_unique<array_core>();
  for (int d = 0; d < rank_max; ++d) {
    a->grid[d] = s.size[d] == 0 ? 1 : (s.size[d] - 1) / s.tile[d] + 1;
    elements *= static_cast<double>(s.size[d]);
    tiles_wanted *= static_cast<double>(a->grid[d]);
  }
  if (elements * static_cast<double>(s.element) > addressable_bytes || tiles_wanted > 4e9)
    throw error(errc::bad_argument, "array '" + s.name + "': too large to be addressed, or cut into too many tiles");
  if (s.fill) {
    auto kept = std::make_shared<filled_owner>();
    if (s.element > kept->value.size())
      throw error(errc::not_supported, "filled arrays have elements of at most 256 bytes");
    std::memcpy(kept->value.data(), s.fill, s.element);
    s.fill = kept->value.data();
    s.owner = std::move(kept);
  }
  a->tile_count = static_cast<std::uint32_t>(tiles_wanted);
  std::size_t tile = s.element;
  for (int d = 0; d < rank_max; ++d) tile *= static_cast<std::size_t>(s.tile[d]);
  a->tile_bytes_max = tile;
  const bool written = s.adopted || s.fill;
  a->spec = std::move(s);
  if (a->tile_count == 1) {
    a->states = &a->single;
    a->bytes = &a->single_bytes;
  } else {
    a->many = std::make_unique<tile_history[]>(a->tile_count);
    a->many_bytes = std::make_unique<tile_bytes[]>(a->tile_count);
    a->states = a->many.get();
    a->bytes = a->many_bytes.get();
  }
  if (written)
    for (std::uint32_t t = 0; t < a->tile_count; ++t) a->states[t].valid = true;
  a->rt = &the_engine.state();
  a->stays_packed = a->tile_count == 1 || a->spec.adopted || a->rt->bounded;
  a->places = first_placing(*a->rt, *a);
  a->id = a->rt->array_ids.fetch_add(1, std::memory_order_relaxed) + 1;
  a->rt->retain();
  a->rt->arrays.fetch_add(1, std::memory_order_relaxed);
  return a.release();
}

void retain(array_core* a) noexcept { a->handles.fetch_add(1, std::memory_order_relaxed); }

namespace {

thread_local int may_not_wait = 0;

void give_handles(array_core* a, std::int64_t handles) noexcept {
  if (a->handles.fetch_sub(handles, std::memory_order_acq_rel) != handles || !a->rt->birth.is_here()) return;
  // All tasks that use the array were submitted before this: placement frees it once they are done, at once if there
  // are none.
  if (engine* the_engine = a->rt->the_engine.load(std::memory_order_acquire))
    the_engine->placement_actor().drop(a);
  else
    destroy(*a);
}

// Drops a handle of the program; true for the last one, which the runtime then keeps.
bool take_last(array_core& a) noexcept {
  std::int64_t n = a.handles.load(std::memory_order_relaxed);
  for (;;) {
    const bool last = n % array_core::kept_once == 1;
    if (a.handles.compare_exchange_weak(n, last ? n - 1 + array_core::kept_once : n - 1, std::memory_order_acq_rel))
      return last;
  }
}

// Drops a handle of an array whose memory the caller owns. Returns the task that ends when the memory is the caller's
// again, with a reference; null: this was not the last handle, or no task can tell.
task_record* give_back_borrowed(array_core* a) noexcept {
  engine* const the_engine = a->rt->birth.is_here() ? a->rt->the_engine.load(std::memory_order_acquire) : nullptr;
  if (!the_engine) {
    give_handles(a, 1);
    return nullptr;
  }
  if (!take_last(*a)) return nullptr;
  task_record* t = nullptr;
  try {
    t = make_farewell(*a->rt, *a);
    t->references.store(3, std::memory_order_relaxed);  // the runtime's, the array's, the caller's
    a->farewell = t;
    the_engine->placement_actor().bid_farewell(*t);
  } catch (const std::bad_alloc&) {  // the caller cannot be told
    a->farewell = nullptr;
    if (t) recycle(t);
    t = nullptr;
  }
  give_handles(a, array_core::kept_once);
  return t;
}

}  // namespace

no_waiting::no_waiting() noexcept { ++may_not_wait; }
no_waiting::~no_waiting() { --may_not_wait; }

void let_go(array_core* a) noexcept { give_handles(a, array_core::kept_once); }

void release(array_core* a) noexcept {
  if (!a->is_borrowed()) return give_handles(a, 1);
  if (task_record* t = give_back_borrowed(a)) release(t);
}

void release_and_wait(array_core* a) noexcept {
  if (!a->is_borrowed()) return give_handles(a, 1);
  task_record* const t = give_back_borrowed(a);
  if (!t) return;
  try {
    if (may_not_wait == 0) wait(*t);
  } catch (...) {  // the wait would never end here, or there is no memory to find that out
  }
  release(t);
}

const array_spec& spec_of(const array_core& a) noexcept { return a.spec; }

target target_of(array_core& a) {
  engine* the_engine = a.rt->the_engine.load(std::memory_order_acquire);
  if (!the_engine) throw error(errc::runtime_stopped, "the runtime of array '" + a.spec.name + "' is gone");
  the_engine->check_process();
  return {the_engine, nullptr};
}

const runtime_state* runtime_of_tile(const array_core& a) noexcept {
  bool empty = false;
  for (int d = 0; d < a.spec.rank; ++d) empty = empty || a.spec.size[d] == 0;
  return a.tile_count == 1 && !empty ? a.rt : nullptr;
}

void throw_foreign(const array_core& a) {
  throw error(errc::bad_argument, "array '" + a.spec.name + "' belongs to another runtime");
}

namespace {
// Fills in an access to exactly one tile, seen from the whole array or from a sub-array that is that tile; false: it is
// none.
bool describe_tile(access& to, const array_core& a, const logic::point4& lo, const logic::point4& hi,
                   const logic::point4& limit_lo, const logic::point4& limit_hi) {
  bool seen_whole = true, is_limit = true;
  index_t t = 0;
  for (int d = 0; d < rank_max; ++d) {
    const index_t size = a.spec.size[d], tile = a.spec.tile[d];
    const index_t i = lo[d] == 0 ? 0 : lo[d] / tile;  // most dimensions need no division
    if (lo[d] < 0 || lo[d] >= size || i * tile != lo[d] || hi[d] != lo[d] + std::min(tile, size - lo[d])) return false;
    t = t * a.grid[d] + i;
    seen_whole = seen_whole && limit_lo[d] == 0 && limit_hi[d] == size;
    is_limit = is_limit && limit_lo[d] == lo[d] && limit_hi[d] == hi[d];
  }
  if (!seen_whole && !is_limit) return false;
  to.tile = static_cast<std::uint32_t>(t);
  to.worker = seen_whole ? 0 : 1;
  return true;
}

[[noreturn]] void refuse_outside(const array_core& a, access_mode mode, logic::point4 lo, logic::point4 hi,
                                 const logic::point4& limit_lo, const logic::point4& limit_hi) {
  logic::point4 size{};
  for (int d = 0; d < rank_max; ++d) {
    lo[d] -= limit_lo[d];
    hi[d] -= limit_lo[d];
    size[d] = limit_hi[d] - limit_lo[d];
  }
  throw error(errc::out_of_bounds, "array '" + a.spec.name + "': the access to " + text_of_box(a, lo, hi) +
                                       " leaves the array of " + text_of_box(a, {}, size) +
                                       (mode == access_mode::read ? "; choose a border" : "; only reads have borders"));
}
}  // namespace

void describe(engine& the_engine, access& to, array_core& a, access_mode mode, const std::array<index_t, rank_max>& lo,
              const std::array<index_t, rank_max>& hi, const std::array<index_t, rank_max>& limit_lo,
              const std::array<index_t, rank_max>& limit_hi, border edge, const void* fill, std::size_t fill_size,
              combine_fn combiner) {
  if (a.rt != &the_engine.state()) throw_foreign(a);
  to.array = &a;
  to.where = nullptr;
  to.mode = mode;
  to.link = link_mode::none;
  to.worker = 0;
  if (mode != access_mode::reduce && describe_tile(to, a, lo, hi, limit_lo, limit_hi)) return;
  bool outside = false;
  for (int d = 0; d < rank_max; ++d) outside = outside || lo[d] < limit_lo[d] || hi[d] > limit_hi[d];
  if (outside && (edge == border::refuse || (edge != border::clip && mode != access_mode::read)))
    refuse_outside(a, mode, lo, hi, limit_lo, limit_hi);
  if (edge == border::wrap || edge == border::clamp)
    for (int d = 0; d < a.spec.rank; ++d)
      if (limit_hi[d] == limit_lo[d] && hi[d] > lo[d])
        throw error(errc::out_of_bounds, "array '" + a.spec.name + "' is empty: nothing to wrap or clamp to");
  if (outside && edge != border::clip) check_frame(a, lo, hi);
  region* r = new_region(the_engine);
  r->lo = lo;
  r->hi = hi;
  if (outside && edge == border::clip) {
    const box4 inside = intersect(box4{lo, hi}, box4{limit_lo, limit_hi});
    r->lo = inside.lo;
    r->hi = inside.hi;
  }
  r->limit_lo = limit_lo;
  r->limit_hi = limit_hi;
  r->edge = edge;
  r->combiner = combiner;
  if (fill && fill_size <= fill_bytes_max) std::memcpy(r->fill.data(), fill, fill_size);
  to.where = r;
}

namespace {
template <class F>
void each_box_of(const access& x, F&& f) {
  if (!x.where)
    f(x.array->tile_box(x.tile));
  else
    logic::each_touched(*x.where, f);
}
}  // namespace

void check_clash(const task_record& t, const access& x, const access& y) {
  // Allows one and the same box to be read and updated: such a call is an update with two names.
  const auto is_same_box = [&] {
    return x.where && y.where ? x.where->lo == y.where->lo && x.where->hi == y.where->hi : !x.where && !y.where;
  };
  if (((x.mode == access_mode::read && y.mode == access_mode::update) ||
       (x.mode == access_mode::update && y.mode == access_mode::read)) &&
      is_same_box())
    return;
  each_box_of(x, [&](const box4& a) {
    each_box_of(y, [&](const box4& b) {
      if (a.empty() || b.empty() || !logic::overlap(a, b)) return;
      throw error(errc::overlapping_write,
                  "array '" + x.array->spec.name + "': two arguments of one call of '" + name_of(t) +
                      "' touch the same elements, and one of them changes these: " + text_of_box(*x.array, a.lo, a.hi) +
                      " and " + text_of_box(*x.array, b.lo, b.hi) +
                      "; pass them once, with update(), or boxes that do not overlap");
    });
  });
}

namespace {
// Checks each access that changes something against all others; false: there are many, and nothing was checked.
bool check_few_changes(const task_record& t) {
  const std::span<const access> all(t.accesses, t.access_count);
  std::array<const access*, 4> changes;
  std::size_t n = 0;
  for (const access& x : all) {
    if (!x.array || x.mode == access_mode::read) continue;
    if (n == changes.size()) return false;
    changes[n++] = &x;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const access& x = *changes[i];
    for (const access& y : all) {
      if (y.array != x.array || &y == &x) continue;
      if (y.mode != access_mode::read && &y < &x) continue;  // it was checked with that one
      if (x.mode == access_mode::reduce && y.mode == access_mode::reduce) continue;
      if (x.where || y.where || x.tile == y.tile) check_clash(t, x, y);
    }
  }
  return true;
}
}  // namespace

void check_clashes(const task_record& t) {
  if (check_few_changes(t)) return;
  std::array<const access*, 16> few;
  std::vector<const access*> many(t.access_count > few.size() ? t.access_count : 0);
  const std::span<const access*> all = many.empty() ? std::span(few).first(t.access_count) : std::span(many);
  std::size_t n = 0;
  for (const access& x : std::span(t.accesses, t.access_count))
    if (x.array) all[n++] = &x;
  const std::span<const access*> sorted = all.first(n);
  // By array, those that change something first: lists may be long, and most of their arrays differ.
  std::ranges::sort(sorted, {}, [](const access* x) { return std::pair(x->array, x->mode == access_mode::read); });
  for (std::size_t i = 0; i < n; ++i) {
    const access& x = *sorted[i];
    if (x.mode == access_mode::read) continue;
    for (std::size_t j = i + 1; j < n && sorted[j]->array == x.array; ++j) {
      const access& y = *sorted[j];
      if (x.mode == access_mode::reduce && y.mode == access_mode::reduce) continue;
      if (x.where || y.where || x.tile == y.tile) check_clash(t, x, y);
    }
  }
}

void choose_chunk(engine& the_engine, int rank, const index_t* size, const array_core* output, index_t* chunk) {
  bool same = output && output->spec.rank == rank;
  for (int d = 0; same && d < rank; ++d) same = output->spec.size[d] == size[d];
  if (same && output->tile_count > 1) {
    for (int d = 0; d < rank; ++d) chunk[d] = output->spec.tile[d];
    return;
  }
  // Splits evenly along the slowest dimensions, four chunks for each worker, so that the last ones can balance.
  index_t want = 4 * static_cast<index_t>(the_engine.settings().threads);
  for (int d = 0; d < rank; ++d) {
    const index_t parts = std::clamp<index_t>(want, 1, std::max<index_t>(size[d], 1));
    chunk[d] = size[d] == 0 ? 1 : (size[d] - 1) / parts + 1;
    want = (want + parts - 1) / parts;
  }
}

void check_disjoint(const array_core& a, int rank, std::span<const std::array<index_t, 2 * rank_max>> boxes) {
  // Boxes are sorted by their first edge: a box can only meet those that begin before it ends.
  std::vector<std::size_t> order(boxes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return boxes[i][0] < boxes[j][0]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& x = boxes[order[i]];
    for (std::size_t j = i + 1; j < order.size() && boxes[order[j]][0] < x[rank_max]; ++j) {
      const auto& y = boxes[order[j]];
      bool meet = true;
      for (int d = 0; d < rank; ++d) meet = meet && x[d] < y[rank_max + d] && y[d] < x[rank_max + d];
      if (!meet) continue;
      const auto text = [&](const auto& b) {
        std::array<index_t, rank_max> lo{}, hi{};
        for (int d = 0; d < rank; ++d) {
          lo[d] = b[d];
          hi[d] = b[rank_max + d];
        }
        return text_of_box(a, lo, hi);
      };
      throw error(errc::overlapping_write, "array '" + a.spec.name +
                                               "': two chunks of one call write the same elements: " + text(x) +
                                               " and " + text(y) + "; change the mapper, or use reduce");
    }
  }
}

// ---- host access ----------------------------------------------------------------------------------------------------

namespace {
const std::atomic<bool> never_stopping{false};
const kernel_info host_kernel{.name = "host access", .key = 1};
}  // namespace

struct host_access {
  task_record* task;
  engine* the_engine;
  array_core* array = nullptr;  // with a handle, once the access is open
  open_view listed;
  scratch buffers;
  run_context context;
  host_access(engine& h, task_record* t)
      : task(t), the_engine(&h), listed(t), context(*h.state().host, h.state(), buffers, "host", never_stopping) {
    context.bind(*t);
  }
};

namespace {
// Makes and submits the task of a host access. Throws what is wrong with it.
std::unique_ptr<host_access> ask_for_access(const target& to, array_core& a, access_mode mode, const logic::point4& lo,
                                            const logic::point4& hi) {
  task_record* t = new_task(*to.the_engine);
  t->kind = task_kind::host_access;
  t->kernel = &host_kernel;
  t->body_gone = true;
  try {
    describe(*to.the_engine, t->accesses[0], a, mode, lo, hi, {}, a.spec.size, border::refuse, nullptr, 0, nullptr);
    t->access_count = 1;
  } catch (...) {
    discard(t);
    release(t);
    throw;
  }
  try {
    auto h = std::make_unique<host_access>(*to.the_engine, t);
    submit(to, t);
    return h;
  } catch (...) {
    release(t);
    throw;
  }
}

// Cancels the task of a host access, unless it has been granted meanwhile: then false.
bool cancel_access(engine& the_engine, task_record& t) {
  if (!claim(t)) return false;
  t.error = cancelled_error(t, "");
  fulfil(t, the_engine.board());
  return true;
}

// Notes that a view was not made, or that what was written through it did not come to the array. Tiles that it was to
// write anew are as lost as before; others are left as they are.
void note_not_written(task_record& t) {
  if (logic::touches_lost(t)) t.error = std::current_exception();
}
}  // namespace

host_access* open_host(array_core& a, access_mode mode, const std::array<index_t, rank_max>& lo,
                       const std::array<index_t, rank_max>& hi, raw_view& view,
                       std::chrono::steady_clock::time_point deadline) {
  const target to = target_of(a);
  std::unique_ptr<host_access> h = ask_for_access(to, a, mode, lo, hi);
  task_record* const t = h->task;
  bool granted = false;
  try {
    granted = wait_until(*t, deadline);
  } catch (...) {
    if (mode == access_mode::update || !cancel_access(*to.the_engine, *t))
      to.the_engine->placement_actor().abandon_access(*t);
    release(t);
    throw;
  }
  if (!granted && cancel_access(*to.the_engine, *t)) {  // not in time: placement forgets the task in its next turn
    release(t);
    return nullptr;
  }
  if (!granted) wait(*t);
  if (t->error) {
    struct reference {
      task_record* task;
      ~reference() { release(task); }
    } keep{t};
    throw_error(*t);
  }
  retain(&a);
  h->array = &a;
  to.the_engine->views().add(h->listed);
  try {
    view = h->context.view_of(0);
  } catch (...) {
    note_not_written(*t);
    close_host(h.release());
    throw;
  }
  return h.release();
}

void close_host(host_access* h) noexcept {
  if (!h->task->rt->birth.is_here()) return;  // a child by fork: the view is its parent's
  std::unique_ptr<host_access> gone(h);
  try {
    h->context.commit();
  } catch (...) {
    note_not_written(*h->task);
    h->context.roll_back();
  }
  task_record* t = h->task;
  h->the_engine->views().remove(h->listed);
  h->the_engine->placement_actor().report_done({&t, 1}, nullptr);
  release(t);
  release_and_wait(h->array);
}

void hold_host(host_access* h, const void* view) noexcept { open_views::move(h->listed, view); }

}  // namespace troupe::detail
