// What this file is for: the tasks that are under way on another node, by the numbers under which they were sent.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "actors/remote_node/job.hpp"

namespace troupe::detail {

/// Owns the jobs of a node's actor, and gives each a number that is never used again.
///
/// A part of a node's actor, under the actor's lock. A job stays where it is in memory until give().
class job_table {
 public:
  /// Takes a job for a task. Only if has_free().
  job& take(task_record& t) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(jobs_.size()));
      jobs_.emplace_back();
    }
    const std::uint32_t at = free_.back();
    free_.pop_back();
    job& j = jobs_[at];
    j.id = (++generation_ << index_bits) | at;
    j.task = &t;
    ++under_way_;
    return j;
  }
  bool has_free() const { return !free_.empty() || jobs_.size() < no_index; }
  /// Returns the job with that number, or null if it has ended.
  job* find(std::uint64_t id) {
    const std::size_t at = id & no_index;
    return at < jobs_.size() && jobs_[at].task && jobs_[at].id == id ? &jobs_[at] : nullptr;
  }
  /// Returns the same of a number that the node has named; throws error(protocol_error) for one that was never given.
  job* find_told(std::uint64_t id) {
    const std::uint64_t at = id & no_index, times = id >> index_bits;
    if (times == 0 || times > generation_ || (at != no_index && at >= jobs_.size()))
      throw error(errc::protocol_error, "something was said of a task or a transfer that was never asked for");
    return find(id);
  }
  /// Frees a job. What is left in it (its number, its task's writes) may be read until the next take().
  void give(job& j) {
    j.task = nullptr;
    j.data.reset();
    j.stop_watch.reset();
    j.lent.clear();
    j.end.reset();
    j.brought.clear();
    j.copied.clear();
    j.carries.clear();
    j.group = j.carried_by = 0;
    resting_ -= std::exchange(j.rests, false) ? 1u : 0u;
    j.copies = j.writing = j.pushing = j.sending = 0;
    j.begun = j.recalled = false;
    j.tried = 0;
    free_.push_back(static_cast<std::uint32_t>(j.id & no_index));
    --under_way_;
  }
  /// Returns a number, of the same sequence, for a transfer that belongs to no job; find() finds nothing under it.
  std::uint64_t number_without_job() { return (++generation_ << index_bits) | no_index; }
  /// Notes that nothing of the job's task is to be done there any more.
  void rest(job& j) { resting_ += std::exchange(j.rests, true) ? 0u : 1u; }
  /// Returns the number of jobs that are under way and do not rest.
  std::size_t running() const { return under_way_ - resting_; }
  std::size_t under_way() const { return under_way_; }
  /// Calls f(job&) for each job that is under way; `f` may give that job back.
  template <class F>
  void each(F&& f) {
    for (job& j : jobs_)
      if (j.task) f(j);
  }
  /// True if f(const job&) is true for a job that is under way.
  template <class F>
  bool any(F&& f) const {
    for (const job& j : jobs_)
      if (j.task && f(j)) return true;
    return false;
  }

 private:
  /// A number is the job's index, in the lowest bits, and how many numbers had been given before. No job has this
  /// index.
  static constexpr int index_bits = 20;
  static constexpr std::uint64_t no_index = (1u << index_bits) - 1;

  std::deque<job> jobs_;  // by index
  std::vector<std::uint32_t> free_;
  std::size_t under_way_ = 0, resting_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace troupe::detail
