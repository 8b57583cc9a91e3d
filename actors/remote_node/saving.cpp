// What this file is for: what only a node has is saved: copied home meanwhile, or fetched before the node leaves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A node that is leaving is given nothing new, so its tiles rest, and transfers bring them home. A node that goes on is
// asked for copies of what is to be saved, each after the tasks that have been sent there and before those that will
// be: a copy's version is the one that the last of the former writes, if they go well. Tasks that cannot be repeated
// end when copies of what they wrote are here.
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/array_coherence.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "actors/remote_node/actor.hpp"

namespace troupe::detail {

namespace {

const kernel_info saving_kernel{.name = "saving", .key = 3};

}  // namespace

// Fetches all that only a leaving node has, once nothing is under way there, and again when what was asked for has
// come. When nothing is left, the node is released. A thread that has yet to tell placement what has ended there calls
// this again when it has: before that, placement does not know what only the node has.
void node_actor::save_all() {
  std::vector<tile_of> all;
  {
    std::lock_guard hold(lock_);
    if (!occupant_.has_session() || jobs_.under_way() != 0 || queued() != 0 || departure_.is_saving() || untold_ != 0)
      return;
    known_.each_dirty([&](array_core* a, std::uint32_t tile, bool in_error) {
      if (!in_error && a->keep()) all.emplace_back(a, tile);
    });
  }
  const std::size_t coming = all.empty() ? 0 : placement_.fetch_home(*this, all);
  for (const auto& [a, tile] : all) let_go(a);
  if (coming != 0) return;
  std::lock_guard hold(lock_);
  if (!occupant_.has_session() || !departure_.end()) return;
  net::writer frame;
  frame.fixed(wire::kind::released);
  occupant_.send(frame);
}

void node_actor::fetch(array_core& a, std::uint32_t tile) {
  engine* const the_engine = rt_.the_engine.load(std::memory_order_acquire);
  if (!the_engine) {
    departure_.end_saving(1);
    return;
  }
  task_record* const t = new_task(*the_engine);
  t->kind = task_kind::host_access;
  t->kernel = &saving_kernel;
  t->body_gone = true;
  const logic::box4 box = a.tile_box(tile);
  describe(*the_engine, t->accesses[0], a, access_mode::read, box.lo, box.hi, {}, a.spec.size, border::refuse, nullptr,
           0, nullptr);
  t->access_count = 1;
  extra_of(*t).listener = this;
  departure_.add(*t, a.id, tile);
  placement_.submit(t, true);
}

// ---- copies ---------------------------------------------------------------------------------------------------------

void node_actor::save(array_core& a, std::uint32_t tile) {
  const tile_of one{&a, tile};
  {
    std::lock_guard hold(lock_);
    if (occupant_.has_session() && ask_for_copy(a, tile, 0)) {
      departure_.begin_saving(1);
      return;
    }
  }
  placement_.report_not_saved({&one, 1});
  let_go(&a);
}

// Tells placement of the copies that have come. Those that it can be told of were written by tasks that are accounted
// for, which cannot fail any more.
void node_actor::tell_saved() {
  {
    std::lock_guard hold(lock_);
    if (!copies_.has_news()) return;
  }
  placement_.settle_accounts();
  copies_home::news n;
  std::uint64_t times = 0;
  {
    std::lock_guard hold(lock_);
    n = copies_.take_accounted([](const saved_tile& t) {
      const std::uint32_t now = t.array->coherence->tiles[t.tile].version.load(std::memory_order_relaxed);
      return static_cast<std::int32_t>(now - t.version) >= 0;
    });
    times = occupant_.times();
  }
  std::vector<tile_of> ended;
  for (const saved_tile& t : n.saved) ended.emplace_back(t.array, t.tile);
  ended.insert(ended.end(), n.not_saved.begin(), n.not_saved.end());
  if (!n.not_saved.empty()) placement_.report_not_saved(n.not_saved);
  if (!n.saved.empty()) placement_.report_saved(*this, times, n.saved);
  release_saved(ended);
}

// Gives back the handles of tiles that are not being saved any more.
void node_actor::release_saved(std::span<const tile_of> all) {
  if (all.empty()) return;
  for (const auto& [a, tile] : all) let_go(a);
  end_saving(all.size());
}

void node_actor::end_saving(std::size_t n) {
  const bool last = departure_.end_saving(n);
  { std::lock_guard hold(lock_); }  // a thread in wait_idle either sees it or is woken
  idle_.notify_all();
  if (last && departure_.is_under_way()) save_all();
}

// ---- what is fetched ------------------------------------------------------------------------------------------------

// Fetches tiles of arrays whose memory the caller has lent: the runtime ends, and the memory is to hold what was
// computed.
void node_actor::bring_home_lent() {
  std::vector<tile_of> all;
  {
    std::lock_guard hold(lock_);
    if (!occupant_.has_session()) return;
    known_.each_dirty([&](array_core* a, std::uint32_t tile, bool) {
      if (a->is_borrowed() && a->keep()) all.emplace_back(a, tile);
    });
    departure_.begin_saving(all.size());
  }
  for (const auto& [a, tile] : all) {
    fetch(*a, tile);
    let_go(a);
  }
}

bool node_actor::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock hold(lock_);
  return idle_.wait_until(hold, deadline, [&] {
    return !occupant_.has_session() || (jobs_.under_way() == 0 && queued() == 0 && !departure_.is_saving());
  });
}

void node_actor::granted(task_record& t) { departure_.granted(t); }

// A host access was closed, or what it was to read is in error: then there is nothing to save.
void node_actor::retired(task_record& t) { departure_.retired(t); }

void node_actor::go_on_saving() {
  const departure::progress p = departure_.take();
  if (!p.to_close.empty()) placement_.report_done(p.to_close, nullptr);
  if (p.ended.empty()) return;
  {
    std::lock_guard hold(lock_);
    for (const departure::fetched& f : p.ended)
      if (f.task->error) known_.note_in_error(f.array, f.tile);
  }
  for (const departure::fetched& f : p.ended) release(f.task);
  end_saving(p.ended.size());
}

}  // namespace troupe::detail
