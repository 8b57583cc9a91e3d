// What this file is for: boxes that enter and leave one process's part of a recorded graph.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/graph_part.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/logic/data/home_box.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

const kernel_info graph_part_kernel{.name = "graph part", .key = 0x67726170685f7061, .portable = true};

// ---- nodes ----------------------------------------------------------------------------------------------------------

/// What a node's record keeps in its storage.
struct graph_part::node_body {
  graph_part* part;
  std::uint32_t index;  // in in_, out_, fills_ or merges_
  static node_body& of(task_record& t) { return *std::launder(reinterpret_cast<node_body*>(t.storage)); }
};

const task_ops graph_part::sender_ops{
    [](task_record& t, task_context& c) { node_body::of(t).part->send(node_body::of(t).index, t, c); },
    [](task_record&) {}, [](task_record&) noexcept {}, [](task_record&) noexcept -> void* { return nullptr; },
    kernel_info{.name = "send to another part"}};
const task_ops graph_part::receiver_ops{
    [](task_record& t, task_context& c) { node_body::of(t).part->put(node_body::of(t).index, t, c); },
    [](task_record&) {}, [](task_record&) noexcept {}, [](task_record&) noexcept -> void* { return nullptr; },
    kernel_info{.name = "take from another part"}};
const task_ops graph_part::filler_ops{
    [](task_record& t, task_context& c) { node_body::of(t).part->fill(node_body::of(t).index, t, c); },
    [](task_record&) {}, [](task_record&) noexcept {}, [](task_record&) noexcept -> void* { return nullptr; },
    kernel_info{.name = "begin a partial"}};
const task_ops graph_part::merger_ops{
    [](task_record& t, task_context& c) { node_body::of(t).part->merge(node_body::of(t).index, t, c); },
    [](task_record&) {}, [](task_record&) noexcept {}, [](task_record&) noexcept -> void* { return nullptr; },
    kernel_info{.name = "add a partial"}};

graph_part::graph_part(part_name n, outlet& o, std::vector<array_core*> shadows, std::vector<bound_tile> bound)
    : name_(std::move(n)), outlet_(o), shadows_(std::move(shadows)), bound_(std::move(bound)) {
  for (array_core* a : shadows_) {  // others own their tiles
    a->stays_packed.store(true, std::memory_order_relaxed);
    a->places.store(placing::never, std::memory_order_relaxed);
  }
}

graph_part::~graph_part() {
  for (array_core* a : shadows_) release(a);
}

task_record* graph_part::make_node(runtime_state& rt, std::uint32_t index, const task_ops& ops) {
  task_record* const t = take_record(rt);
  t->references.store(1, std::memory_order_relaxed);
  t->ops = &ops;
  t->kernel = &ops.closure;
  t->kind = task_kind::recorded;
  t->body_gone = true;
  new (t->storage) node_body{this, index};
  return t;
}

task_record* graph_part::make_sender(runtime_state& rt, std::uint32_t crossing, std::uint32_t to) {
  task_record* const t = make_node(rt, static_cast<std::uint32_t>(out_.size()), sender_ops);
  out_.push_back({crossing, to, t});
  return t;
}

task_record* graph_part::make_receiver(runtime_state& rt, std::uint32_t crossing, std::uint32_t from,
                                       std::size_t bytes) {
  const auto index = static_cast<std::uint32_t>(in_.size());
  if (!in_of_crossing_.emplace(crossing, index).second)
    throw error(errc::protocol_error, "a crossing that leads here twice");
  task_record* const t = make_node(rt, index, receiver_ops);
  in_.push_back({crossing, from, 0, bytes, t, false, {}});
  return t;
}

task_record* graph_part::make_filler(runtime_state& rt, const std::array<std::byte, fill_bytes_max>& element) {
  fills_.push_back(element);
  return make_node(rt, static_cast<std::uint32_t>(fills_.size() - 1), filler_ops);
}

task_record* graph_part::make_merger(runtime_state& rt, combine_fn by) {
  merges_.push_back(by);
  return make_node(rt, static_cast<std::uint32_t>(merges_.size() - 1), merger_ops);
}

bool graph_part::is_receiver(const task_record& t) const { return t.ops == &receiver_ops; }

void graph_part::take_nodes(const recorded_graph& g) {
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    task_record& t = *g.nodes[i].task;
    if (t.ops == &receiver_ops) in_[node_body::of(t).index].node = i;
    if (t.ops == &sender_ops) out_of_node_.emplace(i, node_body::of(t).index);
  }
}

// Bodies of the nodes.

void graph_part::send(std::uint32_t index, task_record& t, task_context& c) {
  const outgoing& o = out_[index];
  net::pieces rows;
  if (t.access_count != 0) rows = rows_of(c.view_of(0), t.accesses[0].array->spec.element);
  outlet_.send(name_, number_, o.to, o.crossing, rows);
}

void graph_part::put(std::uint32_t index, task_record& t, task_context& c) {
  incoming& from = in_[index];
  if (t.access_count != 0) copy_into(rows_of(c.view_of(0), t.accesses[0].array->spec.element), from.bytes.data());
  from.bytes = {};
}

