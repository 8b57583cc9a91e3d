// What this file is for: which tiles have copies in a device's memory, which of them may go when room is needed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by the device's actor. Least recently used first, what a running task uses (pinned) never.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include <troupe/detail/task.hpp>

namespace troupe::logic {

struct replica {
  detail::array_core* array = nullptr;
  std::uint64_t array_id = 0;
  std::uint32_t tile = 0;
  std::uint32_t version = 0;  // of the bytes; 0: nothing yet
  void* memory = nullptr;
  std::size_t bytes = 0;
  bool dirty = false;    // the host's copy is older
  bool leaving = false;  // a copy to the host is under way
  int pins = 0;
  // Whoever uses it waits for this: its last copy in or out.
  int lane = 0;
  std::uint64_t ready = 0;
};

class residency {
 public:
  replica* find(std::uint64_t array_id, std::uint32_t tile) {
    const auto found = index_.find({array_id, tile});
    return found == index_.end() ? nullptr : &*found->second;
  }
  /// The newest; its key must be new.
  replica& add(replica r) {
    used_.push_back(r);
    index_[{r.array_id, r.tile}] = std::prev(used_.end());
    bytes_ += r.bytes;
    return used_.back();
  }
  void touch(const replica& r) { used_.splice(used_.end(), used_, index_.at({r.array_id, r.tile})); }
  void erase(const replica& r) {
    const auto found = index_.find({r.array_id, r.tile});
    bytes_ -= r.bytes;
    const auto at = found->second;
    index_.erase(found);
    used_.erase(at);
  }
  /// Of those that nobody uses, the one that was used longest ago; null if there is none.
  replica* victim() {
    for (replica& r : used_)
      if (r.pins == 0 && !r.leaving) return &r;
    return nullptr;
  }
  /// Calls f(replica) for each; f may erase it.
  template <class F>
  void each(F&& f) {
    for (auto r = used_.begin(); r != used_.end();) f(*r++);
  }
  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return index_.size(); }

 private:
  struct key {
    std::uint64_t array;
    std::uint32_t tile;
    bool operator==(const key&) const = default;
  };
  struct hash {
    std::size_t operator()(const key& k) const {
      return (k.array * 0x9e3779b97f4a7c15ull) ^ (k.tile * 0xff51afd7ed55ull);
    }
  };
  std::list<replica> used_;  // oldest first
  std::unordered_map<key, std::list<replica>::iterator, hash> index_;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::logic
