// What this file is for: handing out nodes of a run, counting predecessors down, ending a run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/graph_run.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <troupe/detail/engine.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/logic/data/reduction.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/clock.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {
// Most nodes that a thread takes at once from those laid out, and from another thread.
constexpr std::size_t grab_max = 16;
// Pauses between two looks at other threads' nodes: each look slows these threads down.
constexpr int pauses_between_looks = 4, looks_between_yields = 8;
// Times the cost of a wake-up that a thread is given to come before another one is woken.
constexpr float time_to_come = 8;
}  // namespace

recorded_graph::recorded_graph() = default;

recorded_graph::~recorded_graph() {
  for (const reduction* r : reductions) delete r;
  for (const replay_node& n : nodes) release(n.task);
  for (access& x : touched) release(x.array);
  if (last) release(last);
  if (rt) rt->release();
}

graph_run::graph_run(recorded_graph& g, std::size_t rings, task_record* run)
    : graph(g),
      task(run),
      rings_(std::clamp<std::size_t>(rings, 1, std::max<std::size_t>(g.nodes.size(), 1))),
      hands_(std::make_unique<hand[]>(rings_)) {
  for (replay_node& n : g.nodes) {
    n.pending.store(n.initial, std::memory_order_relaxed);
    n.poisoned.store(false, std::memory_order_relaxed);
  }
  for (node_meeting& m : g.meetings) {
    m.pending.store(m.initial, std::memory_order_relaxed);
    m.poisoned.store(false, std::memory_order_relaxed);
  }
  // Where a node has failed, the partials of the run before have not been combined.
  for (reduction* r : g.reductions) {
    r->idle.clear();
    r->taken = 0;
  }
  for (const std::uint32_t n : g.roots) shared_.push_back(&g.nodes[n]);
  shared_left_.store(static_cast<std::int64_t>(shared_.size()), std::memory_order_relaxed);
  remaining_.store(static_cast<std::int64_t>(g.nodes.size()), std::memory_order_release);
}

graph_run::hand& graph_run::take_hand() {
  const auto try_take = [this](hand& h) {
    if (h.taken.load(std::memory_order_relaxed) || h.taken.exchange(true, std::memory_order_acquire)) return false;
    h.run = this;
    return true;
  };
  for (std::size_t i = 0; i < rings_; ++i) {
    if (!try_take(hands_[i])) continue;
    hands_[i].is_seen = true;
    std::size_t used = hands_used_.load(std::memory_order_relaxed);
    while (used <= i && !hands_used_.compare_exchange_weak(used, i + 1, std::memory_order_seq_cst)) continue;
    return hands_[i];
  }
  std::lock_guard hold(lock_);
  for (const auto& h : others_)
    if (try_take(*h)) return *h;
  hand& h = *others_.emplace_back(std::make_unique<hand>());
  try_take(h);
  return h;
}

void graph_run::give_hand(hand& h) {
  rest(h);
  count_done(h);
  h.taken.store(false, std::memory_order_release);
}

// Notes the time since the thread got its first node after it had none.
void graph_run::rest(hand& h) {
  if (h.busy_since == 0) return;
  h.busy += ticks() - h.busy_since;
  h.busy_since = 0;
}

void graph_run::count_done(hand& h) {
  if (h.done == 0) return;
  if (h.ran >= 4 && h.busy != 0) {  // enough for a mean; of a run's threads the last one's stays
    graph.node_ticks.store(static_cast<float>(h.busy) / static_cast<float>(h.ran), std::memory_order_relaxed);
    h.ran = 0;
    h.busy = 0;
  }
  const bool over = remaining_.fetch_sub(h.done, std::memory_order_seq_cst) == h.done;
  h.done = 0;
  if (over && owner_sleeps_.load(std::memory_order_seq_cst)) {
    { std::lock_guard hold(sleep_lock_); }
    wake_.notify_all();
  }
}

// ---- taking nodes ---------------------------------------------------------------------------------------------------

bool graph_run::next(hand& h, std::uint32_t& node, std::uint64_t patience) {
  if (!h.next) h.next = h.ring.pop();
  if (!h.next) {
    rest(h);
    count_done(h);
    if (!take(h)) {
      if (patience == 0) return false;
      begin_look();
      const std::uint64_t since = ticks();
      bool found = false;
      look_once(h);
      for (int look = 1; !found && remaining_.load(std::memory_order_acquire) != 0 && ticks() - since < patience;
           ++look) {
        for (int i = 0; i < pauses_between_looks; ++i) spin_lock::pause();
        if (look % looks_between_yields == 0) {
          std::this_thread::yield();  // the thread with the nodes may need this core
          look_once(h);
        }
        found = take(h);
      }
      end_look();
      if (h.looks) h.looks->clear();
      if (!found) return false;
    }
  }
  if (h.busy_since == 0) h.busy_since = ticks();
  node = static_cast<std::uint32_t>(h.next - graph.nodes.data());
  h.next = nullptr;
  return true;
}

