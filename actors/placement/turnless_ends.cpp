// What this file is for: what is left to do for a task that nobody waits for, and for its record when no turn sees it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/turnless_ends.hpp"

#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

#include <troupe/detail/engine.hpp>

#include "actors/logic/data/task_graph.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/logic/scheduling/sampling.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/successors.hpp"

namespace troupe::detail {

namespace {
// The cost model learns from all tasks of this length, and of shorter ones from a few and from those whose prediction
// was off by a factor. Tasks that took too long by another one are urgent. Not the shortest: theirs is off by one miss
// of a cache, and each turn that is taken for it ends all side turns.
constexpr float always_learned_ns = 20'000, shortest_ns = 1'000;
constexpr float far_off = 2, too_long = 4;

// Links a record whose accesses are gone to another one. Its number stays, which futures are asked for.
task_record*& link_of(task_record& t) { return t.own_accesses[0].task; }

// Destroys what the task had, but for what others may still look at: its name, and what a future is to give.
void clear_but_for_others(task_record& t, bool has_future) {
  drop_inputs(t);
  if (!has_future) drop_result(t);
  t.sequence.release(0);
}
}  // namespace

void turnless_ends::records::add(task_record& t) {
  t.next = first;
  if (!first) last = &t;
  first = &t;
  ++count;
}

void turnless_ends::records::add_with_blocks(task_record& t) { t.next = std::exchange(with_blocks, &t); }

void turnless_ends::records::add_referred(task_record& t) { link_of(t) = std::exchange(referred, &t); }

void turnless_ends::records::add_all(records& from) {
  if (from.first) {
    from.last->next = first;
    if (!first) last = from.last;
    first = from.first;
    count += from.count;
  }
  while (task_record* const t = from.with_blocks) {
    from.with_blocks = t->next;
    add_with_blocks(*t);
  }
  while (task_record* const t = from.referred) {
    from.referred = link_of(*t);
    add_referred(*t);
  }
}

std::size_t turnless_ends::shard_of_thread() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % shard_count;
  return mine;
}

void turnless_ends::note_time(const task_record& t) {
  if (!(t.measured_ns > 0)) return;
  const bool is_short = t.measured_ns < shortest_ns && t.predicted_ns < shortest_ns;
  const bool is_far_off =
      !is_short && (t.measured_ns > far_off * t.predicted_ns || t.predicted_ns > far_off * t.measured_ns);
  if (t.measured_ns < always_learned_ns && !is_far_off) {
    thread_local logic::sampling some;
    if (!some.next()) return;
  }
  timed_.add({t.kernel, logic::assignment::bytes_of(t), t.measured_ns, t.predicted_ns, t.executor},
             !is_short && t.measured_ns > too_long * t.predicted_ns);
}

std::size_t turnless_ends::retire(std::span<task_record* const> tasks, task_record** left) {
  std::size_t n = 0, referred = 0, gates = 0;
  records ended;
  const std::size_t mine = shard_of_thread();
  shard& s = shards_[mine];
  times sum;
  std::size_t group = 0;  // of which it is: nearly always that of all tasks
  for (task_record* const t : tasks) {
    // Sealed by a thread before this one, if it is.
    if (!is_sealed_whole(*t) || !(t->marks & mark_early)) {
      left[n++] = t;
      continue;
    }
    if (t->measured_ns > 0) {
      if (t->executor != group) s.add(std::exchange(sum, {}), std::exchange(group, t->executor));
      sum.predicted_ns += static_cast<double>(t->predicted_ns);
      sum.measured_ns += static_cast<double>(t->measured_ns);
    }
    if (t->kind == task_kind::gate) ++gates;
    // The last reference is the only one from which more could be made.
    const bool has_future = t->references.load(std::memory_order_acquire) != 1;
    if (has_future || t->extra) {  // the holder of a turn may ask a task that has just ended for its name
      clear_but_for_others(*t, has_future);
      ended.add_referred(*t);
      ++referred;
      continue;
    }
    clear(*t);
    const bool has_blocks = sealed_count(t->pending.load(std::memory_order_relaxed)) > successors_inside;
    has_blocks ? ended.add_with_blocks(*t) : ended.add(*t);
  }
  if (ended.empty()) return n;
  // A turn that is taken after this finds none of them unfinished.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  records over;
  {
    const std::lock_guard hold(s.lock);
    s.fresh.add_all(ended);
    s.fresh_count += tasks.size() - n;
    if (referred != 0 || s.fresh_count >= fresh_max) {
      if (turns_.is_over(s.held)) over = std::exchange(s.waiting, {});
      s.waiting.add_all(s.fresh);
      s.fresh = {};
      s.fresh_count = 0;
      turns_.note_held(s.held);
    }
    s.sums[group].predicted_ns += sum.predicted_ns;
    s.sums[group].measured_ns += sum.measured_ns;
    note_references(mine);
  }
  end(over);
  // Gates have not been submitted.
  if (const std::size_t counted = tasks.size() - n - referred - gates; counted != 0)
    count_.note_retired_outside(counted, mine);
  if (referred != 0) {
    // Either the holder of the turn sees the bit when it has left, or this thread sees that it has.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    drop_references(mine);
  }
  return n;
}