void graph_part::fill(std::uint32_t index, task_record& t, task_context& c) const {
  const std::size_t element = t.accesses[0].array->spec.element;
  for (const auto& row : rows_of(c.view_of(0), element))
    for (std::size_t i = 0; i < row.size(); i += element) std::memcpy(row.data() + i, fills_[index].data(), element);
}

void graph_part::merge(std::uint32_t index, task_record& t, task_context& c) const {
  const raw_view from = c.view_of(0), to = c.view_of(1);
  const auto element = static_cast<index_t>(t.accesses[0].array->spec.element);
  // Along the last dimension both lie without gaps; the boxes are the same.
  const int last = t.accesses[0].array->spec.rank - 1;
  std::array<index_t, rank_max> at{};
  for (;;) {
    index_t of_from = 0, of_to = 0;
    for (int d = 0; d < last; ++d) {
      of_from += at[static_cast<std::size_t>(d)] * from.stride[static_cast<std::size_t>(d)];
      of_to += at[static_cast<std::size_t>(d)] * to.stride[static_cast<std::size_t>(d)];
    }
    const auto n = static_cast<std::size_t>(from.hi[static_cast<std::size_t>(last)]) -
                   static_cast<std::size_t>(from.lo[static_cast<std::size_t>(last)]);
    merges_[index]->combine(to.data + of_to * element, from.data + of_from * element, n);
    int d = last - 1;
    while (d >= 0 && ++at[static_cast<std::size_t>(d)] ==
                         from.hi[static_cast<std::size_t>(d)] - from.lo[static_cast<std::size_t>(d)])
      at[static_cast<std::size_t>(d--)] = 0;
    if (d < 0) return;
  }
}

void graph_part::left_out(std::uint32_t node) {
  const auto found = out_of_node_.find(node);
  if (found == out_of_node_.end()) return;
  const outgoing& o = out_[found->second];
  outlet_.send_failure(name_, number_, o.to, o.crossing, run_->failure());
}

// ---- a run ----------------------------------------------------------------------------------------------------------

namespace {
// Returns the copy that the task has been given of a box which it reads, or null: the tile has it.
const home_box* copy_of(const task_record& t, const array_core& a, std::uint32_t tile, const logic::box4& box) {
  if (!t.extra) return nullptr;
  for (const auto& b : t.extra->home_boxes)
    if (b->array == &a && b->tile == tile && b->where.contains(box)) return b.get();
  return nullptr;
}

// True if the access is what the part says that it holds: the tile, or one box of it that is read.
bool is_access_to(const graph_part::bound_tile& b, const access& x) {
  if (!b.box) return !x.where && b.shadow->tile_box(b.tile) == x.array->tile_box(x.tile);
  return x.where && x.mode == access_mode::read && logic::view_box(*x.where) == *b.box && logic::is_plain(*x.where) &&
         b.tile < x.array->tile_count && b.shadow->tile_box(b.tile) == x.array->tile_box(b.tile);
}
}  // namespace

// Puts the memory of the task's tiles into the shadows.
void graph_part::bind(task_record& t) {
  std::size_t n = 0, first = 0;  // the first box of a tile
  const array_core* of = nullptr;
  bool has_copies = false;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    if (n == bound_.size()) throw error(errc::protocol_error, "a part of a graph that holds other tiles");
    const bound_tile& b = bound_[n];
    const bool is_first = n == 0 || b.shadow != bound_[first].shadow || b.tile != bound_[first].tile;
    if (is_first) {
      first = n;
      of = x.array;
    }
    ++n;
    if (b.shadow->spec.element != x.array->spec.element || !is_access_to(b, x))
      throw error(errc::protocol_error, "a part of a graph that holds tiles of other sizes");
    // The boxes of a tile are shown in one memory: that of the tile, or copies of all of them.
    const home_box* const copy = b.box ? copy_of(t, *x.array, b.tile, *b.box) : nullptr;
    if (x.array != of || (!is_first && has_copies != (copy != nullptr)))
      throw error(errc::protocol_error, "a part of a graph that holds boxes of several tiles as those of one");
    has_copies = copy != nullptr;
    if (copy) {
      use_copy(*copy, first, *b.box);
      continue;
    }
    const std::uint32_t tile = b.box ? b.tile : x.tile;  // grids may differ
    tile_bytes& to = b.shadow->bytes[b.tile];
    std::byte* const bytes = host_tile(*t.rt, *x.array, tile, x.mode == access_mode::write);
    to.room.store(x.array->bytes[tile].room.load(std::memory_order_acquire), std::memory_order_release);
    to.data.store(bytes, std::memory_order_release);
  }
  if (n != bound_.size()) throw error(errc::protocol_error, "a part of a graph that holds fewer tiles");
}