void graph_run::look_once(hand& h) {
  if (h.looks) h.looks->set(ticks(), devices::current_cpu());
}

bool graph_run::take(hand& h) { return take_shared(h) || take_from_others(h); }

bool graph_run::take_shared(hand& h) {
  if (shared_left_.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard hold(lock_);
  const std::size_t have = shared_.size() - shared_next_;
  if (have == 0) return false;
  const std::size_t n = h.is_seen ? std::clamp<std::size_t>(have / 4, 1, grab_max) : 1;
  h.next = shared_[shared_next_];
  for (std::size_t i = 1; i < n; ++i) h.ring.push(shared_[shared_next_ + i]);  // it is empty
  shared_next_ += n;
  if (shared_next_ == shared_.size()) {
    shared_.clear();
    shared_next_ = 0;
  }
  shared_left_.fetch_sub(static_cast<std::int64_t>(n), std::memory_order_relaxed);
  return true;
}

// Takes half of what some other thread has not begun, the oldest nodes.
bool graph_run::take_from_others(hand& h) {
  const std::size_t count = hands_used_.load(std::memory_order_relaxed);
  const std::size_t mine = h.is_seen ? static_cast<std::size_t>(&h - hands_.get()) : 0;
  for (std::size_t i = h.is_seen ? 1 : 0; i < count; ++i) {
    auto& from = hands_[(mine + i) % count].ring;
    const std::size_t have = from.size();
    if (have == 0) continue;
    h.next = from.pop();
    for (std::size_t n = h.is_seen ? std::min(have / 2, grab_max) : 1; h.next && n > 1; --n) {
      replay_node* const more = from.pop();
      if (!more) break;
      h.ring.push(more);
    }
    if (h.next) return true;
  }
  return false;
}

bool graph_run::has_shared() const {
  if (shared_left_.load(std::memory_order_seq_cst) != 0) return true;
  const std::size_t count = hands_used_.load(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < count; ++i)
    if (!hands_[i].ring.empty()) return true;
  return false;
}

void graph_run::await_more() {
  owner_sleeps_.store(true, std::memory_order_seq_cst);
  std::unique_lock hold(sleep_lock_);
  wake_.wait(hold, [&] { return has_shared() || is_over(); });
  owner_sleeps_.store(false, std::memory_order_relaxed);
}

// ---- ends of nodes --------------------------------------------------------------------------------------------------

namespace {
// Counts one down; true if it was the last. That one needs no locked operation: no other thread counts down any more.
bool is_last(std::atomic<std::int32_t>& pending) {
  return pending.load(std::memory_order_acquire) == 1 || pending.fetch_sub(1, std::memory_order_acq_rel) == 1;
}
}  // namespace

// Counts successors down, of which this thread holds those that are ready. True if others can take one.
bool graph_run::count_down(hand& h, std::uint32_t first, std::uint32_t count, bool fine) {
  bool held = false;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const std::uint32_t edge = graph.successors[i];
    replay_node& next = graph.nodes[edge & ~recorded_graph::data_bit];
    if (!fine && (edge & recorded_graph::data_bit)) next.poisoned.store(true, std::memory_order_release);
    if (!is_last(next.pending)) continue;
    if (!h.next) {
      h.next = &next;
    } else {
      hold(h, next);
      held = true;
    }
  }
  return held;
}

