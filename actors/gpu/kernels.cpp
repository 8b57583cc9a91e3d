// What this file is for: kernels that a device has loaded: when a task needs them, or aside, before it is given one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// To compile a kernel takes up to seconds. Placement asks whether the device is ready for one that it has never run, and
// gives the task to others meanwhile. The device loads it when it has nothing to do, in a thread that leaves the cores to
// those who work. It cannot do anything else then; so a device that computes on the cores, which is hardly worth it, does
// that only while the cores rest, or if the kernel is wanted for long.
#include <algorithm>
#include <system_error>

#include "actors/gpu/actor.hpp"
#include "actors/placement/placement.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {
// The cores have rested for so long at each look.
constexpr double calm_ns = 100e6;
constexpr double wanted_for_long_ns = 2e9;
}  // namespace

devices::kernel_id gpu_actor::loaded(const kernel_info& k) {
  auto known = kernels_.find(&k);
  if (known == kernels_.end()) {
    const kernel_text& text = source_of(k);
    known = kernels_.emplace(&k, device_->load({k.name, text.text, text.entry})).first;
  }
  return known->second;
}

// Any thread. A routine's code is there, and so is that of what has no text: a graph's calls have theirs.
bool gpu_actor::is_ready_for(const kernel_info& k) {
  if (k.routines[static_cast<std::size_t>(options_.facts.kind)] || !source_of(k).text) return true;
  {
    std::lock_guard hold(lock_);
    if (ready_.contains(&k)) return true;
    if (std::ranges::find(to_load_, &k, &wanted_kernel::kernel) != to_load_.end()) return false;
    to_load_.push_back({&k, ticks()});
    to_load_count_.store(to_load_.size(), std::memory_order_relaxed);
    rung_ = true;
  }
  bell_.notify_one();
  return false;
}

// Its own thread is among those who are awake.
bool gpu_actor::may_load(const wanted_kernel& w) {
  if (!options_.facts.shares_cores()) return true;
  const std::uint64_t now = ticks();
  if (placement_.active() > 1)
    calm_since_ = 0;
  else if (calm_since_ == 0)
    calm_since_ = now;
  const auto ns_since = [&](std::uint64_t then) { return static_cast<double>(now - then) * tick_ns_; };
  return (calm_since_ != 0 && ns_since(calm_since_) >= calm_ns) || ns_since(w.since) >= wanted_for_long_ns;
}

// True if it has loaded one. What is wrong with it the task tells that is given to the device in spite of that.
bool gpu_actor::get_ready() {
  if (to_load_count_.load(std::memory_order_relaxed) == 0 || !device_ || !jobs_.empty() || queued_count_.load() != 0 ||
      errand_count_.load() != 0 || stopping_.load())
    return false;
  wanted_kernel wanted;
  {
    std::lock_guard hold(lock_);
    wanted = to_load_.front();
  }
  if (!may_load(wanted)) return false;
  const kernel_info* const next = wanted.kernel;
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
      devices::let_others_pass();
      const int place = device_->visit();
      load();
      device_->leave(place);
    }).join();
  } catch (const std::system_error&) {  // no thread is to be had
    load();
  }
  std::lock_guard hold(lock_);
  to_load_.pop_front();
  to_load_count_.store(to_load_.size(), std::memory_order_relaxed);
  ready_.insert(next);
  return true;
}

}  // namespace troupe::detail
