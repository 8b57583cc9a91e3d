// What this file is for: a lane of an OpenCL device: an in-order queue, and the events of its tickets.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "devices/accelerator.hpp"
#include "devices/opencl/codes.hpp"

namespace troupe::devices::opencl {

/// The listener, and how many events will still call it. Events share it: it outlives a device that went silent.
class bell {
 public:
  void listen(std::function<void()>);
  bool has_listener() const;
  /// Calls the listener now.
  void ring() const;
  /// The listener is called when the event has ended, well or not: inside this call, or on a thread of the driver.
  static cl_int ring_after(const std::shared_ptr<bell>&, cl_event);
  /// No call of the listener after this one. False: some events did not come.
  bool silence(std::chrono::milliseconds at_most) noexcept;

 private:
  static void CL_CALLBACK ended(cl_event, cl_int, void* shared);

  mutable std::mutex guard_;
  std::condition_variable quiet_;
  std::shared_ptr<const std::function<void()>> listener_;
  int due_ = 0, ringing_ = 0;
};

class lane {
 public:
  explicit lane(queue_handle queue) : queue_(std::move(queue)) {}

  cl_command_queue queue() const { return queue_.get(); }
  ticket recorded() const { return recorded_; }
  ticket record(bool notify, const std::shared_ptr<bell>&, code_check&);
  ticket completed(code_check&);
  /// The event of a ticket; null where it is known to be reached.
  cl_event event_of(ticket) const;

 private:
  void take_reached();

  queue_handle queue_;
  ticket recorded_ = 0, reached_ = 0;
  cl_int ended_ = CL_SUCCESS;         // negative: a command has failed
  std::deque<event_handle> pending_;  // of the tickets reached_ + 1, ...
};

}  // namespace troupe::devices::opencl
