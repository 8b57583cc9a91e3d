// What this file is for: members: when two nodes that know different things tell each other everything.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace troupe::logic {

/// Remembers when this node last told or asked for everything, and how often the digests in heartbeats have differed
/// since. Each function that returns true counts as having done so.
class difference_watch {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// True if this node may ask one that knows of many more members.
  bool may_ask(time_point now) { return now - last_ >= every && done(now); }
  /// In a mesh: a digest has come from a peer whose digests have differed since `differs` (none: time_point{}), which
  /// is brought up to date. True if it is time to tell that peer everything.
  bool is_due(bool same, time_point& differs, time_point now) {
    if (same) {
      differs = {};
    } else if (differs == time_point{}) {
      differs = now;
    } else if (now - differs >= every && now - last_ >= every) {
      differs = now;
      return done(now);
    }
    return false;
  }
  /// Beyond a mesh: some of many peers may lack the same changes, so the others count. True if it is time to compare
  /// with this peer in detail.
  bool is_due_beyond(bool same, time_point now) {
    if (same) {
      differing_ -= std::min<std::size_t>(differing_, 4);
      return false;
    }
    if (++differing_ <= differing_max || now - last_ < every_beyond) return false;
    differing_ = 0;
    return done(now);
  }

 private:
  static constexpr auto every = std::chrono::milliseconds(500), every_beyond = std::chrono::milliseconds(2000);
  static constexpr std::size_t differing_max = 100;  // heartbeats: those of about two seconds

  bool done(time_point now) {
    last_ = now;
    return true;
  }

  time_point last_{};
  std::size_t differing_ = 0;  // heartbeats with another digest, less four times those with the same
};

}  // namespace troupe::logic
