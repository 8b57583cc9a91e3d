// What this file is for: recorded graphs on devices: loops that run there as calls do, and errors that name the call.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"
#include "tests/api/word_kernels.hpp"

namespace {

using namespace troupe;
using test::caught;
using test::error_of;
using test::scale, test::stir, test::word;
using troupe::index_t;

// A device of each kind that is there.
class gpu_graphs : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const auto& l : list_devices())
      if (std::string(GetParam()).starts_with(l.kind_name + ":") && l.devices.empty())
        GTEST_SKIP() << "no " << l.kind_name << ": " << l.remark;
    options o;
    o.threads = 1;
    o.devices = {{GetParam()}};
    o.cost_cache = "none";
    rt_.emplace(o);
  }
  task_options here(const char* name = "") const { return {.where = scope::executor(GetParam()), .name = name}; }
  std::uint64_t tasks_there() const {
    for (const auto& e : rt_->report().executors)
      if (e.name == GetParam()) return e.tasks;
    return 0;
  }
  std::optional<runtime> rt_;
};

TEST_P(gpu_graphs, run_loops_whose_kernels_have_a_text) {
  auto a = rt_->filled<word>({100}, tiles(30), 1), b = rt_->filled<word>({100}, tiles(30), 0);
  const graph g = rt_->record([&](recorder& r) {
    r.for_each(grid(100).chunks(30), stir, update(a), word{3});
    r.for_each(grid(100).chunks(30), scale, read(a), write(b), word{2}, word{1});
    r.for_each(grid(100).chunks(30), stir, update(b), word{5});
  });
  EXPECT_EQ(g.size(), 3 * (4 + 1u));
  constexpr int rounds = 6;  // taken down in the second, replayed from the third on
  for (int round = 0; round < rounds; ++round) rt_->run(here(), g).get();
  EXPECT_EQ(tasks_there(), static_cast<std::uint64_t>(rounds));
  const auto seen_a = a.read(), seen_b = b.read();
  for (index_t i = 0; i < 100; ++i) {
    word x = 1, y = 0;
    for (int round = 0; round < rounds; ++round) {
      x = x * 3 + static_cast<word>(i);
      y = (x * 2 + 1) * 5 + static_cast<word>(i);
    }
    ASSERT_EQ(seen_a(i), x) << i;
    ASSERT_EQ(seen_b(i), y) << i;
  }
}

TEST_P(gpu_graphs, run_loops_that_are_for_the_device_only) {
  auto a = rt_->filled<word>({100}, tiles(50), 1);
  const graph g = rt_->record([&](recorder& r) { r.for_each(here(), grid(100), stir, update(a), word{2}); });
  for (int round = 0; round < 3; ++round) rt_->run(g).get();
  EXPECT_EQ(tasks_there(), 3u);
  EXPECT_EQ(a.read()(60), ((1 * 2 + 60u) * 2 + 60) * 2 + 60);
}

TEST_P(gpu_graphs, say_which_call_keeps_them_from_a_device) {
  auto a = rt_->filled<word>({100}, tiles(50), 1);
  const graph g = rt_->record([&](recorder& r) {
    r.for_each(grid(100).chunks(50), stir, update(a), word{2});
    r.spawn(
        {.name = "look at it"}, [](auto) {}, read(a));
  });
  auto e = error_of([&] { rt_->run(here(), g); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::no_executor);
  EXPECT_TRUE(e->says(std::string(GetParam()) + ": recorded call 3, 'look at it', has no body as text for it"))
      << e->text;
  const graph boxes = rt_->record([&](recorder& r) {
    r.for_each(grid(100).chunks(50), stir, update(a), word{2});
    r.for_each({.name = "thirds"}, grid(100).chunks(40), stir, update(a), word{2});
  });
  e = error_of([&] { rt_->run(here(), boxes); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("recorded call 4, 'thirds', changes several tiles of array '" + a.name() + "'")) << e->text;
}

TEST_P(gpu_graphs, say_which_call_no_executor_can_run) {
  auto a = rt_->filled<word>({100}, tiles(50), 1);
  const auto e = error_of([&] {
    rt_->record([&](recorder& r) {
      r.spawn(here("all of it"), stir, update(a), word{2});
      r.spawn({.where = scope::executor("cpu:0")}, stir, update(a), word{2});
    });
  });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::no_executor);
  EXPECT_TRUE(e->says("cpu:0: recorded call 1, 'all of it', has another scope")) << e->text;
  EXPECT_TRUE(e->says(std::string(GetParam()) + ": recorded call 1, 'all of it', changes several tiles of array"))
      << e->text;
}

// On cores its body throws, on devices its text does not compile: the call, the graph and the place are told alike.
TEST_P(gpu_graphs, name_the_call_that_fails_as_cores_do) {
  constexpr auto wrong = kernel<inout<word, 1>>("wrong")
                             .on(cpu, [](view<word, 1>) { throw std::runtime_error("bad on cores"); })
                             .on(gpu, source{"GPU_KERNEL void wrong(GPU_INOUT(unsigned, a)) { a = ; }", "wrong"});
  auto a = rt_->filled<word>({100}, tiles(100), 1);
  const graph g = rt_->record([&](recorder& r) {
    r.spawn(stir, update(a), word{2});
    r.spawn({.name = "third step"}, wrong, update(a));
  });
  for (const std::string at : {"cpu:0", GetParam()})
    for (int round = 0; round < 2; ++round) {
      SCOPED_TRACE(at);
      const auto e = error_of([&] { rt_->run({.where = scope::executor(at), .name = "evening"}, g).get(); });
      ASSERT_TRUE(e && e->from_task);
      EXPECT_EQ(e->task, "evening");
      EXPECT_EQ(e->root, "third step");
      EXPECT_EQ(e->executor, at);
      EXPECT_EQ(e->attempts, 1);
      EXPECT_TRUE(e->text.starts_with("task 'third step' of 'evening' failed on " + at + ": ")) << e->text;
      EXPECT_EQ(e->code, at == "cpu:0" ? errc::task_failed : errc::compile_failed);
      rt_->spawn([](view<word, 1> v) { v(0) = 1; }, write(a)).get();
    }
}

INSTANTIATE_TEST_SUITE_P(devices, gpu_graphs, testing::Values("sim:0", "opencl:0", "cuda:0", "hip:0"),
                         [](const auto& device) {
                           const std::string name = device.param;
                           return name.substr(0, name.find(':'));
                         });

}  // namespace
