// What this file is for: kernels that a device has loaded: when a task needs them, or aside, before it is given one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// To compile a kernel takes up to seconds. Placement asks whether the device is ready for one that it has never run, and
// gives the task to others meanwhile. The device loads it when it has nothing to do, in a thread that gives way to those
// who work.
#include <algorithm>
#include <system_error>

#include "actors/gpu_actor.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

devices::kernel_id gpu_actor::loaded(const kernel_info& k) {
  auto known = kernels_.find(&k);
  if (known == kernels_.end()) {
    const kernel_text& text = source_of(k);
    known = kernels_.emplace(&k, device_->load({k.name, text.text, text.entry})).first;
  }
  return known->second;
}

// Any thread. A routine's code is there.
bool gpu_actor::is_ready_for(const kernel_info& k) {
  if (k.routines[static_cast<std::size_t>(options_.facts.kind)]) return true;
  {
    std::lock_guard hold(lock_);
    if (ready_.contains(&k)) return true;
    if (std::ranges::find(to_load_, &k) != to_load_.end()) return false;
    to_load_.push_back(&k);
    rung_ = true;
  }
  bell_.notify_one();
  return false;
}

// True if it has loaded one. What is wrong with it the task tells that is given to the device in spite of that.
bool gpu_actor::get_ready() {
  const kernel_info* next = nullptr;
  {
    std::lock_guard hold(lock_);
    if (to_load_.empty() || !device_ || !jobs_.empty() || stopping_.load()) return false;
    next = to_load_.front();
  }
  const auto load = [&] {
    try {
      (void)loaded(*next);
    } catch (const error& e) {
      if (is_fatal(e)) to_tell_ = std::current_exception();
    } catch (...) {
    }
  };
  try {
    std::thread([&] {
      // One that computes on the cores itself can hardly be worth it while they are busy.
      devices::let_others_pass(options_.facts.shares_cores() ? devices::yielding::altogether : devices::yielding::mostly);
      const int place = device_->visit();
      load();
      device_->leave(place);
    }).join();
  } catch (const std::system_error&) {  // no thread is to be had
    load();
  }
  std::lock_guard hold(lock_);
  to_load_.pop_front();
  ready_.insert(next);
  return true;
}

}  // namespace troupe::detail
