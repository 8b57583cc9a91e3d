// What this file is for: other nodes in placement: they join, pause, and send once the turn has been left.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "actors/logic/data/directory.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

namespace {
// Tiles of at least so many bytes that several nodes read are passed on, by each node to so many others.
constexpr std::uint64_t spread_bytes = 256u << 10;
constexpr std::uint8_t passed_on_max = 2;
}  // namespace

// Leaves the turn, then calls the nodes and listeners that were told something in it.
void placement::leave_and_tell() {
  const notifications::calls calls = notifications_.take([&](const notifications::tile& t) -> executor* {
    const memory_space in = t.array->homes->tiles[t.number].dirty_in;
    if (in == host_space || in == no_space) return nullptr;
    executor* const of = executors_[assignment_.executor_of(in)];
    return of->facts().kind == device_kind::node ? of : nullptr;
  });
  turns_.leave();
  calls.make();
}

// Admits a node. All nodes of a cluster know each other; costs of copies between two others are not known here, so
// those of the link to this node are assumed.
void placement::admit_node(executor& e, int slots, logic::edge_cost in, logic::edge_cost out, bool lends,
                           const std::vector<resource>& has) {
  turns_.take();
  admission_.add_node(e.facts().id, has);
  const memory_space own = e.facts().space;
  know_link(own, in, out);
  assignment_.restore(e.facts().id, slots);
  if (log_) log_->note_joined(e.facts().id);
  lenders_.set(own, lends);
  for (const executor_facts& f : facts()) {
    if (f.kind != device_kind::node || f.id == e.facts().id || assignment_.is_withdrawn(f.id)) continue;
    know_peers(own, f.space, in, out);
    if (lends) assignment_.connect(own, f.space);
    if (lenders_.contains(f.space)) assignment_.connect(f.space, own);
  }
  std::vector<task_record*> kept;  // tasks kept while this node was no candidate
  assignment_.drop_kept([&](task_record& t) { kept.push_back(&t); });
  for (task_record* t : kept) assign(*t);
  try_absent();
  serve(nullptr);  // leaves the turn
}

// Uses transfers like those that a task waits for, and not accesses in program order: all that has been spawned and not
// started would have to run before those.
std::size_t placement::fetch_home(const executor& e, std::span<const std::pair<array_core*, std::uint32_t>> all) {
  std::size_t coming = 0;
  with_turn([&] {
    for (const auto& [a, tile] : all) {
      tile_home& home = a->homes->tiles[tile];
      if (home.dirty_in != e.facts().space) continue;
      ++coming;
      if (deps_.alive(home.moving)) continue;
      fetch(*a, tile, home);
    }
  });
  return coming;
}

// ---- from one node to another ---------------------------------------------------------------------------------------

// True if a task in space `to` can copy from space `s`.
bool placement::gives(memory_space s, memory_space to) const {
  if (s == host_space) return true;
  return assignment_.reaches(to, s) && !assignment_.is_paused(assignment_.executor_of(s));
}

// Chooses the space from which a tile is copied to `where`. The owner passes a large tile on to two others, each of
// those to two others; so a tile that many read is sent by all of them. A small one comes from its owner.
memory_space placement::source_of(const array_core& a, std::uint32_t tile, tile_home& home, memory_space where,
                                  bool whole) {
  const memory_space root = home.dirty_in;
  if (!whole || a.bytes_of(tile) < spread_bytes) return root;
  const std::uint32_t version = home.version.load(std::memory_order_relaxed);
  if (!home.spread) home.spread = std::make_unique<tile_spread>();
  tile_spread& s = *home.spread;
  if (s.version != version || s.holders.empty() || s.holders.front().space != root) {
    s.version = version;
    s.holders.assign({{root}});
  }
  const auto has_it = [&](memory_space h) { return h == root || home.cached.contains(h); };
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
void placement::choose_sources(task_record& t, memory_space where) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode != access_mode::read) continue;
    array_core& a = *x.array;
    if (!a.homes) a.homes = std::make_unique<array_homes>(a.tile_count);
    const auto choose = [&](std::uint32_t tile, bool whole) {
      tile_home& home = a.homes->tiles[tile];
      const memory_space root = home.dirty_in;
      if (root == where || (root == host_space && home.cached.contains(where))) return;
      const memory_space from = source_of(a, tile, home, where, whole);
      if (from == host_space) return;
      if (!t.extra) t.extra = new task_extra;
      t.extra->pulls.push_back({&a, tile, home.version.load(std::memory_order_relaxed), from});
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

void placement::hold_back(const executor& e, bool back) {
  with_turn([&] {
    assignment_.pause(e.facts().id, back);
    admission_.look_again();
  });
}

void placement::correct_link(memory_space node, std::uint64_t bytes, std::chrono::nanoseconds there,
                             std::chrono::nanoseconds back, std::chrono::nanoseconds round_trip) {
  const auto ns = [](std::chrono::nanoseconds t) { return static_cast<float>(t.count()); };
  with_turn([&] {
    assignment_.correct_link(host_space, node, bytes, ns(there), ns(round_trip));
    assignment_.correct_link(node, host_space, bytes, ns(back), ns(round_trip));
  });
}

// ---- what nodes tell of what they have to do ------------------------------------------------------------------------

void placement::know_others(const executor& e, std::chrono::nanoseconds busy) {
  with_turn([&] { assignment_.know_others(e.facts().id, static_cast<float>(busy.count())); });
}

// Counts queued tasks outside of the turn: executors may have to ask their threads.
placement::load_report placement::load(std::span<const task_listener* const> owners) {
  load_report r;
  std::size_t queued = 0;
  for (const executor* e : executors_) {
    if (e->facts().kind == device_kind::node) continue;
    r.slots += e->facts().slots;
    queued += e->unstarted();
  }
  with_turn([&] {
    const logic::assignment::load all = assignment_.given();
    const auto running =
        std::max<std::int64_t>(0, static_cast<std::int64_t>(all.tasks) - static_cast<std::int64_t>(queued));
    r.busy = static_cast<int>(std::min<std::int64_t>(running, r.slots));
    for (const task_listener* o : owners) {
      const float ns = std::max(0.0f, all.ns - assignment_.given(o).ns) / static_cast<float>(std::max(1, r.slots));
      r.others.emplace_back(static_cast<std::int64_t>(ns));
    }
  });
  r.queued = queued + assignment_.kept();
  return r;
}

}  // namespace troupe::detail
