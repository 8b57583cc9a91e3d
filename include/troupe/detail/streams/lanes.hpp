// What this file is for: the lanes of a stage that runs in parallel: how many are in use, which is told of an item.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe::detail::streams {

class strand;

/// How many lanes are used, between two numbers. One more where items wait and the edge is full, since that holds the
/// source up; twice as many where items have waited for a while; fewer where half of them would do, after a longer
/// while. Items that take less than it costs to move them to another core are no reason for more.
class lane_scaling {
 public:
  lane_scaling(int least, int most) : least_(least), most_(most), active_(least) {}
  int active() const { return active_; }
  /// An item has come, or one has been taken, which takes `item_ns` (0: not known); so many wait now.
  void note(std::int64_t now, bool is_taken, double item_ns, std::size_t waiting, bool is_full) {
    if (begun_ == 0) begun_ = now;
    if (is_taken) work_ns_ += item_ns;
    item_ns_ = item_ns;
    waiting_least_ = std::min(waiting_least_, waiting);
    if (is_full && waiting != 0) add(1);
    if (now - begun_ < window_ns) return;
    const double load = work_ns_ / static_cast<double>(now - begun_);
    if (waiting_least_ > static_cast<std::size_t>(active_)) {
      add(active_);
      quiet_ = 0;
    } else if (waiting_least_ == 0 && load < active_ / 2.0) {
      if (++quiet_ == quiet_windows) {
        active_ = std::clamp(static_cast<int>(std::ceil(load * 1.5)), least_, active_);
        quiet_ = 0;
      }
    } else {
      quiet_ = 0;
    }
    begun_ = now;
    work_ns_ = 0;
    waiting_least_ = std::numeric_limits<std::size_t>::max();
  }

 private:
  static constexpr std::int64_t window_ns = 10'000'000;
  static constexpr int quiet_windows = 10;
  static constexpr double worth_ns = 2'000;
  void add(int n) {
    if (item_ns_ == 0 || item_ns_ >= worth_ns) active_ = std::min(most_, active_ + n);
  }
  const int least_, most_;
  int active_, quiet_ = 0;
  std::int64_t begun_ = 0;
  double work_ns_ = 0, item_ns_ = 0;
  std::size_t waiting_least_ = std::numeric_limits<std::size_t>::max();
};

/// Strands that have found an edge empty, each with the number of its lane.
class takers {
 public:
  void wait(strand& s, int lane) {
    const auto is_same = [&](const taker& t) { return t.who == &s; };
    if (std::none_of(all_.begin(), all_.end(), is_same)) all_.push_back({&s, lane});
  }
  void wait_no_more(const strand& s) {
    std::erase_if(all_, [&](const taker& t) { return t.who == &s; });
  }
  /// Takes the one that came last, of the lanes that are in use; null: there is none.
  strand* next(int active) {
    for (auto it = all_.rbegin(); it != all_.rend(); ++it) {
      if (it->lane >= active) continue;
      strand* const s = it->who;
      all_.erase(std::next(it).base());
      return s;
    }
    return nullptr;
  }
  void take_all(std::vector<strand*>& to) {
    for (const taker& t : all_) to.push_back(t.who);
    all_.clear();
  }

 private:
  struct taker {
    strand* who;
    int lane;
  };
  std::vector<taker> all_;
};

}  // namespace troupe::detail::streams
