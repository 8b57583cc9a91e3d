// What this file is for: sleepers that are woken once the turn has been left in which there was reason to.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace troupe::detail {

/// Gathers wake-ups while a thread has a turn: each is a system call, and the kernel may give the waker's core to the
/// sleeper at once. Wake-ups of threads that have none are made as they come. `begin` and `end` belong to the holder
/// of the turn; `wake` is for any thread.
class late_wakes {
 public:
  /// Wake-ups that are due, in the order in which they came.
  class due {
   public:
    /// Wakes the sleepers, or leaves that to another turn that the thread has.
    void wake() {
      for (std::size_t i = 0; i < count_; ++i) late_wakes::wake(*some_[i]);
      for (std::condition_variable* c : more_) late_wakes::wake(*c);
    }
    std::size_t size() const { return count_ + more_.size(); }

   private:
    friend class late_wakes;
    std::array<std::condition_variable*, 16> some_;
    std::size_t count_ = 0;
    std::vector<std::condition_variable*> more_;
  };

  late_wakes() = default;
  /// Ends what its owner has left begun.
  ~late_wakes() {
    if (here_ == this) here_ = outer_;
  }
  late_wakes(const late_wakes&) = delete;
  late_wakes& operator=(const late_wakes&) = delete;

  /// Wakes the one thread that waits for a condition, now or when the caller leaves its turn. The condition must exist
  /// until then: it belongs to an actor, not to the thread that waits.
  static void wake(std::condition_variable& c) noexcept {
    late_wakes* const here = here_;
    if (!here || !here->add(c)) c.notify_one();
  }

  /// Ends the gathering of the calling thread for a while and makes the wake-ups that it has gathered: it is about to
  /// call what may wait for others although it has a turn.
  class pause {
   public:
    pause() noexcept : gathers_(std::exchange(here_, nullptr)) {
      for (late_wakes* l = gathers_; l; l = l->outer_)
        if (l->size() != 0) l->take().wake();
    }
    ~pause() { here_ = gathers_; }
    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;

   private:
    late_wakes* const gathers_;
  };

  /// Has wake-ups of the calling thread gathered: it has taken a turn.
  void begin() noexcept { outer_ = std::exchange(here_, this); }
  /// Ends that, and returns what is to be woken once the turn has been left.
  [[nodiscard]] due end() noexcept {
    here_ = outer_;
    return take();
  }
  /// Returns how many wake-ups have been gathered.
  std::size_t size() const { return due_.size(); }

 private:
  due take() noexcept {
    due d;
    d.count_ = std::exchange(due_.count_, 0);
    for (std::size_t i = 0; i < d.count_; ++i) d.some_[i] = due_.some_[i];
    d.more_.swap(due_.more_);
    return d;
  }
  bool add(std::condition_variable& c) noexcept {
    if (due_.count_ != 0 && due_.some_[due_.count_ - 1] == &c && due_.more_.empty()) return true;
    if (due_.count_ < due_.some_.size()) {
      due_.some_[due_.count_++] = &c;
      return true;
    }
    try {
      due_.more_.push_back(&c);
      return true;
    } catch (const std::bad_alloc&) {
      return false;  // then at once
    }
  }

  static inline thread_local late_wakes* here_ = nullptr;  // of the turn that the thread has taken last

  due due_;
  late_wakes* outer_ = nullptr;  // of a turn that the thread has as well, of another runtime
};

}  // namespace troupe::detail
