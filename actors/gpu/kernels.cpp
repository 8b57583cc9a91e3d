// What this file is for: a device's loaded kernels: when a task needs them, or in advance, before it is given one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// To compile a kernel takes up to seconds. Placement asks whether the device is ready for one that it has never run,
// and gives the task to others meanwhile. The device loads it when it has nothing to do, in a thread that leaves the
// cores to threads that work. The device cannot do anything else then; so a device that computes on the cores, which is
// hardly worth it, does that only while the cores rest, or if the kernel is wanted for long.
#include <system_error>

#include "actors/gpu/actor.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {
// The cores have rested for so long at each look.
constexpr double calm_ns = 100e6;
constexpr double wanted_for_long_ns = 2e9;
}  // namespace

devices::kernel_id gpu_actor::loaded(const kernel_info& k) {
  return kernels_.find(k, [&] {
    // A shutdown that does not wait for the compiler has to know which tasks it leaves behind.
    struct shown {
      gpu_actor& self;
      explicit shown(gpu_actor& a) : self(a) {
        const bell::held hold = self.mail_.hold();
        self.jobs_.show(hold);
      }
      ~shown() {
        const bell::held hold = self.mail_.hold();
        self.jobs_.hide(hold);
      }
    } meanwhile(*this);
    const kernel_text& text = source_of(k);
    return device_->load({k.name, text.text, text.entry});
  });
}

// Any thread. A routine's code is there, and so is that of what has no text: a graph's calls have theirs.
bool gpu_actor::is_ready_for(const kernel_info& k) {
  if (k.routines[static_cast<std::size_t>(options_.facts.kind)] || !source_of(k).text) return true;
  switch (requests_.ask(k, ticks())) {
    case kernel_requests::answer::ready:
      return true;
    case kernel_requests::answer::added:
      mail_.alarm_bell().ring();
      [[fallthrough]];
    case kernel_requests::answer::asked:
      return false;
  }
  return false;
}

// True if the device may load a kernel now.
bool gpu_actor::may_load(const kernel_requests::request& r) {
  if (!options_.facts.shares_cores()) return true;
  const std::uint64_t now = ticks();
  return time_.ns_of(calm_.look(nobody_else_works(), now)) >= calm_ns ||
         time_.ns_of(now - r.since) >= wanted_for_long_ns;
}

// Loads the kernel that was asked for first, if it may; true if it has. What is wrong with the kernel is told by the
// task that is given to the device in spite of that.
bool gpu_actor::get_ready() {
  if (!requests_.any() || !device_ || !jobs_.empty() || !mail_.is_empty() || stopping_.load()) return false;
  const kernel_requests::request wanted = requests_.first();
  if (!may_load(wanted)) return false;
  const auto load = [&] {
    try {
      (void)loaded(*wanted.kernel);
    } catch (const error& e) {
      if (is_fatal(e)) repair_.note_complaint(std::current_exception());
    } catch (...) {
    }
  };
  try {
    std::thread([&] {
      devices::let_others_pass();
      const int before = device_->visit();
      load();
      device_->leave(before);
    }).join();
  } catch (const std::system_error&) {  // no thread is to be had
    load();
  }
  requests_.first_is_ready();
  return true;
}

void gpu_actor::launch_text(task_record& t, gpu_context& with, int lane) {
  if (t.extra && t.extra->watched) t.extra->listener->began(t);
  t.ops->run(t, with);  // hands its arguments over
  const kernel_text& text = source_of(*t.kernel);
  device_->launch(lane, loaded(*t.kernel), with.shape(text), with.arguments());
}

}  // namespace troupe::detail
