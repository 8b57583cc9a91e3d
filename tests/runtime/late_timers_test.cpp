// What this file is for: deadlines hold for tasks that have not begun even where the timers ring late.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/runtime/open_runtime.hpp"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::open_runtime;
using test::word;

// Holds the thread on which timers ring until it ends.
class held_timers {
 public:
  explicit held_timers(open_runtime& rt) {
    rt.inside().timers()->add(0ms, [this] {
      held_.set_value();
      go_on_.get_future().wait();
      over_.set_value();
    });
    held_.get_future().wait();
  }
  ~held_timers() {
    go_on_.set_value();
    over_.get_future().wait();
  }

 private:
  std::promise<void> held_, go_on_, over_;
};

void pass(std::chrono::milliseconds time) {
  for (const auto until = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < until;) {
  }
}

errc code_of(const auto& f) {
  try {
    f.get();
  } catch (const error& e) {
    return e.code();
  }
  return errc{-1};
}

TEST(late_timers, let_no_body_begin_after_its_deadline) {
  options o;
  o.threads = 2;
  open_runtime rt(o);
  std::promise<void> gate;
  auto first = rt.spawn([&] { gate.get_future().wait(); });
  bool ran = false;
  const held_timers hold(rt);
  const auto late = rt.spawn(
      {.name = "late", .deadline = 2ms}, [&] { ran = true; }, first);
  pass(5ms);
  gate.set_value();
  EXPECT_EQ(code_of(late), errc::timed_out);
  EXPECT_FALSE(ran);
}

TEST(late_timers, let_no_kernel_begin_after_its_deadline) {
  soft_gpu::simConfigure({});
  options o;
  o.threads = 2;
  o.cost_cache = "none";
  o.devices = {{"sim:0"}};
  o.eager_devices = true;
  open_runtime rt(o);
  std::promise<void> gate;
  auto a = rt.filled<word>({64}, tiles(64), 5);
  rt.spawn([&](view<word, 1>) { gate.get_future().wait(); }, update(a));
  const held_timers hold(rt);
  task_options on_device;
  on_device.where = scope::executor("sim:0");
  on_device.deadline = 2ms;
  const auto late = rt.spawn(on_device, test::stir_on_gpu, update(a), 3u);
  pass(5ms);
  gate.set_value();
  EXPECT_EQ(code_of(late), errc::timed_out);
}

}  // namespace
