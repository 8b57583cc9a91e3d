// What this file is for: the trace observer: blocks of events on their way into the trace file.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/trace_observer.hpp"

#include <utility>

#include <troupe/error.hpp>

namespace troupe::detail {

void trace_desk::open(const std::string& path) {
  writer_ = std::make_unique<trace_writer>(path);
  if (!writer_->good()) throw error(errc::io_failed, "options::trace: '" + path + "' cannot be written");
}

bool trace_desk::add(trace_block&& b) {
  std::lock_guard hold(lock_);
  if (done_) return false;
  waiting_.push_back(std::move(b));
  return waiting_.size() == 1;
}

bool trace_desk::finish() {
  std::lock_guard hold(lock_);
  return is_on() && !std::exchange(finish_, true);
}

std::string trace_desk::wait_closed() {
  std::unique_lock hold(lock_);
  finished_.wait(hold, [&] { return done_; });
  return problem_;
}

void trace_desk::write() {
  std::vector<trace_block> blocks;
  bool finish;
  {
    std::lock_guard hold(lock_);
    blocks.swap(waiting_);
    finish = finish_;
  }
  for (const trace_block& b : blocks) writer_->add(b);
  if (!finish) return;
  give_up(writer_->close());
}

void trace_desk::give_up(std::string problem) {
  std::lock_guard hold(lock_);
  waiting_.clear();
  problem_ = std::move(problem);
  done_ = true;
  finished_.notify_all();
}

namespace {

caf::behavior trace_observer(caf::event_based_actor* self, trace_desk* desk, failure_sink failed) {
  begin(self, std::move(failed));
  return {[desk](trace_waits) { desk->write(); }};
}

}  // namespace

caf::actor spawn_trace_observer(caf::actor_system& s, trace_desk& desk, failure_sink failed) {
  return s.spawn(trace_observer, &desk, std::move(failed));
}

}  // namespace troupe::detail
