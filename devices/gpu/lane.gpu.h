// What this file is for: a lane of a GPU: a stream, the events of its tickets, and a thread that waits for some of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included after a vendor's header; see backend.gpu.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "devices/gpu/errors.gpu.h"
#include "devices/gpu/small_copies.gpu.h"

namespace troupe::devices::gpu::GPU_NS {

/// Waits for events on a thread of its own and calls the listener after each, also when the device failed. Why not
/// LaunchHostFunc: it stops the stream for the time of the call, and is not called once the device has failed.
class watcher {
 public:
  watcher(int device, std::function<void()> listener) : state_(std::make_shared<state>()) {
    state_->listener = std::make_shared<const std::function<void()>>(std::move(listener));
    thread_ = std::thread([s = state_, device] { run(*s, device); });
  }
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  ~watcher() {
    {
      const std::lock_guard lock(state_->guard);
      state_->stop = true;
      state_->events.clear();
      state_->listener = nullptr;
    }
    state_->wake.notify_one();
    if (abandoned_)
      thread_.detach();  // it sits in the driver, and owns all that it will touch
    else
      thread_.join();
  }

  void watch(GPU(Event_t) event, ticket t) {
    {
      const std::lock_guard lock(state_->guard);
      state_->events.push_back({event, t});
    }
    state_->wake.notify_one();
  }
  /// Events up to this ticket are no longer used here.
  ticket seen() const { return state_->seen.load(std::memory_order_acquire); }
  /// The device answers no more: do not wait for the thread.
  void abandon() { abandoned_ = true; }

 private:
  struct watched {
    GPU(Event_t) event;
    ticket at;
  };
  struct state {
    std::mutex guard;
    std::condition_variable wake;
    std::deque<watched> events;
    std::shared_ptr<const std::function<void()>> listener;  // null once nobody listens
    bool stop = false;
    std::atomic<ticket> seen{0};
  };

  static void run(state& s, int device) {
    (void)GPU(SetDevice)(device);
    std::unique_lock lock(s.guard);
    for (;;) {
      s.wake.wait(lock, [&] { return s.stop || !s.events.empty(); });
      if (s.stop) return;
      const watched next = s.events.front();
      s.events.pop_front();
      lock.unlock();
      (void)GPU(EventSynchronize)(next.event);  // a failure is told by `completed`
      (void)GPU(GetLastError)();
      s.seen.store(next.at, std::memory_order_release);
      lock.lock();
      const auto listener = s.listener;
      lock.unlock();
      if (listener) (*listener)();
      lock.lock();
    }
  }

  std::shared_ptr<state> state_;
  std::thread thread_;
  bool abandoned_ = false;
};

/// Codes go to `check(code, call)`, which throws.
class lane {
 public:
  small_copies coming{true}, going{false};

  template <class Check>
  void open(Check check) {
    check(GPU(StreamCreateWithFlags)(&stream_, GPU(StreamNonBlocking)), "StreamCreateWithFlags");
  }

  GPU(Stream_t) stream() const { return stream_; }
  ticket recorded() const { return recorded_; }

  template <class Check>
  ticket record(bool notify, int device, const std::function<void()>& listener, Check check) {
    const auto event = take(check);
    if (const auto code = GPU(EventRecord)(event, stream_); code != GPU(Success)) {
      free_.push_back(event);
      check(code, "EventRecord");
    }
    ++recorded_;
    notify = notify && listener;
    pending_.push_back({event, recorded_, notify});
    if (notify) {
      if (!watcher_) watcher_ = std::make_unique<watcher>(device, listener);
      watcher_->watch(event, recorded_);
    }
    return recorded_;
  }

  template <class Check>
  ticket completed(Check check) {
    while (!pending_.empty()) {
      const auto code = GPU(EventQuery)(pending_.front().event);
      if (code == GPU(ErrorNotReady)) {
        (void)GPU(GetLastError)();
        break;
      }
      check(code, "EventQuery");
      reached_ = pending_.front().at;
      if (pending_.front().notify)
        watched_.push_back(pending_.front());
      else
        free_.push_back(pending_.front().event);
      pending_.pop_front();
    }
    coming.reach(reached_);
    going.reach(reached_);
    while (!watched_.empty() && watched_.front().at <= watcher_->seen()) {
      free_.push_back(watched_.front().event);
      watched_.pop_front();
    }
    return reached_;
  }

  /// The event of a ticket; null where it is known to be reached.
  GPU(Event_t) event_of(ticket t) const {
    if (pending_.empty() || t < pending_.front().at) return nullptr;
    return pending_[t - pending_.front().at].event;
  }

  bool idle() const { return GPU(StreamQuery)(stream_) != GPU(ErrorNotReady); }

  /// `answers`: calls for this lane return. `alive`: its stream and events still exist.
  void close(bool answers, bool alive) noexcept {
    if (watcher_ && !answers) watcher_->abandon();
    watcher_.reset();
    if (!alive) return;
    for (const auto& p : pending_) free_.push_back(p.event);
    for (const auto& p : watched_) free_.push_back(p.event);
    for (const auto event : free_) (void)GPU(EventDestroy)(event);
    if (stream_) (void)GPU(StreamDestroy)(stream_);
  }

 private:
  struct mark {
    GPU(Event_t) event;
    ticket at;
    bool notify;
  };

  template <class Check>
  GPU(Event_t)
  take(Check check) {
    GPU(Event_t) event{};
    if (free_.empty()) {
      check(GPU(EventCreateWithFlags)(&event, GPU(EventDisableTiming) | GPU(EventBlockingSync)),
            "EventCreateWithFlags");
    } else {
      event = free_.back();
      free_.pop_back();
    }
    return event;
  }

  GPU(Stream_t) stream_{};
  ticket recorded_ = 0, reached_ = 0;
  std::deque<mark> pending_;  // in order; tickets without gaps
  std::deque<mark> watched_;  // reached; the watcher may still look at them
  std::vector<GPU(Event_t)> free_;
  std::unique_ptr<watcher> watcher_;
};

}  // namespace troupe::devices::gpu::GPU_NS
