// What this file is for: what a ready task is worth to a thread that could run it, and how many one takes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// What tasks are worth to a thread that could run them, and how many it takes.
struct task_worth {
  /// Most tasks that a thread takes at once, and the predicted work after which it takes no more: long tasks spread
  /// over the threads.
  static constexpr std::size_t batch_max = 32;
  static constexpr float batch_ns = 80'000.0f;
  /// Work that a task which was never timed is worth to another thread.
  static constexpr float unknown_ns = 20'000.0f;
  /// Work below which a batch is not divided between threads.
  static constexpr float min_shareable_ns = 1'000.0f;
  /// Least time that other threads must save by taking work, or it is not left to them.
  static constexpr float worth_sharing_ns = 300.0f;
  /// Cost of moving a task to another core: its record and its data's state travel.
  static constexpr float move_ns = 200.0f;

  /// Returns the priority of a task; without options 0.
  static int priority_of(const task_record& t) { return t.extra ? t.extra->options.priority : 0; }
  /// Returns what another thread would save by running a task that is predicted to take `ns`; 0: it was never timed.
  /// `moves_cost`: false where tasks cost the same on any core; see logic::sharing_trial.
  static float worth_of(float ns, bool moves_cost) {
    return ns > 0 ? std::max(0.0f, ns - (moves_cost ? move_ns : 0.0f)) : unknown_ns;
  }

  /// The predictions of a batch, in sums: records may be gone as soon as other threads can take them.
  struct sums {
    float ns = 0;            ///< of all its tasks
    float first_ns = 0;      ///< of the first
    float beside_ns = 0;     ///< that another thread would save by running all but the first
    bool moves_cost = true;  ///< with that; see worth_of
    bool movable = false;    ///< other executors may run some of them
    void add(float predicted_ns, bool first) {
      ns += predicted_ns;
      if (first)
        first_ns = predicted_ns;
      else
        beside_ns += worth_of(predicted_ns, moves_cost);
    }
  };

  /// True if so much work is not worth dividing between so many threads; `worth`: what others would save.
  static bool is_indivisible(float work, float worth, std::size_t takers) {
    return work < min_shareable_ns && (worth < worth_sharing_ns || takers == 1);
  }
  /// Returns the predicted work of a task in a batch; tasks that were never timed fill one, and so go one at a time.
  static float batch_work_of(float ns) { return ns > 0 ? ns : batch_ns; }

  /// What one of so many `takers` takes of `size` tasks: a fair share, but no less work than is worth dividing.
  class portion {
   public:
    portion(std::size_t size, std::size_t takers, bool moves_cost)
        : fair_share_(size / (2 * takers)), takers_(takers), moves_cost_(moves_cost) {}
    bool has_room() const {
      return n_ < batch_max && work_ < batch_ns && (n_ < fair_share_ || is_indivisible(work_, worth_, takers_));
    }
    void add(float ns, sums* of) {
      if (of) of->add(ns, n_ == 0);
      ++n_;
      work_ += batch_work_of(ns);
      worth_ += worth_of(ns, moves_cost_);
    }
    std::size_t size() const { return n_; }

   private:
    std::size_t fair_share_, takers_, n_ = 0;
    float work_ = 0, worth_ = 0;
    bool moves_cost_;
  };
};

}  // namespace troupe::detail
