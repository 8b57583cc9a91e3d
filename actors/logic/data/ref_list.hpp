// What this file is for: references to tasks, and lists of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Reference to a task; valid while the record still carries the same sequence number.
struct task_ref {
  task_record* task = nullptr;
  std::uint64_t sequence = 0;
};

/// Sequence numbers are in series: those of a task that threads order beside each other have the series in their upper
/// bits. Numbers grow in each series; those of several are compared without it.
inline constexpr int series_at = 56;
constexpr std::uint64_t series_of(std::uint64_t sequence) { return sequence >> series_at; }
constexpr std::uint64_t number_of(std::uint64_t sequence) { return sequence & ((std::uint64_t{1} << series_at) - 1); }

/// List of references with room for one inside; its capacity is kept when it is cleared.
class ref_list {
 public:
  ref_list() = default;
  ref_list(const ref_list&) = delete;
  ref_list& operator=(const ref_list&) = delete;
  ~ref_list() { delete[] more_; }

  bool empty() const { return count_ == 0; }
  std::uint32_t size() const { return count_; }
  const task_ref* begin() const { return more_ ? more_ : &one_; }
  const task_ref* end() const { return begin() + count_; }
  void clear() { count_ = 0; }
  /// Adds a reference. Before the list grows, drops references for which `alive` is false, so that reads without writes
  /// stay bounded.
  template <class Alive>
  void add(task_ref r, Alive&& alive) {
    if (count_ == capacity_) make_room(alive);
    data()[count_++] = r;
  }
  void remove(const task_record* t) {
    task_ref* const all = data();
    task_ref* const rest = std::remove_if(all, all + count_, [t](const task_ref& r) { return r.task == t; });
    count_ = static_cast<std::uint32_t>(rest - all);
  }
  /// As remove, where the first one is the likeliest.
  void remove_first(const task_record* t) {
    if (count_ == 0 || data()->task != t || (count_ > 1 && data()[1].task == t)) return remove(t);
    std::memmove(static_cast<void*>(data()), data() + 1, --count_ * sizeof(task_ref));
  }

 private:
  task_ref* data() { return more_ ? more_ : &one_; }
  template <class Alive>
  void make_room(Alive&& alive) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (alive(data()[i])) data()[kept++] = data()[i];
    count_ = kept;
    if (kept * 2 <= capacity_ && kept < capacity_) return;
    const std::uint32_t larger = capacity_ < 8 ? 8 : capacity_ * 2;
    auto* fresh = new task_ref[larger];
    std::memcpy(static_cast<void*>(fresh), data(), kept * sizeof(task_ref));
    delete[] more_;
    more_ = fresh;
    capacity_ = larger;
  }

  task_ref one_;
  task_ref* more_ = nullptr;
  std::uint32_t count_ = 0, capacity_ = 1;
};

}  // namespace troupe::detail
