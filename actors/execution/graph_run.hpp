// What this file is for: recorded graphs as executors run them: nodes with counters, no dependency analysis.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_set>
#include <vector>

#include <troupe/detail/spin_lock.hpp>
#include <troupe/detail/task.hpp>

#include "actors/logic/data/recorded_tiles.hpp"
#include "actors/logic/scheduling/look_mark.hpp"
#include "actors/logic/scheduling/scope.hpp"
#include "actors/protocol/spmc_ring.hpp"

namespace troupe::detail {

class graph_part;
struct reduction;
struct split_graph;

/// A call of a recorded graph, with the counter of its run in progress.
struct replay_node {
  static constexpr std::uint32_t alone = ~0u;

  task_record* task = nullptr;
  std::int32_t initial = 0;
  std::uint32_t first = 0, count = 0;  // its successors, but for those that its meeting counts down
  std::uint32_t meeting = alone;
  std::atomic<std::int32_t> pending{0};
  std::atomic<bool> poisoned{false};
};

/// Where nodes with the same successors meet: the last of them to end counts each successor down, once for all of them.
/// Sixteen nodes that sixteen others wait for are 32 steps of counters instead of 256.
struct alignas(64) node_meeting {
  std::int32_t initial = 0;            // nodes that meet here
  std::uint32_t first = 0, count = 0;  // their successors
  std::atomic<std::int32_t> pending{0};
  std::atomic<bool> poisoned{false};  // one of them has failed
};

/// An access of `recorded_graph::touched` stands for a tile, a whole array or a box: access::worker says which.
enum class extent_of : std::uint16_t { tile, whole_array, box };

/// A graph that `runtime::record` has made. Immutable but for the counters of nodes and meetings, which belong to the
/// run in progress; runs of one graph are ordered.
struct recorded_graph {
  static constexpr std::uint32_t data_bit = 1u << 31;

  recorded_graph();
  ~recorded_graph();

  runtime_state* rt = nullptr;
  std::vector<replay_node> nodes;
  std::vector<std::uint32_t> successors;  // highest bit: the edge carries data
  std::vector<node_meeting> meetings;
  std::vector<std::uint32_t> roots;
  std::vector<reduction*> reductions;                            // of the nodes that combine; owned
  logic::executor_set executors = logic::executor_set::every();  // in the scopes of all calls; each run stays on one
  std::vector<access> touched;                                   // what a run as a whole reads and writes
  std::vector<logic::box4> boxes;      // parts of tiles among these: access::tile is the number of one
  std::vector<access> tiles;           // `touched` by tiles, if a device may run the graph
  logic::executor_set devices;         // those of `executors` that are devices
  std::vector<std::uint64_t> windows;  // bytes of each that a call reads, at most, if a device may run the graph
  bool once = false;                   // some call may run once only
  std::atomic<float> node_ticks{0};    // mean time of a node on cores; 0: not known yet
  std::mutex lock;                     // guards last
  task_record* last = nullptr;         // the newest run; holds a reference
  std::unique_ptr<graph_part> part;    // null: it is no part of a larger graph
  // Not null: the graph is over several nodes, which have its parts, and has no nodes of its own.
  std::shared_ptr<split_graph> split;
};

/// Calls that a recorder has noted, in program order.
struct recording {
  logic::recorded_tiles tiles;
  std::vector<task_record*> tasks;
  std::unordered_set<array_core*> arrays;  // touched by the calls; holds a reference of each
};

/// A run of a recorded graph, in progress. The thread that has the run's task owns it; others may take part. Each
/// thread has a hand: the node that it runs next, and a ring of others, which any thread that has none may take.
class graph_run {
 public:
  /// The nodes of a run that one thread holds.
  struct alignas(64) hand {
    graph_run* run = nullptr;
    logic::look_mark* looks = nullptr;  // of the thread; null: nobody moves it
    hand* outer = nullptr;              // that of a run further down on the same stack

   private:
    friend class graph_run;
    spmc_ring<replay_node, 64> ring;
    replay_node* next = nullptr;   // before those of the ring
    std::int64_t done = 0;         // nodes that have ended and were not counted yet
    std::int64_t ran = 0;          // nodes that have ended
    std::uint64_t busy_since = 0;  // in ticks; 0: it looks for nodes
    std::uint64_t busy = 0;        // ticks
    float passed_up = 0;           // ticks of work that nobody came for
    std::atomic<bool> taken{false};
    bool is_seen = false;  // by threads that look for nodes
  };
  enum class wake_hint { nothing, nodes_for_others };