// Notes whether the shard has records that are referred to. With its lock.
void turnless_ends::note_references(std::size_t at) {
  const std::uint32_t bit = 1U << at;
  const bool has_some = shards_[at].waiting.referred != nullptr;
  if (has_some == ((referring_.load(std::memory_order_relaxed) & bit) != 0)) return;
  has_some ? referring_.fetch_or(bit, std::memory_order_seq_cst)
           : referring_.fetch_and(~bit, std::memory_order_seq_cst);
}

void turnless_ends::drop_references() {
  for (std::uint32_t some = referring_.load(std::memory_order_seq_cst); some != 0; some &= some - 1)
    drop_references(static_cast<std::size_t>(std::countr_zero(some)));
}

// Drops the references to the records of a shard, unless a turn or a side turn is held that was held when the newest
// came: then its holder does when it leaves.
void turnless_ends::drop_references(std::size_t at) {
  records over;
  {
    shard& s = shards_[at];
    const std::lock_guard hold(s.lock);
    if (!turns_.is_over_or_ask(s.held)) return;
    over.referred = std::exchange(s.waiting.referred, nullptr);
    note_references(at);
  }
  end(over);
}

void turnless_ends::shard::add(const times& more, std::size_t group) {
  if (!(more.measured_ns > 0)) return;
  const std::lock_guard hold(lock);
  sums[group].predicted_ns += more.predicted_ns;
  sums[group].measured_ns += more.measured_ns;
}

void turnless_ends::know_groups(std::size_t n) {
  for (shard& s : shards_) s.sums.resize(n);
}

turnless_ends::times turnless_ends::sum(std::size_t group) const {
  times all;
  for (const shard& s : shards_) {
    const std::lock_guard hold(s.lock);
    all.predicted_ns += s.sums[group].predicted_ns;
    all.measured_ns += s.sums[group].measured_ns;
  }
  return all;
}

void turnless_ends::give_back() {
  for (shard& s : shards_) {
    records over;
    {
      const std::lock_guard hold(s.lock);
      over = std::exchange(s.waiting, {});
      over.add_all(s.fresh);
      s.fresh = {};
      s.fresh_count = 0;
      note_references(static_cast<std::size_t>(&s - shards_.data()));
    }
    end(over);
  }
}

void turnless_ends::end(const records& over) {
  if (over.first) rt_.records.give_chain(over.first, over.last, over.count);
  for (task_record* t = over.with_blocks; t;) {
    task_record* const next = t->next;
    graph_.forget_blocks(*t);
    rt_.records.give(t);
    t = next;
  }
  // Tasks that were referred to count as retired when nothing of theirs is left but what futures keep.
  std::size_t n = 0;
  for (task_record* t = over.referred; t; ++n) {
    task_record* const next = std::exchange(link_of(*t), nullptr);
    graph_.forget_blocks(*t);
    release(t);
    t = next;
  }
  if (n != 0) count_.note_retired_outside(n, shard_of_thread());
}

}  // namespace troupe::detail
