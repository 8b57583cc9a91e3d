// What this file is for: tickets as marker events, polled in order; the listener as a callback on some of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/opencl/lane.hpp"

#include <utility>

namespace troupe::devices::opencl {

void bell::listen(std::function<void()> f) {
  const std::lock_guard lock(guard_);
  listener_ = f ? std::make_shared<const std::function<void()>>(std::move(f)) : nullptr;
}

bool bell::has_listener() const {
  const std::lock_guard lock(guard_);
  return listener_ != nullptr;
}

void bell::ring() const {
  std::unique_lock lock(guard_);
  const auto listener = listener_;
  lock.unlock();
  if (listener) (*listener)();
}

cl_int bell::ring_after(const std::shared_ptr<bell>& self, cl_event event) {
  {
    const std::lock_guard lock(self->guard_);
    ++self->due_;
  }
  auto shared = std::make_unique<std::shared_ptr<bell>>(self);
  const cl_int code = clSetEventCallback(event, CL_COMPLETE, &bell::ended, shared.get());
  if (code == CL_SUCCESS) {
    (void)shared.release();  // `ended` deletes it
  } else {
    const std::lock_guard lock(self->guard_);
    --self->due_;
  }
  return code;
}

void CL_CALLBACK bell::ended(cl_event, cl_int, void* shared) {
  const std::unique_ptr<std::shared_ptr<bell>> owned(static_cast<std::shared_ptr<bell>*>(shared));
  bell& self = **owned;
  std::shared_ptr<const std::function<void()>> listener;
  {
    const std::lock_guard lock(self.guard_);
    listener = self.listener_;
    ++self.ringing_;
  }
  if (listener) (*listener)();  // without the lock: it may run inside `record`
  const std::lock_guard lock(self.guard_);
  --self.ringing_;
  --self.due_;
  self.quiet_.notify_all();
}

bool bell::silence(std::chrono::milliseconds at_most) noexcept {
  std::unique_lock lock(guard_);
  const bool all = quiet_.wait_for(lock, at_most, [&] { return due_ == 0; });
  listener_ = nullptr;
  quiet_.wait(lock, [&] { return ringing_ == 0; });  // calls that have begun
  return all;
}

ticket lane::record(bool notify, const std::shared_ptr<bell>& rings, code_check& check) {
  take_reached();  // else the events of a user that never asks would pile up
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  pending_.emplace_back(event);
  ++recorded_;
  // Nothing starts for certain before a flush, and other queues may wait for this event.
  check(clFlush(queue()), "clFlush");
  if (notify && rings->has_listener()) check(bell::ring_after(rings, event), "clSetEventCallback");
  return recorded_;
}

ticket lane::completed(code_check& check) {
  take_reached();
  check.ended(ended_);
  return reached_;
}

cl_event lane::event_of(ticket t) const { return t <= reached_ ? nullptr : pending_[t - reached_ - 1].get(); }

void lane::take_reached() {
  while (!pending_.empty() && ended_ >= 0) {
    cl_int status = CL_QUEUED;
    const cl_int code =
        clGetEventInfo(pending_.front().get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (code != CL_SUCCESS || status < 0) ended_ = code != CL_SUCCESS ? code : status;
    if (ended_ < 0 || status != CL_COMPLETE) return;
    pending_.pop_front();
    ++reached_;
  }
}

}  // namespace troupe::devices::opencl
