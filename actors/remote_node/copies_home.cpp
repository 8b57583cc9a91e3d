// What this file is for: what only a node has is copied home while it goes on, or fetched before it goes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A node that is leaving is given nothing new, so its tiles rest, and transfers bring them home. Of what is to be saved
// from one that goes on copies are asked for, each after what has been sent there and before what will be: its version is
// the one that the last of those writes, if they go well. Tasks that cannot be repeated end when what they wrote is here.
#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "actors/remote_node/actor.hpp"

namespace troupe::detail {

namespace {

const kernel_info saving_kernel{.name = "saving", .key = 3};

}  // namespace

// Once nothing is under way there, and again when what was asked for has come; when nothing is left, it may go.
void node_actor::save_all() {
  std::vector<std::pair<array_core*, std::uint32_t>> all;
  {
    std::lock_guard hold(lock_);
    if (!session_ || under_way_ != 0 || queued() != 0 || saving_.load() != 0) return;
    for (auto& [id, known] : arrays_)
      for (auto& [tile, c] : known.tiles)
        if (c.dirty && !c.in_error && known.core->keep()) all.emplace_back(known.core, tile);
  }
  const std::size_t coming = all.empty() ? 0 : placement_.fetch_home(*this, all);
  for (const auto& [a, tile] : all) let_go(a);
  if (coming != 0) return;
  std::lock_guard hold(lock_);
  if (!session_ || !leaving_.exchange(false, std::memory_order_relaxed)) return;
  net::writer frame;
  frame.fixed(wire::kind::released);
  session_->send(frame.view());
}

void node_actor::fetch(array_core& a, std::uint32_t tile) {
  engine* const house = link_.house.load(std::memory_order_acquire);
  if (!house) {
    saving_.fetch_sub(1);
    return;
  }
  task_record* const t = new_task(*house);
  t->kind = task_kind::host_access;
  t->kernel = &saving_kernel;
  t->body_gone = true;
  const logic::box4 box = a.tile_box(tile);
  describe(*house, t->accesses[0], a, access_mode::read, box.lo, box.hi, {}, a.spec.size, border::refuse, nullptr, 0,
           nullptr);
  t->access_count = 1;
  extra_of(*t).listener = this;
  {
    std::lock_guard hold(saving_lock_);
    fetched_[t] = {a.id, tile};
  }
  placement_.submit(t, true);
}

// ---- copies ---------------------------------------------------------------------------------------------------------

void node_actor::save(array_core& a, std::uint32_t tile) {
  const std::pair<array_core*, std::uint32_t> one{&a, tile};
  {
    std::lock_guard hold(lock_);
    if (session_ && ask_for_copy(a, tile, 0)) {
      saving_.fetch_add(1);
      return;
    }
  }
  placement_.report_not_saved({&one, 1});
  let_go(&a);
}

// False: there is nothing that only the node has.
bool node_actor::ask_for_copy(array_core& a, std::uint32_t tile, std::uint64_t for_job) {
  const auto known = arrays_.find(a.id);
  if (known == arrays_.end()) return false;
  const auto at = known->second.tiles.find(tile);
  if (at == known->second.tiles.end()) return false;
  const copy& c = at->second;
  const std::uint32_t version = a.homes->tiles[tile].version.load(std::memory_order_relaxed);
  if (!c.whole || !c.dirty || c.in_error || static_cast<std::int32_t>(c.version - version) < 0) return false;
  const std::uint64_t number = (++generation_ << place_bits) | no_job;
  copy_home& h = copies_[number];
  h.what.array = &a;
  h.what.tile = tile;
  h.what.version = c.version;
  h.write = c.last_write;
  h.for_job = for_job;
  ++known->second.coming_home;
  flush();  // it comes after what has been sent before
  net::writer frame;
  frame.fixed(wire::kind::copy);
  wire::put(frame, wire::box_request{number, a.id, {tile, a.tile_box(tile)}});
  session_->send(frame.view());
  return true;
}

void node_actor::copy_arrived(std::uint64_t number, bool whole) {
  auto at = copies_.extract(number);
  copy_home& h = at.mapped();
  array_core& a = *h.what.array;
  if (job* const j = h.for_job != 0 ? find_job(h.for_job) : nullptr) {
    if (whole && !h.spoilt) j->brought.push_back(std::move(h.what));
    --j->copies;
    finish_awaited(*j);
  } else if (h.for_job == 0 && whole && !h.spoilt) {
    saved_.push_back(std::move(h));
  } else if (h.for_job == 0) {
    not_saved_.emplace_back(&a, h.what.tile);
  }
  one_less_coming(a.id);
}

// The write has failed: from it on versions are others than was thought.
void node_actor::spoil_copies(const array_core& a, std::uint32_t tile, std::uint64_t write) {
  const auto is_of = [&](const copy_home& h) { return h.what.array == &a && h.what.tile == tile && h.write >= write; };
  for (auto& [number, h] : copies_) h.spoilt = h.spoilt || is_of(h);
  std::erase_if(saved_, [&](const copy_home& h) {
    if (is_of(h)) not_saved_.emplace_back(h.what.array, h.what.tile);
    return is_of(h);
  });
}

// The session has ended: nobody writes to their memory any more. Gives those of which a handle is held.
std::vector<std::pair<array_core*, std::uint32_t>> node_actor::drop_copies() {
  std::vector<std::pair<array_core*, std::uint32_t>> all = std::exchange(not_saved_, {});
  for (const auto& [number, h] : copies_)
    if (h.for_job == 0) all.emplace_back(h.what.array, h.what.tile);
  for (const copy_home& h : saved_) all.emplace_back(h.what.array, h.what.tile);
  copies_.clear();
  saved_.clear();
  return all;
}

// Without the lock. Of what has come, that which has been written by tasks that are accounted for: these cannot fail.
void node_actor::tell_saved() {
  std::vector<saved_tile> tiles;
  std::vector<std::pair<array_core*, std::uint32_t>> not_saved, ended;
  std::uint64_t times = 0;
  {
    std::lock_guard hold(lock_);
    if (saved_.empty() && not_saved_.empty()) return;
  }
  placement_.settle_accounts();
  {
    std::lock_guard hold(lock_);
    not_saved.swap(not_saved_);
    std::erase_if(saved_, [&](copy_home& h) {
      const std::uint32_t now = h.what.array->homes->tiles[h.what.tile].version.load(std::memory_order_relaxed);
      if (static_cast<std::int32_t>(now - h.what.version) < 0) return false;
      ended.emplace_back(h.what.array, h.what.tile);
      tiles.push_back(std::move(h.what));
      return true;
    });
    times = joined_;
  }
  if (!not_saved.empty()) placement_.report_not_saved(not_saved);
  if (!tiles.empty()) placement_.report_saved(*this, times, tiles);
  ended.insert(ended.end(), not_saved.begin(), not_saved.end());
  release_saved(ended);
}

// Those of which a handle was held.
void node_actor::release_saved(std::span<const std::pair<array_core*, std::uint32_t>> all) {
  if (all.empty()) return;
  for (const auto& [a, tile] : all) let_go(a);
  const bool last = saving_.fetch_sub(all.size()) == all.size();
  { std::lock_guard hold(lock_); }  // who waits either sees it or is told
  idle_.notify_all();
  if (last && leaving_.load(std::memory_order_relaxed)) save_all();
}

// ---- what is fetched ------------------------------------------------------------------------------------------------

// The runtime ends, and who has lent the memory goes on: it is to hold what was computed.
void node_actor::bring_home_lent() {
  std::vector<std::pair<array_core*, std::uint32_t>> all;
  {
    std::lock_guard hold(lock_);
    if (!session_) return;
    for (auto& [id, known] : arrays_)
      for (auto& [tile, c] : known.tiles)
        if (c.dirty && known.core->is_borrowed() && known.core->keep()) all.emplace_back(known.core, tile);
    saving_.fetch_add(all.size());
  }
  for (const auto& [a, tile] : all) {
    fetch(*a, tile);
    let_go(a);
  }
}

bool node_actor::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock hold(lock_);
  return idle_.wait_until(hold, deadline,
                          [&] { return !session_ || (under_way_ == 0 && queued() == 0 && saving_.load() == 0); });
}