  /// `rings`: of how many threads others can see what they hold, at least one. Threads beyond these lay out all but the
  /// next node. `run`: the task of the run, for the bodies of its nodes.
  graph_run(recorded_graph&, std::size_t rings, task_record* run = nullptr);

  /// Gives the calling thread a hand. The first is the owner's.
  hand& take_hand();
  /// Gives an empty hand back.
  void give_hand(hand&);

  /// Takes the next node for this thread: its own, then what is laid out, then other threads'. Looks so many ticks for
  /// one; false: there is none for it now, or ever.
  bool next(hand&, std::uint32_t& node, std::uint64_t patience);
  /// Lays out for other threads all nodes that this thread holds and has not begun, as it is about to do something
  /// else. True if there were any.
  bool lay_out(hand&);
  bool is_over() const { return remaining_.load(std::memory_order_seq_cst) == 0; }
  /// Sleeps until nodes are laid out or the run is over. One thread only.
  void await_more();
  /// Releases the successors of a node that has ended; they inherit failure along data edges. Tells whether a sleeping
  /// thread should be woken: fewer threads have looked for nodes than this one held, with more than `wake_ticks` of
  /// work that it did not get to at once. A wake-up is given some times `wake_ticks` before the next one is asked for.
  wake_hint finished(hand&, std::uint32_t node, bool fine, float wake_ticks);
  /// Keeps the first error.
  void fail(std::exception_ptr);
  std::exception_ptr failure();
  /// Counts a node down that waits for something from another process; `fine`: that has come, else the node is left
  /// out. Any thread, until the node has ended. True if the node is ready and more are laid out than there are threads
  /// that come for one: those that look, and the owner if it sleeps.
  bool arrive(std::uint32_t node, bool fine);

  /// Counts a thread as one that looks for nodes, from `begin_look` to `end_look`; `next` does so itself where it has
  /// patience.
  void begin_look() { hungry_.fetch_add(1, std::memory_order_relaxed); }
  void end_look() { hungry_.fetch_sub(1, std::memory_order_seq_cst); }
  /// True if a thread looks for nodes.
  bool is_awaited() const { return hungry_.load(std::memory_order_relaxed) != 0; }
  /// True if there are nodes that a thread without any could take. Sequentially consistent, as far as they are laid
  /// out.
  bool has_shared() const;
  /// Returns how many nodes are laid out, of which any thread may take some.
  std::size_t shared_count() const {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, shared_left_.load(std::memory_order_relaxed)));
  }
  /// Returns how many threads to wake, `most` at most: one for each `wake_ticks` of work in nodes beyond those that all
  /// that look or come will take first. They count as coming from then on. For a thread that has just come, or come
  /// back, and counts as one that looks.
  std::size_t call_more(float wake_ticks, std::size_t most);
  /// Notes that so many threads are being woken: each comes by `join`, or has something else to do, which is believed
  /// when it has not come in the time of some wake-ups.
  void note_called(std::size_t threads);
  /// Counts a thread in that takes part beside the owner; `leave` counts it out.
  void join();
  void leave();
  void wait_for_helpers();

  recorded_graph& graph;
  task_record* const task;
  std::exception_ptr error;  // the first one; read after the run

 private:
  static void look_once(hand&);
  bool take(hand&);
  bool take_shared(hand&);
  bool take_from_others(hand&);
  bool count_down(hand&, std::uint32_t first, std::uint32_t count, bool fine);
  void hold(hand&, replay_node&);
  void lay_out(std::span<replay_node* const>);
  void count_done(hand&);
  std::size_t are_coming(float wake_ticks) const;
  void rest(hand&);

  const std::size_t rings_;
  const std::unique_ptr<hand[]> hands_;     // those that are seen
  std::atomic<std::size_t> hands_used_{0};  // the first so many have been taken once
  spin_lock lock_;                          // guards the next three
  std::vector<std::unique_ptr<hand>> others_;
  std::vector<replay_node*> shared_;
  std::size_t shared_next_ = 0;
  std::atomic<std::int64_t> shared_left_{0};
  alignas(64) std::atomic<std::int64_t> remaining_{0};
  alignas(64) std::atomic<int> hungry_{0};  // threads that look for nodes
  std::atomic<int> helpers_{0};
  std::atomic<std::uint64_t> called_{0};  // when a thread was asked for
  std::atomic<std::size_t> coming_{0};    // threads that were asked for then and have not come
  std::mutex sleep_lock_;
  std::condition_variable wake_;
  std::atomic<bool> owner_sleeps_{false};
};

}  // namespace troupe::detail
