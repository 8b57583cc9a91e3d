// What this file is for: handing out nodes of a run, counting predecessors down, ending a run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/graph_run.hpp"

#include <algorithm>
#include <thread>

#include <troupe/detail/engine.hpp>

namespace troupe::detail {

namespace {
constexpr std::size_t grab_max = 16;
constexpr int looks_before_sleep = 2000;
}  // namespace

recorded_graph::~recorded_graph() {
  for (replay_node& n : nodes) {
    if (n.task->kind == task_kind::combine) delete n.task->accesses[0].where->partials;
    release(n.task);
  }
  for (access& x : touched) release(x.array);
  if (last) release(last);
  if (rt) rt->release();
}

graph_run::graph_run(recorded_graph& g) : graph(g) {
  for (replay_node& n : g.nodes) {
    n.pending.store(n.initial, std::memory_order_relaxed);
    n.poisoned.store(false, std::memory_order_relaxed);
  }
  shared_ = g.roots;
  shared_left_.store(static_cast<std::int64_t>(shared_.size()), std::memory_order_relaxed);
  remaining_.store(static_cast<std::int64_t>(g.nodes.size()), std::memory_order_release);
}

void graph_run::settle(hand& h) {
  if (h.done == 0) return;
  const bool over = remaining_.fetch_sub(h.done, std::memory_order_seq_cst) == h.done;
  h.done = 0;
  if (over && owner_sleeps_.load(std::memory_order_seq_cst)) {
    { std::lock_guard hold(sleep_lock_); }
    wake_.notify_all();
  }
}

bool graph_run::next(hand& h, std::uint32_t& node) {
  if (!h.ready.empty()) {
    node = h.ready.back();
    h.ready.pop_back();
    return true;
  }
  settle(h);
  const auto grab = [&] {
    if (shared_left_.load(std::memory_order_acquire) == 0) return false;
    std::lock_guard hold(lock_);
    const std::size_t have = shared_.size() - shared_next_;
    if (have == 0) return false;
    const std::size_t n = std::clamp<std::size_t>(have / 4, 1, grab_max);
    // In reverse, as a thread takes nodes from the end of its list: earlier nodes run first.
    for (std::size_t i = n; i != 0; --i) h.ready.push_back(shared_[shared_next_ + i - 1]);
    shared_next_ += n;
    if (shared_next_ == shared_.size()) {
      shared_.clear();
      shared_next_ = 0;
    }
    shared_left_.fetch_sub(static_cast<std::int64_t>(n), std::memory_order_relaxed);
    return true;
  };
  bool found = grab();
  if (!found) {
    hungry_.fetch_add(1, std::memory_order_relaxed);
    for (int looks = 0; !found && looks < looks_before_sleep && remaining_.load(std::memory_order_acquire) != 0;
         ++looks) {
      spin_lock::pause();
      found = grab();
    }
    hungry_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (!found) return false;
  node = h.ready.back();
  h.ready.pop_back();
  return true;
}

void graph_run::await_more() {
  owner_sleeps_.store(true, std::memory_order_seq_cst);
  std::unique_lock hold(sleep_lock_);
  wake_.wait(hold, [&] { return shared_left_.load(std::memory_order_seq_cst) != 0 || is_over(); });
  owner_sleeps_.store(false, std::memory_order_relaxed);
}

bool graph_run::finished(hand& h, std::uint32_t node, bool fine) {
  const replay_node& n = graph.nodes[node];
  for (std::uint32_t i = n.first; i < n.first + n.count; ++i) {
    const std::uint32_t edge = graph.successors[i];
    replay_node& next = graph.nodes[edge & ~recorded_graph::data_bit];
    if (!fine && (edge & recorded_graph::data_bit)) next.poisoned.store(true, std::memory_order_release);
    // The last predecessor needs no locked operation: no other thread counts this node down any more.
    if (next.pending.load(std::memory_order_acquire) == 1 || next.pending.fetch_sub(1, std::memory_order_acq_rel) == 1)
      h.ready.push_back(edge & ~recorded_graph::data_bit);
  }
  ++h.done;
  if (h.ready.size() > 1 &&
      (hungry_.load(std::memory_order_relaxed) != 0 || helpers_.load(std::memory_order_relaxed) == 0))
    return share(h);
  return false;
}

// Lays out the older half of the nodes that a thread holds, if none are laid out; always returns true.
bool graph_run::share(hand& h) {
  if (shared_left_.load(std::memory_order_relaxed) == 0) lay_out(h, h.ready.size() / 2);
  return true;
}

bool graph_run::lay_out(hand& h) {
  settle(h);
  const bool any = !h.ready.empty();
  if (any) lay_out(h, h.ready.size());
  return any;
}

void graph_run::lay_out(hand& h, std::size_t n) {
  {
    std::lock_guard hold(lock_);
    shared_.insert(shared_.end(), h.ready.begin(), h.ready.begin() + static_cast<std::ptrdiff_t>(n));
    shared_left_.fetch_add(static_cast<std::int64_t>(n), std::memory_order_seq_cst);
  }
  h.ready.erase(h.ready.begin(), h.ready.begin() + static_cast<std::ptrdiff_t>(n));
  if (owner_sleeps_.load(std::memory_order_seq_cst)) {
    { std::lock_guard hold(sleep_lock_); }
    wake_.notify_all();
  }
}

void graph_run::fail(std::exception_ptr e) {
  std::lock_guard hold(sleep_lock_);
  if (!error) error = std::move(e);
}

void graph_run::leave() {
  std::lock_guard hold(sleep_lock_);  // the owner destroys the run once it sees the last helper gone
  if (helpers_.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_.notify_all();
}

void graph_run::wait_for_helpers() {
  std::unique_lock hold(sleep_lock_);
  wake_.wait(hold, [&] { return helpers_.load(std::memory_order_acquire) == 0; });
}

}  // namespace troupe::detail
