// What this file is for: what only a node has is saved before it leaves: how far that is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Knows whether the node is leaving. Counts what is being saved (tiles fetched by host accesses, copies asked for),
/// and keeps the host accesses until they can be closed and given back.
///
/// A part of a node's actor. It has a lock of its own, because placement reports host accesses while it holds the turn:
/// any thread may call, and nothing else is locked inside.
class departure {
 public:
  /// Notes that the node is leaving, and takes no more tasks; false if that was known.
  bool begin() {
    if (leaving_.exchange(true)) return false;
    refuses_.store(true);
    return true;
  }
  bool is_under_way() const { return leaving_.load(std::memory_order_relaxed); }
  /// Notes that the node has been released, or has gone; false if it was not leaving.
  bool end() { return leaving_.exchange(false, std::memory_order_relaxed); }
  /// True if the node takes no more tasks. It does not when it has been released either, until it has gone.
  bool refuses() const { return refuses_.load(); }
  /// Notes that another node has joined in this place, which takes tasks.
  void forget() { refuses_.store(false); }

  /// Counts what is about to be saved, and what is not any more. The latter returns true if that was the last.
  void begin_saving(std::size_t n) { saving_.fetch_add(n); }
  bool end_saving(std::size_t n) { return saving_.fetch_sub(n) == n; }
  bool is_saving() const { return saving_.load() != 0; }

  /// Adds a host access that fetches a tile, before it is submitted.
  void add(task_record& t, std::uint64_t array, std::uint32_t tile) {
    std::lock_guard hold(lock_);
    fetched_[&t] = {array, tile};
  }
  /// Notes that the tile of a host access is here, which is to be closed; then that the access has retired.
  void granted(task_record& t) {
    std::lock_guard hold(lock_);
    to_close_.push_back(&t);
  }
  void retired(task_record& t) {
    std::lock_guard hold(lock_);
    const auto what = fetched_.extract(&t).mapped();
    ended_.push_back({&t, what.first, what.second});
  }
  struct fetched {
    task_record* task;
    std::uint64_t array;
    std::uint32_t tile;
  };
  struct progress {
    std::vector<task_record*> to_close;
    std::vector<fetched> ended;  // whose records are to be given back; they count as being saved until then
  };
  /// Takes what has happened to the host accesses.
  progress take() {
    std::lock_guard hold(lock_);
    return {std::exchange(to_close_, {}), std::exchange(ended_, {})};
  }

 private:
  std::atomic<bool> leaving_{false}, refuses_{false};
  std::atomic<std::size_t> saving_{0};
  std::mutex lock_;
  std::unordered_map<task_record*, std::pair<std::uint64_t, std::uint32_t>> fetched_;  // the array and the tile
  std::vector<task_record*> to_close_;
  std::vector<fetched> ended_;
};

}  // namespace troupe::detail
