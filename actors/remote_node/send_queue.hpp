// What this file is for: tasks that a node's actor has been handed and has not begun to send.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/promise.hpp"

namespace troupe::detail {

/// Keeps calls and internal tasks (transfers, arrays to forget) in the order in which they were handed over; internal
/// tasks are sent first. An internal task that has to wait for bytes on their way home is put off. Beside them it keeps
/// what the node is to send to others, and what others are to send it for tasks that are queued.
///
/// A part of a node's actor. It has a lock of its own, because placement hands tasks over, and takes them back, while
/// it holds the turn: any thread may call, and nothing else is locked inside.
class send_queue {
 public:
  void add(std::span<task_record* const> tasks) {
    std::lock_guard hold(lock_);
    for (task_record* t : tasks) (is_internal(t->kind) ? internal_ : calls_).push_back(t);
    count();
  }
  /// Adds a box that the node is to keep for another one: as it is before the calls that are added later.
  void add(const promise& p) {
    std::lock_guard hold(lock_);
    to_keep_.push_back(p);
  }
  /// Forgets a box that the node is to keep: nobody will pull it.
  void forget(std::uint64_t number) {
    std::lock_guard hold(lock_);
    std::erase_if(to_keep_, [&](const promise& p) { return p.number == number; });
  }
  /// Returns the boxes that the node is to keep, and forgets them: all that were added before any call that
  /// take_next() has returned.
  std::vector<promise> take_to_keep() {
    std::lock_guard hold(lock_);
    return std::exchange(to_keep_, {});
  }
  /// True if a call with that sequence number is queued.
  bool has_call(std::uint64_t number) const {
    std::lock_guard hold(lock_);
    return std::any_of(calls_.rbegin(), calls_.rend(), [&](const task_record* t) { return t->sequence == number; });
  }
  /// Notes what others are to send to the node for a call that is added next.
  void expect(const task_record& t, std::vector<promise> boxes) {
    std::lock_guard hold(lock_);
    expected_[&t] = std::move(boxes);
  }
  /// Returns what was noted of a call, and forgets it.
  std::vector<promise> take_expected(const task_record& t) {
    std::lock_guard hold(lock_);
    const auto known = expected_.find(&t);
    if (known == expected_.end()) return {};
    std::vector<promise> boxes = std::move(known->second);
    expected_.erase(known);
    return boxes;
  }
  /// Notes for all calls that expect a box under this number that it does not come. True if the call is among them that
  /// is to pull it.
  bool break_promise(std::uint64_t number) {
    std::lock_guard hold(lock_);
    bool found = false;
    for (auto& [t, boxes] : expected_)
      for (promise& p : boxes) {
        if (p.number != number) continue;
        p.number = 0;
        found = found || !p.shared;
      }
    return found;
  }
  /// Returns the boxes that calls expected which have been taken back: nobody will pull them.
  std::vector<promise> take_unwanted() {
    std::lock_guard hold(lock_);
    return std::exchange(unwanted_, {});
  }
  /// Takes calls back, the last ones first, for which `wanted` is true; returns their number.
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) {
    std::lock_guard hold(lock_);
    std::size_t n = 0;
    for (auto t = calls_.end(); t != calls_.begin() && n < room.size();) {
      if (!wanted(**--t)) continue;
      drop_expected(**t);
      room[n++] = *t;
      t = calls_.erase(t);
    }
    count();
    return n;
  }
  /// Takes the next task to be sent, or returns null. `calls_too`: the node has room for another call.
  task_record* take_next(bool calls_too) {
    std::lock_guard hold(lock_);
    task_record* t = nullptr;
    if (!internal_.empty()) {
      t = internal_.front();
      internal_.pop_front();
    } else if (!calls_.empty() && calls_too) {
      t = calls_.front();
      calls_.pop_front();
    }
    count();
    return t;
  }
  /// Keeps an internal task back until resume(). It is not among those that size() counts.
  void put_off(task_record& t) {
    std::lock_guard hold(lock_);
    put_off_.push_back(&t);
  }
  /// Queues the internal tasks again that were put off.
  void resume() {
    std::lock_guard hold(lock_);
    internal_.insert(internal_.end(), put_off_.begin(), put_off_.end());
    put_off_.clear();
  }
  struct rest {
    std::deque<task_record*> calls, internal;
  };
  /// Takes everything, what was put off last.
  rest take_all() {
    std::lock_guard hold(lock_);
    internal_.insert(internal_.end(), put_off_.begin(), put_off_.end());
    put_off_.clear();
    rest all{std::exchange(calls_, {}), std::exchange(internal_, {})};
    count();
    return all;
  }
  /// Whether what is queued may wait for more, for a batch of `batch` calls.
  enum class need { nothing, may_wait, send_now };
  need urgency(std::size_t batch) const {
    std::lock_guard hold(lock_);
    if (!internal_.empty() || !to_keep_.empty() || calls_.size() >= batch) return need::send_now;
    return calls_.empty() ? need::nothing : need::may_wait;
  }
  /// Returns how many tasks are queued, without locking.
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  void drop_expected(const task_record& t) {
    const auto known = expected_.find(&t);
    if (known == expected_.end()) return;
    for (const promise& p : known->second)
      if (p.number != 0 && !p.shared) unwanted_.push_back(p);
    expected_.erase(known);
  }
  void count() { size_.store(calls_.size() + internal_.size(), std::memory_order_relaxed); }

  mutable std::mutex lock_;
  std::deque<task_record*> calls_, internal_, put_off_;
  std::vector<promise> to_keep_, unwanted_;
  std::unordered_map<const task_record*, std::vector<promise>> expected_;
  std::atomic<std::size_t> size_{0};
};

}  // namespace troupe::detail
