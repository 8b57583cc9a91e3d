// What this file is for: which tiles have copies in a device's memory, which of them may go when room is needed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by the device's actor. The least recently used copy is evicted first, one that a running task uses
// (pinned) never.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::logic {

struct replica {
  /// Work on a lane of the device, up to a ticket.
  struct use {
    int lane = 0;
    std::uint64_t until = 0;
  };

  detail::array_core* array = nullptr;
  std::uint64_t array_id = 0;
  std::uint32_t tile = 0;
  bool filled = false;        // holds bytes of this version once the enqueued work has run
  std::uint32_t version = 0;  // newer than the directory's while the write here has not been accounted for
  std::uint64_t write = 0;    // number of the last write that was enqueued
  void* memory = nullptr;
  std::size_t bytes = 0;
  bool dirty = false;                         // the host's copy is older
  bool leaving = false;                       // a copy to the host is under way
  std::shared_ptr<detail::peer_loan> loan;    // other devices may copy from it
  std::shared_ptr<detail::peer_loan> source;  // it is being copied from there; users wait until they borrow it
  int pins = 0;
  use ready;                 // its last copy in or write: every user waits for this
  std::vector<use> read_by;  // reads since then: a writer waits for these too

  bool is_current(std::uint32_t known) const { return filled && static_cast<std::int32_t>(version - known) >= 0; }
  void note_read(use u) {
    for (use& r : read_by)
      if (r.lane == u.lane) {
        r.until = u.until;
        return;
      }
    read_by.push_back(u);
  }
  void note_write(use u) {
    ready = u;
    read_by.clear();
  }
};

class residency {
 public:
  replica* find(std::uint64_t array_id, std::uint32_t tile) {
    const auto found = index_.find({array_id, tile});
    return found == index_.end() ? nullptr : &*found->second;
  }
  /// Adds a replica as the most recently used; its key must be new.
  replica& add(replica r) {
    bytes_ += r.bytes;
    used_.push_back(std::move(r));
    replica& added = used_.back();
    index_[{added.array_id, added.tile}] = std::prev(used_.end());
    return added;
  }
  void touch(const replica& r) { used_.splice(used_.end(), used_, index_.at({r.array_id, r.tile})); }
  void erase(const replica& r) {
    const auto found = index_.find({r.array_id, r.tile});
    bytes_ -= r.bytes;
    const auto at = found->second;
    index_.erase(found);
    used_.erase(at);
  }
  /// Returns the least recently used replica that is not in use and that `may_go` accepts; null if there is none.
  template <class F>
  replica* victim(F&& may_go) {
    for (replica& r : used_)
      if (r.pins == 0 && !r.leaving && may_go(r)) return &r;
    return nullptr;
  }
  /// The same where the next use of some replicas is known: `next_use(replica)` points to a turn, or is null. Prefers
  /// the least recently used replica without a known next use; then the one whose next use is last. Looks at no more
  /// than the looked_at_max least recently used candidates.
  template <class F, class G>
  replica* victim(F&& may_go, G&& next_use) {
    replica* last = nullptr;
    decltype(next_use(used_.front())) turn = nullptr;
    std::size_t looked_at = 0;
    for (replica& r : used_) {
      if (r.pins != 0 || r.leaving || !may_go(r)) continue;
      const auto next = next_use(r);
      if (!next) return &r;
      if (!turn || *turn < *next) {
        last = &r;
        turn = next;
      }
      if (++looked_at == looked_at_max) break;
    }
    return last;
  }
  /// Calls f(replica) for each; f may erase it.
  template <class F>
  void each(F&& f) {
    for (auto r = used_.begin(); r != used_.end();) f(*r++);
  }
  template <class F>
  void each(F&& f) const {
    for (const replica& r : used_) f(r);
  }
  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return index_.size(); }

 private:
  static constexpr std::size_t looked_at_max = 512;
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
