// What this file is for: a stream's thread, its queue, its waits.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sim/stream.hpp"

#include <algorithm>
#include <thread>

#include "devices/sim/engine.hpp"

namespace troupe::soft_gpu {

void signal::fire() {
  const std::lock_guard lock(mutex_);
  fired_ = true;
  time_ = steady::now();
  changed_.notify_all();
}

bool signal::fired() const {
  const std::lock_guard lock(mutex_);
  return fired_;
}

steady::time_point signal::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

void signal::wait_unless(const std::function<bool()>& given_up) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return fired_ || (given_up && given_up()); });
}

void signal::poke() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void stream::begin() {
  std::thread([self = shared_from_this()] { self->work(); }).detach();
}

void stream::work() {
  {
    kernel_runner runner;
    runner_ = &runner;
    std::unique_lock lock(mutex_);
    for (;;) {
      if (queue_.empty() && !closing_) {
        asleep_ = true;
        wake_.wait(lock, [&] { return !queue_.empty() || closing_; });
        asleep_ = false;
      }
      if (queue_.empty()) break;
      {
        const operation next = std::move(queue_.front());  // what it holds is free before the stream says so
        queue_.pop_front();
        lock.unlock();
        if (seed_) delay();
        run(next);
      }
      lock.lock();
      ++finished_;
      if (waiters_) progress_.notify_all();
    }
    ended_ = true;
  }
  const std::lock_guard lock(mutex_);
  gone_ = true;
  progress_.notify_all();
}

void stream::delay() {
  const auto r = random_();
  if (r % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(r / 4 % 200));
  if (r % 4 == 1) std::this_thread::yield();
}

void stream::run(const operation& o) {
  if (!o.always && (abandoned_ || o.on->failed())) return;
  try {
    o.run(*this);
  } catch (const std::exception& e) {
    o.on->fail(simErrorLaunchFailure, e.what());
  } catch (...) {
    o.on->fail(simErrorLaunchFailure, "an exception left an operation");
  }
}

bool stream::push(operation o) {
  const std::lock_guard lock(mutex_);
  if (capture_) {
    capture_->append(*this, std::move(o));
    return true;
  }
  if (ended_) return false;
  queue_.push_back(std::move(o));
  ++pushed_;
  if (asleep_) wake_.notify_one();
  return true;
}

void stream::wait() {
  std::unique_lock lock(mutex_);
  const auto all = pushed_;
  ++waiters_;
  progress_.wait(lock, [&] { return finished_ >= all; });
  --waiters_;
}

bool stream::idle() const {
  const std::lock_guard lock(mutex_);
  return finished_ == pushed_;
}

void stream::close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  wake_.notify_one();
}

void stream::abandon() {
  abandoned_ = true;
  const std::lock_guard lock(mutex_);
  progress_.notify_all();
  if (awaited_) awaited_->poke();
}

void stream::wait_for_end() {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return gone_; });
}

std::shared_ptr<capture> stream::capturing() const {
  const std::lock_guard lock(mutex_);
  return capture_;
}

void stream::set_capture(std::shared_ptr<capture> c) {
  const std::lock_guard lock(mutex_);
  capture_.swap(c);
}

void stream::wait_for(const std::shared_ptr<signal>& s) {
  {
    const std::lock_guard lock(mutex_);
    awaited_ = s;
  }
  s->wait_unless([&] { return abandoned_.load(); });
  const std::lock_guard lock(mutex_);
  awaited_.reset();
}

void stream::hang() {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return abandoned_.load(); });
}

void capture::append(const stream& s, operation o) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(o));
  ++known_[&s][&s];
}

void capture::join(const std::shared_ptr<stream>& s, const knowledge& more) {
  const std::lock_guard lock(mutex_);
  if (s != origin_ && std::ranges::find(joined_, s) == joined_.end()) joined_.push_back(s);
  auto& mine = known_[s.get()];
  for (const auto& [of, count] : more) mine[of] = std::max(mine[of], count);
}

capture::knowledge capture::known_to(const stream& s) {
  const std::lock_guard lock(mutex_);
  return known_[&s];
}

simError_t capture::end(std::vector<operation>& to) {
  origin_->set_capture(nullptr);
  std::vector<std::shared_ptr<stream>> joined;
  {
    const std::lock_guard lock(mutex_);
    joined = joined_;
  }
  for (const auto& s : joined) s->set_capture(nullptr);
  const std::lock_guard lock(mutex_);
  over_ = true;
  if (broken_) return simErrorStreamCaptureInvalidated;
  for (const auto& s : joined)
    if (known_[origin_.get()][s.get()] < known_[s.get()][s.get()]) return simErrorStreamCaptureUnjoined;
  to = std::move(operations_);
  return simSuccess;
}

}  // namespace troupe::soft_gpu
