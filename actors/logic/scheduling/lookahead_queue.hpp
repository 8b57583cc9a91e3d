// What this file is for: the tasks that wait for a device, and when each tile will be used next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by the device's actor. At first a plain queue: tasks leave by priority, then in order of arrival. Once
// the device's memory fills up it looks ahead: tasks of one priority leave in program order, in which tasks that use
// the same tiles are close together, and each tile knows the turn of the first waiting task that uses it. Rejected: the
// task that lacks the fewest bytes first. For a matrix product in a good order that moves up to twice as many bytes,
// since it leaves each block early.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/ready_queue.hpp"

namespace troupe::logic {

class lookahead_queue {
 public:
  /// Place of a waiting task in the order: smaller is earlier.
  struct turn {
    int after = 0;  // priority, negated
    std::uint64_t sequence = 0;
    auto operator<=>(const turn&) const = default;
  };

  bool empty() const { return size() == 0; }
  std::size_t size() const { return plain_.size() + ordered_.size(); }
  void push(detail::task_record*, int priority);
  /// Puts back a task that was popped and could not be started.
  void push_front(detail::task_record*, int priority);
  /// Takes out the next task; null if there is none. While it looks ahead, the task counts among the users of its tiles
  /// until the next one is popped, so that its own tiles are not evicted for it.
  detail::task_record* pop();
  /// Takes out up to n tasks that `wanted` accepts, the last ones first; calls `take(task)` for each.
  template <class Wanted, class Take>
  void take_newest(std::size_t n, Wanted&& wanted, Take&& take) {
    plain_.take_newest(n, wanted, [&](detail::task_record* t) {
      --n;
      take(t);
    });
    for (auto at = ordered_.end(); at != ordered_.begin() && n != 0;) {
      --at;
      detail::task_record* const t = at->second;
      if (!wanted(t)) continue;
      forget_uses(*t, at->first);
      at = ordered_.erase(at);
      --n;
      take(t);
    }
  }

  void look_ahead();
  /// Becomes a plain queue again; only while it is empty.
  void rest();
  bool looks_ahead() const { return ahead_; }
  /// Returns the turn of the first waiting task that uses the tile; null if there is none.
  const turn* next_use(std::uint64_t array_id, std::uint32_t tile_index) const {
    const auto found = uses_.find({array_id, tile_index});
    return found == uses_.end() ? nullptr : &found->second.turns[found->second.first];
  }

 private:
  struct tile {
    std::uint64_t array;
    std::uint32_t index;
    bool operator==(const tile&) const = default;
  };
  struct hash {
    std::size_t operator()(const tile& t) const {
      return (t.array * 0x9e3779b97f4a7c15ull) ^ (t.index * 0xff51afd7ed55ull);
    }
  };
  struct users {
    std::vector<turn> turns;  // sorted from `first` on; never empty there
    std::size_t first = 0;
  };

  template <class F>
  static void each_use(const detail::task_record&, F&&);
  void add_use(const tile&, const turn&);
  void remove_use(const tile&, const turn&);
  void insert(detail::task_record&, int priority);
  void forget_uses(const detail::task_record&, const turn&);
  void forget_popped();

  bool ahead_ = false;
  ready_queue<detail::task_record*> plain_;
  std::map<turn, detail::task_record*> ordered_;
  std::unordered_map<tile, users, hash> uses_;
  turn popped_;
  std::vector<tile> popped_uses_;
};

}  // namespace troupe::logic
