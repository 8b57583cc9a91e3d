// What this file is for: what a device has under way, how much of it may be, and the lane of the next task.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "actors/gpu/job.hpp"
#include "actors/gpu/lanes.hpp"
#include "actors/protocol/bell.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

/// The jobs under way, in the order in which they began; the device's turn guards it, but for the tasks that it shows.
/// Jobs that have ended are kept for use again.
class gpu_job_list {
 public:
  using iterator = std::list<gpu_job>::iterator;

  /// `compute_lanes`: of the device, beside those for copies.
  gpu_job_list(runtime_state& rt, std::string name, const std::atomic<bool>& stopping, int compute_lanes)
      : rt_(rt), name_(std::move(name)), stopping_(stopping), compute_lanes_(compute_lanes) {}

  std::size_t size() const { return jobs_.size(); }
  bool empty() const { return jobs_.empty(); }
  iterator begin() { return jobs_.begin(); }
  iterator end() { return jobs_.end(); }
  auto begin() const { return jobs_.begin(); }
  auto end() const { return jobs_.end(); }
  gpu_job& front() { return jobs_.front(); }
  const gpu_job& front() const { return jobs_.front(); }
  /// Returns the jobs that began after this one.
  auto after(const gpu_job& j) { return std::ranges::subrange(std::next(j.self), jobs_.end()); }

  gpu_job& take() {
    if (idle_.empty()) {
      idle_.emplace_back(rt_, name_.c_str(), stopping_);
      idle_.front().self = idle_.begin();
    }
    jobs_.splice(jobs_.end(), idle_, idle_.begin());
    gpu_job& j = jobs_.back();
    j.reset();
    j.route.compute = lane_out;
    return j;
  }
  void give(gpu_job& j) {
    if (std::exchange(j.counted, false)) under_way_ns_ -= j.task->predicted_ns;
    if (jobs_.size() == 1) under_way_ns_ = 0;
    idle_.splice(idle_.begin(), jobs_, j.self);
  }
  /// Counts the job's task among the work that is under way.
  void count(gpu_job& j) {
    under_way_ns_ += j.task->predicted_ns;
    j.counted = true;
  }

  /// Returns true if another task may be enqueued. Once there is enough, half of it is worked off before there is room
  /// again: many tasks at a time share a ticket, and the thread that enqueues and the device that works do not meet at
  /// each one. While tiles are evicted few are enqueued: their data would have to leave for those behind them.
  bool has_room() {
    if (evicts_ && jobs_.size() >= static_cast<std::size_t>(compute_lanes_ + gpu_copy_lanes)) return false;
    const bool few = jobs_.size() < static_cast<std::size_t>(2 * compute_lanes_ + gpu_copy_lanes);
    const float share = enough_ ? 0.5f : 1.0f;
    enough_ = !few && (static_cast<float>(jobs_.size()) >= share * ahead_max ||
                       under_way_ns_ >= share * ahead_ns * static_cast<float>(compute_lanes_));
    return !enough_;
  }
  /// Notes that something had to leave the device's memory, since tasks are looked at ahead of their turn; then that
  /// they are not any more.
  void begin_evicting() { evicts_ = true; }
  void end_evicting() { evicts_ = false; }
  /// Returns the lane on which the next task computes that need not come after another one. `is_long`: of the task.
  int next_lane(bool is_long) {
    const bool all_busy = jobs_.size() > static_cast<std::size_t>(2 * compute_lanes_);
    if (!all_busy || is_long || ++in_row_ >= row_max) {
      in_row_ = 0;
      next_lane_ = (next_lane_ + 1) % compute_lanes_;
    }
    return gpu_copy_lanes + next_lane_;
  }

  // ---- with the mailbox's lock: tasks that others see while the device's thread sleeps or compiles ------------------
  /// Shows the tasks of the jobs that are under way now. With the turn too.
  void show(const bell::held&) {
    shown_.clear();
    for (const gpu_job& j : jobs_)
      if (j.task && !is_internal(j.task->kind)) shown_.push_back(j.task);
  }
  /// Shows none: the thread that has the turn goes on.
  void hide(const bell::held&) { shown_.clear(); }
  /// The tasks that are shown. Any thread.
  const std::vector<task_record*>& shown(const bell::held&) const { return shown_; }

 private:
  // So much predicted work for each lane is enqueued ahead of time, and so many tasks at most; two a lane in any case.
  static constexpr float ahead_ns = 200'000.0f;
  static constexpr float ahead_max = 256;
  // While every lane has work, so many small tasks go to one lane before the next has its turn: to wake a lane that
  // rests costs more than they do.
  static constexpr int row_max = 8;

  runtime_state& rt_;
  const std::string name_;
  const std::atomic<bool>& stopping_;
  const int compute_lanes_;
  std::list<gpu_job> jobs_, idle_;
  float under_way_ns_ = 0;           // predicted, of the jobs that count
  bool enough_ = false;              // is under way
  bool evicts_ = false;              // something has had to leave the device's memory
  int next_lane_ = 0, in_row_ = 0;   // the lane whose turn it is, and small tasks that it has had
  std::vector<task_record*> shown_;  // with the mailbox's lock
};

}  // namespace troupe::detail
