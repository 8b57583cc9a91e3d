// What this file is for: kernels that a device has loaded or is to load before a task needs them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// The kernels that were asked for, in order, and those that are ready. Any thread, with a lock of its own.
class kernel_requests {
 public:
  struct request {
    const kernel_info* kernel = nullptr;
    std::uint64_t since = 0;  // ticks
  };
  enum class answer {
    ready,  ///< the kernel is loaded, or what is wrong with it is to be told by a task
    asked,  ///< it was asked for before
    added   ///< it has been asked for now: the thread that loads should be told
  };
  /// Asks for a kernel, whose address must stay the same.
  answer ask(const kernel_info& k, std::uint64_t now) {
    std::lock_guard hold(lock_);
    if (ready_.contains(&k)) return answer::ready;
    if (std::ranges::find(waiting_, &k, &request::kernel) != waiting_.end()) return answer::asked;
    waiting_.push_back({&k, now});
    count_.store(waiting_.size(), std::memory_order_relaxed);
    return answer::added;
  }
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  /// The request that came first; there must be one. Only one thread loads.
  request first() const {
    std::lock_guard hold(lock_);
    return waiting_.front();
  }
  /// Notes that the first one has been loaded, or cannot be.
  void first_is_ready() {
    std::lock_guard hold(lock_);
    ready_.insert(waiting_.front().kernel);
    waiting_.pop_front();
    count_.store(waiting_.size(), std::memory_order_relaxed);
  }
  /// Forgets what was loaded: the device has been opened anew.
  void forget_ready() {
    std::lock_guard hold(lock_);
    ready_.clear();
  }

 private:
  mutable std::mutex lock_;
  std::set<const kernel_info*> ready_;
  std::deque<request> waiting_;
  std::atomic<std::size_t> count_{0};  // the size of waiting_
};

/// Whether the cores rest: a device that computes on them leaves them alone otherwise. One thread.
class calm_watch {
 public:
  /// Notes whether the cores rest now; returns for how many ticks they have rested at each look.
  std::uint64_t look(bool rest, std::uint64_t now) {
    if (!rest) {
      since_ = 0;
      return 0;
    }
    if (since_ == 0) since_ = now;
    return now - since_;
  }

 private:
  std::uint64_t since_ = 0;  // ticks; 0: they did not rest
};

}  // namespace troupe::detail
