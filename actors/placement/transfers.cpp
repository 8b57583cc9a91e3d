// What this file is for: data is moved to the tasks that need it; what the ends of copies mean.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/transfers.hpp"

#include <algorithm>
#include <utility>

#include <troupe/detail/engine.hpp>

#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/home_box.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/placement/internal_tasks.hpp"
#include "actors/placement/lineage_log.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/protocol/peer_loan.hpp"

namespace troupe::detail {

namespace {
// Tiles of at least so many bytes that several nodes read are passed on, by each node to so many others.
constexpr std::uint64_t spread_bytes = 256u << 10;
constexpr std::uint8_t passed_on_max = 2;
}  // namespace

// ---- which spaces reach each other ----------------------------------------------------------------------------------

void transfers::connect(memory_space a, memory_space b) {
  assignment_.connect(a, b);
  assignment_.connect(b, a);
}

void transfers::know_peers(memory_space a, memory_space b, logic::edge_cost into_a, logic::edge_cost into_b) {
  assignment_.know_link(b, a, into_a);
  assignment_.know_link(a, b, into_b);
}

void transfers::add_node(const executor_facts& node, logic::edge_cost in, logic::edge_cost out, bool lends) {
  const memory_space own = node.space;
  assignment_.know_link(host_space, own, in);
  assignment_.know_link(own, host_space, out);
  lenders_.set(own, lends);
  for (const executor_facts& f : assignment_.facts()) {
    if (f.kind != device_kind::node || f.id == node.id || assignment_.is_withdrawn(f.id)) continue;
    know_peers(own, f.space, in, out);
    if (lends) assignment_.connect(own, f.space);
    if (lenders_.contains(f.space)) assignment_.connect(f.space, own);
  }
}

// ---- before a task is handed over -----------------------------------------------------------------------------------

namespace {
// True if the task copies what it only reads from other nodes itself.
bool pulls(const task_record& t, bool on_node) { return on_node && !(t.extra && t.extra->no_pulls); }
}  // namespace

bool transfers::must_wait(task_record& t, memory_space where, bool on_node) {
  bool waits = false;
  if (t.extra) {
    t.extra->loans.clear();
    t.extra->pulls.clear();
    t.extra->home_boxes.clear();
  }
  logic::each_in_the_way(t, where, [&](array_core& a, std::uint32_t tile, coherence_entry& entry, logic::wanted w) {
    const bool is_near = w >= logic::wanted::anywhere && assignment_.reaches(where, entry.dirty_in);
    if (w == logic::wanted::only_read && is_near && pulls(t, on_node)) return;
    if (!on_node && is_near) {
      const borrowed b = borrow(t, a, tile, entry);
      if (b == borrowed::waits) waits = true;
      if (b != borrowed::refused) return;
    }
    if (brings_parts_ && !on_node && !is_near &&
        w == (where == host_space ? logic::wanted::at_home : logic::wanted::only_read)) {
      const bringing b = bring_parts(t, a, tile, entry, where != host_space);
      if (b == bringing::waits) waits = true;
      if (b != bringing::whole) return;
    }
    if (!graph_.alive(entry.moving)) begin_transfer(a, tile, entry, w == logic::wanted::nothing);
    graph_.link(entry.moving, t, true);
    waits = true;
  });
  const auto alive = [this](task_ref r) { return graph_.is_unfinished(r); };
  logic::each_part_clash(t, where, on_node, alive, [&](task_ref r) { waits = graph_.link(r, t, false) || waits; });
  return waits;
}

void transfers::leaves(task_record& t, memory_space where, bool on_node) {
  logic::note_parts(t, where, on_node, [this](task_ref r) { return graph_.is_unfinished(r); });
  if (pulls(t, on_node)) choose_sources(t, where);
  if (where != host_space) logic::note_sent(t, where, on_node);
}

// Hands an internal task to the device of a space; it comes before all that waits there.
void transfers::hand_over(task_record& t, memory_space where) {
  number(graph_, t);
  if (log_ && t.kind == task_kind::transfer) log_->note_overwriting(t, host_space);
  t.executor = static_cast<std::uint16_t>(assignment_.executor_of(where));
  task_record* const one = &t;
  executors_[t.executor]->run_tasks({&one, 1}, executor::attention::nobody);
  told_.add(*executors_[t.executor]);
}

void transfers::fetch(array_core& a, std::uint32_t tile, coherence_entry& entry) {
  begin_transfer(a, tile, entry, false);
}

// Asks the owner of a tile for it, or (`discard`: all of it will be overwritten) to give it up.
void transfers::begin_transfer(array_core& a, std::uint32_t tile, coherence_entry& entry, bool discard) {
  task_record* const transfer = make_transfer(rt_, a, tile, discard);
  hand_over(*transfer, entry.dirty_in);
  entry.moving = {transfer, transfer->sequence};
}

// ---- parts of tiles -------------------------------------------------------------------------------------------------

// Has the parts of a tile that the task reads copied home, if that is all that it does with the tile. Whole: the tile
// is on its way as a whole, or better were.
transfers::bringing transfers::bring_parts(task_record& t, array_core& a, std::uint32_t tile, coherence_entry& entry,
                                           bool on_device) {
  if (graph_.alive(entry.moving) || entry.dirty_in == no_space) return bringing::whole;
  if (logic::parts_read(t, a, tile, on_device, &parts_) == 0) return bringing::whole;
  const std::uint32_t version = entry.version.load(std::memory_order_relaxed);
  if (!entry.boxes || entry.boxes->version != version || entry.boxes->from != entry.dirty_in) {
    entry.boxes = std::make_unique<boxes_at_home>();
    entry.boxes->version = version;
    entry.boxes->from = entry.dirty_in;
  }
  boxes_at_home& boxes = *entry.boxes;
  if (boxes.refused) return bringing::whole;
  bool waits = false;
  for (const logic::box4& part : parts_) {
    const auto known =
        std::ranges::find_if(boxes.all, [&](const boxes_at_home::one& b) { return b.box->where.contains(part); });
    const boxes_at_home::one* const one = known != boxes.all.end() ? &*known : add_box(a, tile, entry, part);
    if (!one) return bringing::whole;
    if (one->coming.task) waits = graph_.link(one->coming, t, true) || waits;
    auto& read = extra_of(t).home_boxes;
    if (std::ranges::find(read, one->box) == read.end()) read.push_back(one->box);
  }
  return waits ? bringing::waits : bringing::has;
}

// Asks for another part of a tile; null if all of them take longer to copy than the tile, or there is no memory.
const boxes_at_home::one* transfers::add_box(array_core& a, std::uint32_t tile, coherence_entry& entry,
                                             const logic::box4& where) {
  boxes_at_home& boxes = *entry.boxes;
  const auto more = static_cast<std::uint64_t>(where.volume());
  const float all_ns = boxes.ns + assignment_.hop_ns(boxes.from, host_space, more * a.spec.element);
  if (!boxes.all.empty() && all_ns > assignment_.hop_ns(boxes.from, host_space, a.bytes_of(tile))) return nullptr;
  auto box = std::make_shared<home_box>();
  try {
    box->bytes = new_view_bytes(more * a.spec.element, a.spec.name);
  } catch (const error&) {
    return nullptr;
  }
  box->array = &a;
  box->tile = tile;
  box->version = boxes.version;
  box->from = boxes.from;
  box->where = where;
  boxes.ns = all_ns;
  task_record* const fetch = make_fetch(rt_, a, box);
  hand_over(*fetch, entry.dirty_in);
  return &boxes.all.emplace_back(std::move(box), task_ref{fetch, fetch->sequence});
}

// Notes that a part has come home, or has not: then the tasks that need it ask for the whole tile.
transfers::outcome transfers::box_ended(task_record& t) {
  const std::shared_ptr<home_box>& box = t.extra->home_boxes.front();
  coherence_entry& entry = t.accesses[0].array->coherence->tiles[box->tile];
  if (!entry.boxes) return outcome::superseded;
  boxes_at_home& boxes = *entry.boxes;
  const auto mine = std::ranges::find(boxes.all, box, &boxes_at_home::one::box);
  if (mine == boxes.all.end()) return outcome::superseded;
  const executor_facts& by = assignment_.facts()[t.executor];
  mine->coming = {};
  if (t.error || !box->here) {
    boxes.refused = true;
    boxes.all.erase(mine);
  } else if (t.measured_ns > 0) {
    assignment_.learn_transfer(by.space, host_space,
                               static_cast<std::uint64_t>(box->where.volume()) * box->array->spec.element,
                               t.measured_ns);
  }
  return outcome::part_at_home;
}

// ---- loans ----------------------------------------------------------------------------------------------------------

// Has a task borrow a tile from the device that owns it. Refused: the device wanted its memory back, and the tile is in
// host memory by now or on its way.
transfers::borrowed transfers::borrow(task_record& t, array_core& a, std::uint32_t tile, coherence_entry& entry) {
  const std::uint32_t version = entry.version.load(std::memory_order_relaxed);
  if (!entry.loan || entry.loan->version != version || entry.loan->from != entry.dirty_in) {
    entry.loan = std::make_shared<peer_loan>(a, tile, version, entry.dirty_in);
    task_record* const lend = make_lend(rt_, entry.loan);
    hand_over(*lend, entry.dirty_in);
    entry.lending = {lend, lend->sequence};
  }
  if (graph_.is_unfinished(entry.lending) && graph_.link(entry.lending, t, true)) return borrowed::waits;
  if (!entry.loan->is_open()) return borrowed::refused;
  auto& loans = extra_of(t).loans;
  if (std::find(loans.begin(), loans.end(), entry.loan) == loans.end()) loans.push_back(entry.loan);
  return borrowed::has;
}

// True if a task in space `to` can copy from space `s`.
bool transfers::gives(memory_space s, memory_space to) const {
  if (s == host_space) return true;
  return assignment_.reaches(to, s) && !assignment_.is_paused(assignment_.executor_of(s));
}

// Chooses the space from which a tile is copied to `where`. The owner passes a large tile on to two others, each of
// those to two others; so a tile that many read is sent by all of them. A small one comes from its owner.
memory_space transfers::source_of(const array_core& a, std::uint32_t tile, coherence_entry& entry, memory_space where,
                                  bool whole) {
  const memory_space root = entry.dirty_in;
  if (!whole || a.bytes_of(tile) < spread_bytes) return root;
  const std::uint32_t version = entry.version.load(std::memory_order_relaxed);
  if (!entry.spread) entry.spread = std::make_unique<tile_spread>();
  tile_spread& s = *entry.spread;
  if (s.version != version || s.holders.empty() || s.holders.front().space != root) {
    s.version = version;
    s.holders.assign({{root}});
  }
  const auto has_it = [&](memory_space h) { return h == root || entry.cached.contains(h); };
  if (std::ranges::find(s.holders, where, &tile_spread::holder::space) != s.holders.end()) return root;
  memory_space from = root;
  for (tile_spread::holder& h : s.holders) {
    if (h.passed_on == passed_on_max || !has_it(h.space) || !gives(h.space, where)) continue;
    ++h.passed_on;
    from = h.space;
    break;
  }
  s.holders.push_back({where});
  return from;
}

// Notes in the task from where a node is to copy each tile that the task reads.
void transfers::choose_sources(task_record& t, memory_space where) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode != access_mode::read) continue;
    array_core& a = *x.array;
    logic::leaves_host(a);
    const auto choose = [&](std::uint32_t tile, bool whole) {
      coherence_entry& entry = a.coherence->tiles[tile];
      const memory_space root = entry.dirty_in;
      if (root == where || (root == host_space && entry.cached.contains(where))) return;
      const memory_space from = source_of(a, tile, entry, where, whole);
      if (from == host_space) return;
      extra_of(t).pulls.push_back({&a, tile, entry.version.load(std::memory_order_relaxed), from});
    };
    if (logic::is_whole(x)) {
      choose(x.tile, true);
      continue;
    }
    logic::each_touched(*x.where, [&](const logic::box4& b) {
      a.each_tile(b, [&](std::uint32_t tile, const logic::box4& all) { choose(tile, b.contains(all)); });
    });
  }
}

