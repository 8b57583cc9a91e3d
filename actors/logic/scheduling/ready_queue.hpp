// What this file is for: tasks that may run, highest priority first, equal ones in the order they became ready.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace troupe::logic {

/// Ring that grows; no allocation in steady state.
template <class T>
class ring {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  void push_back(T v) {
    if (size() == slots_.size()) grow();
    slots_[tail_++ & (slots_.size() - 1)] = v;
  }
  void push_front(T v) {
    if (size() == slots_.size()) grow();
    if (head_ == 0) {
      head_ += slots_.size();
      tail_ += slots_.size();
    }
    slots_[--head_ & (slots_.size() - 1)] = v;
  }
  T pop_front() { return slots_[head_++ & (slots_.size() - 1)]; }
  T& at(std::size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 64 : slots_.size() * 2);
    const std::size_t n = size();
    for (std::size_t i = 0; i < n; ++i) larger[i] = at(i);
    slots_ = std::move(larger);
    head_ = 0;
    tail_ = n;
  }
  std::vector<T> slots_;
  std::size_t head_ = 0, tail_ = 0;
};

/// Queue by priority. T is a pointer or converts to bool as one does. Empty entries (taken out of the middle) are
/// skipped when popped.
template <class T>
class ready_queue {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  void push(T v, int priority) {
    lane(priority).push_back(v);
    ++count_;
  }
  void push_front(T v, int priority) {
    lane(priority).push_front(v);
    ++count_;
  }
  /// Takes out the first entry; an empty T if there is none.
  T pop() {
    for (auto& l : lanes_) {
      while (!l.items.empty()) {
        if (T v = l.items.pop_front()) {
          --count_;
          return v;
        }
      }
    }
    return T{};
  }
  /// Returns the entry that `pop` would take; null if there is none.
  T* front() {
    for (auto& l : lanes_) {
      while (!l.items.empty() && !l.items.at(0)) l.items.pop_front();
      if (!l.items.empty()) return &l.items.at(0);
    }
    return nullptr;
  }
  /// Returns the priority of the first entry; `none` without one.
  int first_priority(int none) {
    for (auto& l : lanes_) {
      while (!l.items.empty() && !l.items.at(0)) l.items.pop_front();
      if (!l.items.empty()) return l.priority;
    }
    return none;
  }
  /// True if the first entry has a higher priority than that.
  bool begins_above(int priority) { return first_priority(priority) > priority; }
  /// Takes out those among the first `reach` entries that `wanted` accepts; calls `take(v)` for each.
  template <class Wanted, class Take>
  void take_first(std::size_t reach, Wanted&& wanted, Take&& take) {
    for (auto& l : lanes_) {
      while (!l.items.empty() && !l.items.at(0)) l.items.pop_front();
      for (std::size_t i = 0; i < l.items.size() && reach != 0; ++i) {
        T& v = l.items.at(i);
        if (!v) continue;
        --reach;
        if (!wanted(v)) continue;
        take(std::exchange(v, T{}));
        --count_;
      }
    }
  }
  /// Takes `v` out if it is among the last `reach` entries of a priority.
  bool take(T v, std::size_t reach) {
    for (auto& l : lanes_) {
      const std::size_t n = l.items.size();
      for (std::size_t i = 0; i < n && i < reach; ++i) {
        if (!(l.items.at(n - 1 - i) == v)) continue;
        l.items.at(n - 1 - i) = T{};
        --count_;
        return true;
      }
    }
    return false;
  }
  /// Takes out up to n entries that `wanted` accepts, the newest of the lowest priority first; calls `take(v)` for
  /// each.
  template <class Wanted, class Take>
  void take_newest(std::size_t n, Wanted&& wanted, Take&& take) {
    for (auto l = lanes_.rbegin(); l != lanes_.rend(); ++l)
      for (std::size_t i = l->items.size(); i != 0 && n != 0; --i) {
        T& v = l->items.at(i - 1);
        if (!v || !wanted(v)) continue;
        take(std::exchange(v, T{}));
        --count_;
        --n;
      }
  }

 private:
  struct lane_of {
    int priority;
    ring<T> items;
  };
  ring<T>& lane(int priority) {
    if (!lanes_.empty() && lanes_.front().priority == priority) return lanes_.front().items;
    auto l = lanes_.begin();
    while (l != lanes_.end() && l->priority > priority) ++l;
    if (l == lanes_.end() || l->priority != priority) l = lanes_.insert(l, lane_of{priority, {}});
    return l->items;
  }
  std::vector<lane_of> lanes_;  // highest priority first
  std::size_t count_ = 0;
};

}  // namespace troupe::logic