void node_actor::granted(task_record& t) {
  std::lock_guard hold(saving_lock_);
  to_close_.push_back(&t);
}

// Closed, or what it was to read is in error: then there is nothing to save.
void node_actor::retired(task_record& t) {
  std::lock_guard hold(saving_lock_);
  to_release_.push_back(&t);
}

void node_actor::go_on_saving() {
  std::vector<task_record*> close, gone;
  {
    std::lock_guard hold(saving_lock_);
    close.swap(to_close_);
    gone.swap(to_release_);
  }
  if (!close.empty()) placement_.report_done(close, nullptr);
  if (gone.empty()) return;
  {
    std::lock_guard hold(lock_);
    std::lock_guard saving(saving_lock_);
    for (task_record* t : gone) {
      const auto [array, tile] = fetched_.extract(t).mapped();
      if (!t->error) continue;
      if (const auto known = arrays_.find(array); known != arrays_.end()) known->second.tiles[tile].in_error = true;
    }
  }
  for (task_record* t : gone) release(t);
  const bool last = saving_.fetch_sub(gone.size()) == gone.size();
  { std::lock_guard hold(lock_); }  // who waits either sees it or is told
  idle_.notify_all();
  if (last && leaving_.load(std::memory_order_relaxed)) save_all();
}

}  // namespace troupe::detail
