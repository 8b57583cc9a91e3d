// What this file is for: which host views are open, and which of them the calling thread itself would have to close.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A wait can never end if the task comes after a view that the waiting thread holds. A view may be moved to another
// thread, which closes it: so it counts as held by a thread only while it is in a variable on that thread's stack.
// Rejected: the thread that opened it, which may have given it away; the thread that moved it last, which may be
// passing it on. A thread that is held back at the bound of tasks in flight gets no error but goes on: there the thread
// that opened it counts as well, if nothing else goes on.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// An open host access, as an entry of the list.
struct open_view {
  explicit open_view(task_record* t) : task(t) {}
  task_record* const task;                   // the host access
  std::atomic<const void*> holder{nullptr};  // the thread on whose stack the view is; null: unknown
  const void* opener = nullptr;              // the thread that opened it
  open_view* before = nullptr;
  open_view* after = nullptr;
};

class open_views {
 public:
  /// Host accesses whose views the calling thread holds, each with a reference.
  class held {
   public:
    held() = default;
    held(held&&) = default;
    ~held();
    bool empty() const { return tasks_.empty(); }
    std::span<task_record* const> tasks() const { return tasks_; }
    std::string names() const;

   private:
    friend class open_views;
    std::vector<task_record*> tasks_;
  };

  /// Lists a view that the calling thread opens.
  void add(open_view&);
  void remove(open_view&);
  /// Notes the view's present address.
  static void move(open_view&, const void* view) noexcept;
  held of_this_thread() const;
  /// Returns host accesses that the calling thread has opened and whose views are on nobody's stack.
  held kept_by_this_thread() const;

 private:
  template <class F>
  held those(F&& wanted) const;

  std::atomic<std::size_t> count_{0};
  mutable std::mutex lock_;
  open_view* first_ = nullptr;
};

}  // namespace troupe::detail