graph_run::wake_hint graph_run::finished(hand& h, std::uint32_t node, bool fine, float wake_ticks) {
  const replay_node& n = graph.nodes[node];
  bool held = false;
  if (n.meeting != replay_node::alone) {
    node_meeting& all = graph.meetings[n.meeting];
    if (!fine) all.poisoned.store(true, std::memory_order_relaxed);
    if (is_last(all.pending)) held = count_down(h, all.first, all.count, !all.poisoned.load(std::memory_order_relaxed));
  }
  if (count_down(h, n.first, n.count, fine)) held = true;
  ++h.done;
  ++h.ran;
  const auto waiting = static_cast<int>(h.ring.size()), come = hungry_.load(std::memory_order_relaxed);
  if (waiting <= come) {  // each that looks takes one
    h.passed_up = 0;
    return wake_hint::nothing;
  }
  // Work that another thread could have taken over since enough of them last looked for nodes is added up: what waits
  // since now, and else the node that has just ended.
  const float each = graph.node_ticks.load(std::memory_order_relaxed);
  h.passed_up += each != 0 ? each * static_cast<float>(held ? waiting - come : 1) : wake_ticks;
  if (h.passed_up < wake_ticks) return wake_hint::nothing;
  h.passed_up = 0;
  if (are_coming(wake_ticks) != 0) return wake_hint::nothing;
  if (owner_sleeps_.load(std::memory_order_seq_cst)) {
    note_called(0);  // it calls those that are missing
    { std::lock_guard hold(sleep_lock_); }
    wake_.notify_all();
    return wake_hint::nothing;
  }
  note_called(1);
  return wake_hint::nodes_for_others;
}

// Returns how many threads have been called and are still believed to come.
std::size_t graph_run::are_coming(float wake_ticks) const {
  const std::size_t n = coming_.load(std::memory_order_relaxed);
  if (n == 0) return 0;
  const std::uint64_t called = called_.load(std::memory_order_relaxed);
  return static_cast<float>(ticks() - called) < time_to_come * wake_ticks ? n : 0;
}

std::size_t graph_run::call_more(float wake_ticks, std::size_t most) {
  std::size_t n = shared_count();
  const std::size_t count = hands_used_.load(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < count; ++i) n += hands_[i].ring.size();
  auto come = static_cast<std::size_t>(std::max(0, hungry_.load(std::memory_order_relaxed)));
  const std::size_t coming = are_coming(wake_ticks);
  come += coming;
  if (n <= come) return 0;
  most = std::min(most, n - come);
  if (const float each = graph.node_ticks.load(std::memory_order_relaxed); each != 0)
    most = std::min(most, static_cast<std::size_t>(each * static_cast<float>(n - come) / wake_ticks));
  if (most != 0) note_called(coming + most);
  return most;
}

void graph_run::note_called(std::size_t threads) {
  coming_.store(threads, std::memory_order_relaxed);
  called_.store(ticks(), std::memory_order_relaxed);
}

void graph_run::join() {
  helpers_.fetch_add(1, std::memory_order_acq_rel);
  std::size_t n = coming_.load(std::memory_order_relaxed);
  while (n != 0 && !coming_.compare_exchange_weak(n, n - 1, std::memory_order_relaxed)) continue;
}

void graph_run::hold(hand& h, replay_node& n) {
  if (h.is_seen && h.ring.room() != 0) {
    h.ring.push(&n);
  } else {
    replay_node* const one = &n;
    lay_out({&one, 1});
  }
}

bool graph_run::lay_out(hand& h) {
  rest(h);
  count_done(h);
  replay_node* all[decltype(h.ring)::capacity + 1];
  std::size_t count = 0;
  if (h.next) all[count++] = std::exchange(h.next, nullptr);
  count += h.ring.pop_all(all + count);
  if (count != 0) lay_out({all, count});
  return count != 0;
}

void graph_run::lay_out(std::span<replay_node* const> nodes) {
  {
    std::lock_guard hold(lock_);
    shared_.insert(shared_.end(), nodes.begin(), nodes.end());
    shared_left_.fetch_add(static_cast<std::int64_t>(nodes.size()), std::memory_order_seq_cst);
  }
  if (owner_sleeps_.load(std::memory_order_seq_cst)) {
    { std::lock_guard hold(sleep_lock_); }
    wake_.notify_all();
  }
}

void graph_run::fail(std::exception_ptr e) {
  std::lock_guard hold(sleep_lock_);
  if (!error) error = std::move(e);
}

std::exception_ptr graph_run::failure() {
  std::lock_guard hold(sleep_lock_);
  return error;
}

bool graph_run::arrive(std::uint32_t node, bool fine) {
  replay_node& n = graph.nodes[node];
  if (!fine) n.poisoned.store(true, std::memory_order_release);
  if (n.pending.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  replay_node* const ready = &n;
  lay_out({&ready, 1});
  // A thread that looks comes for one, and so does an owner that slept, which has been told. One that has just stopped
  // looking sees the node before it sleeps.
  const int come = hungry_.load(std::memory_order_seq_cst) + (owner_sleeps_.load(std::memory_order_seq_cst) ? 1 : 0);
  return shared_left_.load(std::memory_order_seq_cst) > come;
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