// ---- what has ended or was lost -------------------------------------------------------------------------------------

void transfers::rescue(array_core& a, std::uint32_t tile, coherence_entry& entry, std::exception_ptr lost) {
  // A borrower that has written it since will report so; till then no other task needs it.
  const bool replaced = entry.loan && entry.loan->is_replaced();
  entry.loan = nullptr;
  if (entry.cached.empty() || replaced) {
    entry.dirty_in = host_space;
    entry.lost = std::move(lost);
    return;
  }
  const auto holder = static_cast<memory_space>(entry.cached.first());
  task_record* const rescue = make_rescue(rt_, a, tile, std::move(lost));
  hand_over(*rescue, holder);
  entry.dirty_in = no_space;
  entry.moving = {rescue, rescue->sequence};
}

transfers::outcome transfers::ended(task_record& t) {
  if (t.kind == task_kind::fetch) return box_ended(t);
  const access& x = t.accesses[0];
  const executor_facts& by = assignment_.facts()[t.executor];
  if (log_) log_->note_at_home(t, host_space);
  coherence_entry& entry = x.array->coherence->tiles[x.tile];
  if (entry.moving.task != &t) return outcome::superseded;  // its device failed, and another one has been asked
  entry.moving = {};
  if (x.mode == access_mode::update && entry.dirty_in != no_space) return outcome::superseded;  // written meanwhile
  const memory_space from = std::exchange(entry.dirty_in, host_space);
  entry.loan = nullptr;
  entry.boxes = nullptr;
  if (t.measured_ns > 0)
    assignment_.learn_transfer(by.space, host_space,
                               static_cast<std::uint64_t>(x.array->tile_box(x.tile).volume()) * x.array->spec.element,
                               t.measured_ns);
  if (!t.error) return outcome::at_home;
  if (x.mode == access_mode::update) {
    entry.cached.erase(by.space);
    rescue(*x.array, x.tile, entry, t.error);
    return entry.dirty_in == no_space ? outcome::asked_elsewhere : outcome::at_home;
  }
  if (from != no_space && by.kind == device_kind::node) {
    entry.dirty_in = from;
    return outcome::lost_with_node;
  }
  entry.cached.clear();
  entry.lost = t.error;
  return outcome::at_home;
}

// ---- one array ------------------------------------------------------------------------------------------------------

bool transfers::bring_home(array_core& a) {
  bool any = false;
  for (std::uint32_t t = 0; t < a.tile_count; ++t) {
    coherence_entry& entry = a.coherence->tiles[t];
    if (entry.dirty_in == host_space) continue;
    fetch(a, t, entry);
    any = true;
  }
  return any;
}

void transfers::forget_copies(array_core& a) {
  std::exchange(a.coherence->spaces, {}).each([&](std::size_t s) {
    hand_over(*make_forget(rt_, a), static_cast<memory_space>(s));
  });
}

}  // namespace troupe::detail
