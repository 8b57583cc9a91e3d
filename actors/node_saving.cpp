// What this file is for: a node that is leaving: what only it has is fetched before it goes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A node that is leaving is given nothing new, so its tiles rest, and transfers bring them home. What is to be saved from
// one that goes on is read by a host access that shows it to nobody: it takes its place in the order of the program.
#include "actors/node_actor.hpp"
#include "actors/task_errors.hpp"

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
        if (c.dirty && known.core->keep()) all.emplace_back(known.core, tile);
  }
  const std::size_t coming = all.empty() ? 0 : placement_.fetch_home(*this, all);
  for (const auto& [a, tile] : all) release(a);
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
  placement_.submit(t, true);
}

void node_actor::save(array_core& a, std::uint32_t tile) {
  saving_.fetch_add(1);
  fetch(a, tile);
  release(&a);
}

// The runtime ends, and who has lent the memory goes on: it is to hold what was computed.
void node_actor::bring_home_lent() {
  std::vector<std::pair<array_core*, std::uint32_t>> all;
  {
    std::lock_guard hold(lock_);
    if (!session_) return;
    for (auto& [id, known] : arrays_)
      for (auto& [tile, c] : known.tiles)
        if (c.dirty && known.core->spec.adopted && known.core->keep()) all.emplace_back(known.core, tile);
    saving_.fetch_add(all.size());
  }
  for (const auto& [a, tile] : all) {
    fetch(*a, tile);
    release(a);
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
  for (task_record* t : gone) release(t);
  if (gone.empty()) return;
  const bool last = saving_.fetch_sub(gone.size()) == gone.size();
  { std::lock_guard hold(lock_); }  // who waits either sees it or is told
  idle_.notify_all();
  if (last && leaving_.load(std::memory_order_relaxed)) save_all();
}

}  // namespace troupe::detail
