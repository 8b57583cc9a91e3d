// What this file is for: tasks that are sent to a node before what they read has been written, on other nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/logic/data/promise.hpp"
#include "actors/logic/scheduling/assignment.hpp"

namespace troupe::detail {

/// Counts, for each task that waits, the predecessors that nodes have been handed, and finds the node to which the task
/// may be sent once these are all: those on other nodes send it what they write, without a word of this node in
/// between. Then it is known which boxes they promise.
///
/// To promise a box takes four messages more than to have it brought by the owner, which is what they cost of
/// processors' time; a message less in each step is worth that where messages take long. So only nodes that are far
/// away take part. A part of `chains`; with placement's turn only. It counts nothing while less than two nodes are far.
class crossings {
 public:
  /// Needs to know which executors there are, which may run a task and which reach each other's memory.
  explicit crossings(logic::assignment& a) : assignment_(a) {}

  /// True if the task writes all of a tile.
  static bool writes_tile(const task_record&, const array_core&, std::uint32_t tile);

  /// Notes whether messages to a node and back take long.
  void note_far(std::size_t executor, bool is) { far_.set(executor, is); }
  /// True if a task may have been sent as planned here.
  bool are_any() const { return numbers_ != 0; }

  // ---- a task waits -------------------------------------------------------------------------------------------------
  /// Counts an edge from a task that its executor has been handed. `data`: the successor reads what it writes.
  void count(const task_record& next, const task_record& first, bool data) {
    if (far_.has_more_than(1) && far_.contains(first.executor)) add(next, first, data);
  }
  /// Notes that a task has ended or was returned: what is promised of it is not shared any more.
  void forget_promises_of(const task_record& t) {
    if (!promised_.empty()) promised_.erase(t.sequence);
  }
  /// Takes back what was counted for a task that has ended or was returned.
  void count_not(const task_record& next, const task_record& first) {
    if (!counted_.empty()) remove(next, first);
  }
  /// True if all that the task waits for has been counted.
  bool has_all(const task_record& next) const { return !counted_.empty() && all_of(next) != nullptr; }

  struct plan {
    std::size_t executor;
    std::vector<promise> boxes;  // those that other nodes are to send there
  };
  /// Finds the node that the task may be sent to, the one with most of its data; nothing if there is none yet.
  std::optional<plan> find(task_record&);
  /// Returns the tasks for which there was none because this one was to write what they overwrite; it retires.
  std::vector<task_ref> take_blocked(const task_record& t) {
    return blocked_.empty() ? std::vector<task_ref>() : take_blocked_by(t);
  }

  // ---- a task is sent -----------------------------------------------------------------------------------------------
  /// Notes that the task is sent, as planned or behind others on one executor (without boxes): it is not counted any
  /// more, and its boxes are kept, with their numbers, until take().
  void send(const task_record&, std::vector<promise>);
  /// Returns the boxes that the task is promised, once.
  std::vector<promise> take(const task_record& t) { return sent_.empty() ? std::vector<promise>() : take_sent(t); }

 private:
  struct predecessor {
    const task_record* task;
    std::uint64_t sequence;
    int edges = 0;
    bool data = false;
  };
  struct waiting {
    std::uint64_t sequence = 0;
    int edges = 0;
    std::vector<predecessor> all;
  };

  void add(const task_record& next, const task_record& first, bool data);
  void remove(const task_record& next, const task_record& first);
  const waiting* all_of(const task_record&) const;
  bool may_send(const predecessor&, std::size_t to) const;
  static bool may_overwrite(const task_record&, std::size_t to);
  void note_blocked(task_record&);
  std::vector<task_ref> take_blocked_by(const task_record&);
  bool fill(plan&, const task_record&, const waiting&) const;
  std::uint64_t bytes_there(const task_record&, const waiting&, std::size_t) const;
  void give_number(promise&);
  std::vector<promise> take_sent(const task_record&);

  logic::assignment& assignment_;
  logic::executor_set far_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<const task_record*, waiting> counted_;
  std::unordered_map<const coherence_entry*, std::vector<task_ref>> blocked_;  // by a tile that is being written
  std::unordered_map<const task_record*, std::vector<promise>> sent_;          // since executors were last handed tasks
  std::unordered_map<std::uint64_t, std::vector<promise>> promised_;           // by the sequence of who writes it
};

}  // namespace troupe::detail
