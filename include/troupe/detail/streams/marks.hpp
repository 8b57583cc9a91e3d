// What this file is for: marks, which travel among the items of a stream and say how far its time has come.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe::detail::streams {

/// What travels among the items of a stream and is never dropped: no item with an earlier time of its own comes behind
/// it. `is_idle`: nothing comes at the moment, so nobody is to wait for this way's times. `barrier`: the number of the
/// last barrier that has passed; what was pushed before it stays before it, what comes behind stays behind, by
/// whichever way.
struct mark {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();
  std::int64_t event_ns = never;
  bool is_idle = false;
  std::uint64_t barrier = 0;
  bool operator==(const mark&) const = default;
};

/// What the marks of several ways come to together.
class merged_marks {
 public:
  /// Adds a way and returns its number.
  std::size_t open() {
    ways_.push_back({});
    return ways_.size() - 1;
  }
  /// Notes what a way says; its time never goes back. True if what holds for all has changed.
  bool note(std::size_t way, const mark& m) {
    mark& of = ways_[way].last;
    of = {std::max(of.event_ns, m.event_ns), m.is_idle, std::max(of.barrier, m.barrier)};
    return merge();
  }
  /// Nothing comes by that way any more. It says nothing of the times of the others: the end is no time.
  bool close(std::size_t way) {
    ways_[way].is_closed = true;
    return merge();
  }
  /// What has come by one way last.
  const mark& last(std::size_t way) const { return ways_[way].last; }
  /// True if a barrier has come by that way and not yet by all: nothing may follow until then.
  bool is_barred(std::size_t way) const { return !ways_[way].is_closed && ways_[way].last.barrier > all_.barrier; }
  /// True if others do not wait for its times.
  bool is_out(std::size_t way) const { return ways_[way].is_closed || ways_[way].last.is_idle; }
  /// The least time of all ways that are neither closed nor idle; where all are idle, the latest one, since nobody is
  /// waited for (as in Flink). Never goes back. Where all are closed, what was said last stays.
  const mark& all() const { return all_; }

 private:
  bool merge() {
    mark m{std::numeric_limits<std::int64_t>::max(), true, std::numeric_limits<std::uint64_t>::max()};
    std::int64_t latest = mark::never;
    bool any = false;
    for (const way_in& w : ways_) {
      if (w.is_closed) continue;
      any = true;
      latest = std::max(latest, w.last.event_ns);
      m.barrier = std::min(m.barrier, w.last.barrier);
      if (w.last.is_idle) continue;
      m.is_idle = false;
      m.event_ns = std::min(m.event_ns, w.last.event_ns);
    }
    if (!any) return false;
    if (m.is_idle) m.event_ns = latest;
    m.event_ns = std::max(m.event_ns, all_.event_ns);
    m.barrier = std::max(m.barrier, all_.barrier);
    if (m == all_) return false;
    all_ = m;
    return true;
  }
  struct way_in {
    mark last;
    bool is_closed = false;
  };
  std::vector<way_in> ways_;
  mark all_;
};

}  // namespace troupe::detail::streams