// Puts a box of a tile that is elsewhere into memory of the part's own, which the tile's shadow has for the run.
// `first`: of the tile's boxes in bound_.
void graph_part::use_copy(const home_box& from, std::size_t first, const logic::box4& box) {
  const bound_tile& b = bound_[first];
  const array_core& a = *b.shadow;
  if (copies_.empty()) copies_.resize(bound_.size());
  if (!copies_[first]) copies_[first] = new_view_bytes(a.bytes_of(b.tile), a.spec.name);
  const logic::box4 tile = a.tile_box(b.tile);
  const auto to_step = packed_strides(tile), from_step = packed_strides(from.where);
  const std::size_t row = static_cast<std::size_t>(box.size(a.spec.rank - 1)) * a.spec.element;
  logic::each_row(box, a.spec.rank - 1, [&](const logic::point4& at) {
    index_t to = 0, source = 0;
    for (int d = 0; d < rank_max; ++d) {
      to += (at[d] - tile.lo[d]) * to_step[d];
      source += (at[d] - from.where.lo[d]) * from_step[d];
    }
    std::memcpy(copies_[first].get() + static_cast<std::size_t>(to) * a.spec.element,
                from.bytes.get() + static_cast<std::size_t>(source) * a.spec.element, row);
  });
  b.shadow->bytes[b.tile].room.store(nullptr, std::memory_order_release);
  b.shadow->bytes[b.tile].data.store(copies_[first].get(), std::memory_order_release);
}

void graph_part::unbind() noexcept {
  for (const bound_tile& b : bound_) {
    b.shadow->bytes[b.tile].data.store(nullptr, std::memory_order_release);
    b.shadow->bytes[b.tile].room.store(nullptr, std::memory_order_release);
  }
}

void graph_part::begin(graph_run& g, task_record& t, std::function<void()> call) {
  try {
    bind(t);
  } catch (...) {
    unbind();
    throw;
  }
  const std::lock_guard hold(lock_);
  run_ = &g;
  number_ = t.extra->run_of_part;
  newest_ = std::max(newest_, number_);
  call_ = std::move(call);
  for (incoming& i : in_) {
    i.is_here = false;
    i.bytes = {};
  }
  for (incoming& i : in_) {
    if (const auto found = early_.find({number_, i.crossing}); found != early_.end())
      deliver(i, std::move(found->second));
    else if (broken_)
      deliver(i, {{}, broken_});
    else if (const auto gone = lost_.find({number_, i.from}); gone != lost_.end())
      deliver(i, {{}, gone->second});
  }
  forget_before(number_ + 1);
}

void graph_part::end() noexcept {
  {
    const std::lock_guard hold(lock_);
    run_ = nullptr;
    call_ = {};
  }
  unbind();
}

void graph_part::forget_before(std::uint64_t run) {
  early_.erase(early_.begin(), early_.lower_bound({run, 0}));
  lost_.erase(lost_.begin(), lost_.lower_bound({run, 0}));
}

// ---- arrivals -------------------------------------------------------------------------------------------------------

const graph_part::incoming& graph_part::incoming_of(std::uint32_t crossing) const {
  const auto found = in_of_crossing_.find(crossing);
  if (found == in_of_crossing_.end()) throw error(errc::protocol_error, "a crossing that does not lead here");
  return in_[found->second];
}

std::size_t graph_part::bytes_of(std::uint32_t crossing) const { return incoming_of(crossing).size; }

const node_id& graph_part::sender_of(std::uint32_t crossing) const {
  return name_.members.at(incoming_of(crossing).from);
}

void graph_part::deliver(incoming& i, arrival a) {
  if (std::exchange(i.is_here, true)) return;
  i.bytes = std::move(a.bytes);
  if (a.failure) run_->fail(a.failure);
  if (run_->arrive(i.node, !a.failure)) call_();
}

void graph_part::arrive(std::uint64_t run, std::uint32_t crossing, std::vector<std::byte> bytes,
                        std::exception_ptr failure) {
  auto& to = const_cast<incoming&>(incoming_of(crossing));
  if (!failure && bytes.size() != to.size) throw error(errc::protocol_error, "a crossing of another size");
  const std::lock_guard hold(lock_);
  arrival a{std::move(bytes), std::move(failure)};
  if (run_ && run == number_) return deliver(to, std::move(a));
  if (run <= number_) return;  // of a run that was given up here
  newest_ = std::max(newest_, run);
  if (run + runs_ahead >= newest_) early_.try_emplace({run, crossing}, std::move(a));
  if (newest_ > runs_ahead) forget_before(newest_ - runs_ahead);  // these never began here
}

void graph_part::lost(std::uint64_t run, std::uint32_t part, const std::exception_ptr& why) {
  const std::lock_guard hold(lock_);
  if (run_ && run == number_) {
    for (incoming& i : in_)
      if (i.from == part) deliver(i, {{}, why});
  } else if (run > number_) {
    newest_ = std::max(newest_, run);
    lost_.try_emplace({run, part}, why);
    if (newest_ > runs_ahead) forget_before(newest_ - runs_ahead);
  }
}

void graph_part::break_off(const std::exception_ptr& why) {
  const std::lock_guard hold(lock_);
  if (!broken_) broken_ = why;
  if (run_)
    for (incoming& i : in_) deliver(i, {{}, why});
}

}  // namespace troupe::detail
