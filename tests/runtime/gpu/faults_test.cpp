// What this file is for: devices that fail under a runtime: what is placed again, what is lost, what goes on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/support/causes.hpp"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using test::stir;
using test::triple;
using test::word;

constexpr auto text = test::stir_text;
constexpr auto stir_once = kernel<inout<word, 1>, word>("stir_once").on(gpu, source{text, "stir"}).once();
constexpr auto stir_on_gpu = kernel<inout<word, 1>, word>("stir_on_gpu").on(gpu, source{text, "stir"});

task_options on(const std::string& name) { return {.where = scope::executor(name)}; }

// The software GPU with faults, and as it was afterwards.
class gpu_faults : public testing::Test {
 protected:
  static void configure(std::vector<soft_gpu::sim_fault> faults) {
    soft_gpu::sim_options o;
    o.faults = std::move(faults);
    ASSERT_EQ(soft_gpu::simConfigure(std::move(o)), soft_gpu::simSuccess);
  }
  ~gpu_faults() override { soft_gpu::simConfigure({}); }

  static options with_sims(int count) {
    options o;
    o.threads = 2;
    o.cost_cache = "none";  // calls are counted: none may be for measuring
    for (int i = 0; i < count; ++i) o.devices.push_back({"sim:" + std::to_string(i)});
    o.eager_devices = true;
    return o;
  }
  static std::vector<word> contents(const array<word, 1>& a) {
    const auto v = a.read();
    std::vector<word> all;
    for (index_t i = 0; i < v.size(0); ++i) all.push_back(v(i));
    return all;
  }
  template <class F>
  static errc cause_of(F&& f) {
    return test::cause_of(std::forward<F>(f), last_text);
  }
  template <class F>
  static errc code_of(F&& f) {
    try {
      f();
    } catch (const error& e) {
      return e.code();
    }
    return errc::bad_argument;  // nothing was thrown
  }
  inline static std::string last_text;
};

soft_gpu::sim_fault broken(const char* call, int nth, int device = -1) {
  return {call, nth, device, soft_gpu::simErrorLaunchFailure, true, false, false};
}
soft_gpu::sim_fault lost(const char* call, int nth, int device = -1) {
  return {call, nth, device, soft_gpu::simErrorDevicesUnavailable, false, true, false};
}

TEST_F(gpu_faults, a_kernel_that_breaks_the_device_is_run_again_and_the_rest_goes_on) {
  // The first, on the only lane: what ended before it would be lost with the device.
  configure({broken("LaunchKernel", 1)});
  options one_lane = with_sims(1);
  one_lane.devices[0].lanes = 1;
  runtime rt(one_lane);
  auto a = rt.filled<word>({100}, tiles(100), 1);
  std::vector<array<word, 1>> b;
  for (int i = 0; i < 10; ++i) {
    b.push_back(rt.array<word>({100}, tiles(100)));
    rt.spawn(on("sim:0"), triple, read(a), write(b.back()));
  }
  for (const auto& x : b) EXPECT_EQ(contents(x), std::vector<word>(100, 3));
}

TEST_F(gpu_faults, a_lost_device_comes_back_and_tasks_with_data_on_the_host_are_placed_again) {
  configure({lost("LaunchKernel", 3, 0)});
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({64}, tiles(64), 5);
  std::vector<array<word, 1>> b;
  for (int i = 0; i < 30; ++i) {
    b.push_back(rt.array<word>({64}, tiles(64)));
    task_options anywhere;
    anywhere.where = scope::gpu();
    rt.spawn(anywhere, triple, read(a), write(b.back()));
    if (i % 7 == 0) {
      EXPECT_EQ(contents(b.back()), std::vector<word>(64, 15));  // so that a copy is at home
    }
  }
  rt.wait_all();
  int exact = 0, gone = 0;
  for (const auto& x : b) {
    try {
      EXPECT_EQ(contents(x), std::vector<word>(64, 15));
      ++exact;
    } catch (const error&) {
      EXPECT_EQ(cause_of([&] { contents(x); }), errc::data_lost) << last_text;
      ++gone;  // it was done, and its only copy went with the device
    }
  }
  EXPECT_GE(exact, 5);
  EXPECT_EQ(exact + gone, 30);
}

// A run of a graph that reads windows, of data that is at home as well: in the first run, and in one that is one call.
TEST_F(gpu_faults, a_run_with_windows_is_placed_again) {
  constexpr auto add_three = kernel<in<word, 1>, out<word, 1>>("add_three")
                                 .on(gpu, source{R"(
GPU_KERNEL void add_three(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = GPU_AT1(a, i - 1) + GPU_AT1(a, i) + GPU_AT1(a, i + 1);
})",
                                                 "add_three"});
  for (const auto& [call, nth] : {std::pair{"LaunchKernel", 3}, std::pair{"GraphLaunch", 1}}) {
    configure({broken(call, nth)});
    runtime rt(with_sims(1));
    const auto a = rt.filled<word>({100}, tiles(30), 1);
    const auto b = rt.array<word>({100}, tiles(30));
    for (int graphs = 0; graphs < 2; ++graphs) {
      const graph g = rt.record(
          [&](recorder& r) { r.for_each(grid(100).chunks(30), add_three, read(a, window(1).wrap()), write(b)); });
      for (int i = 0; i < 4; ++i) rt.run(on("sim:0"), g).get();
      EXPECT_EQ(contents(b), std::vector<word>(100, 3)) << call;
    }
  }
}

TEST_F(gpu_faults, what_only_the_device_had_is_data_lost_naming_array_and_task) {
  configure({broken("LaunchKernel", 2)});
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({100}, tiles(100), 1, "precious");
  rt.spawn(on("sim:0"), stir, update(a), word{2}).get();  // dirty on the device
  task_options second = on("sim:0");
  second.name = "second";
  auto f = rt.spawn(second, stir, update(a), word{2});
  EXPECT_EQ(cause_of([&] { f.get(); }), errc::data_lost) << last_text;
  EXPECT_EQ(code_of([&] { f.get(); }), errc::data_lost) << last_text;
  EXPECT_NE(last_text.find("precious"), std::string::npos) << last_text;
  EXPECT_NE(last_text.find("second"), std::string::npos) << last_text;
  // Written anew it is as good as ever.
  auto b = rt.filled<word>({100}, tiles(100), 7);
  rt.spawn(on("sim:0"), triple, read(b), write(a)).get();
  EXPECT_EQ(contents(a), std::vector<word>(100, 21));
}

// As a program does that loads its state again: whatever writes whole tiles may write lost ones.
TEST_F(gpu_faults, lost_tiles_are_written_anew_by_whatever_covers_them) {
  const auto fill = [](view<word, 1> v) {
    for (auto i = v.lo(0); i < v.hi(0); ++i) v(i) = 7;
  };
  for (const int way : {0, 1, 2, 3}) {
    configure({broken("LaunchKernel", 5)});
    runtime rt(with_sims(1));
    auto a = rt.filled<word>({400}, tiles(100), 1, "state"), b = rt.filled<word>({100}, tiles(100), 1);
    rt.for_each(on("sim:0"), grid(400).chunks(100), stir, update(a), word{2}).get();
    EXPECT_EQ(code_of([&] {
                rt.spawn(on("sim:0"), stir, update(a.sub({{0}, {100}})), word{2}).get();
              }),
              errc::data_lost)
        << last_text;
    ASSERT_EQ(cause_of([&] { contents(a); }), errc::data_lost) << last_text;
    EXPECT_EQ(cause_of([&] {
                rt.spawn(fill, write(a.sub({{0}, {350}}))).get();
              }),
              errc::data_lost)
        << "a half of the last tile is lost";
    switch (way) {
      case 0: {
        auto v = a.write();
        for (index_t i = 0; i < 400; ++i) v(i) = 7;
        break;
      }
      case 1:
        rt.spawn(fill, write(a)).get();
        break;
      case 2:
        rt.for_each(grid(400).chunks(200), fill, write(a)).get();
        break;
      default:
        rt.run(rt.record([&](recorder& r) { r.for_each(grid(400).chunks(100), fill, write(a)); })).get();
    }
    EXPECT_EQ(contents(a), std::vector<word>(400, 7)) << way;
    rt.for_each(on("sim:0"), grid(400).chunks(100), stir, update(a), word{2}).get();
    EXPECT_NE(contents(a), std::vector<word>(400, 7)) << way;
  }
}

TEST_F(gpu_faults, a_copy_at_home_is_used_again) {
  configure({broken("LaunchKernel", 2)});
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({100}, tiles(100), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{2}).get();
  EXPECT_EQ(contents(a)[10], 12u);                        // brings it home; the device keeps a clean copy
  rt.spawn(on("sim:0"), stir, update(a), word{2}).get();  // breaks, is opened anew, reads the home copy
  EXPECT_EQ(contents(a)[10], 34u);
}

TEST_F(gpu_faults, a_kernel_that_may_run_once_only_is_not_run_again) {
  configure({broken("LaunchKernel", 1)});
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({100}, tiles(100), 1), b = rt.filled<word>({100}, tiles(100), 1);
  auto f = rt.spawn(stir_once, update(a), word{2});
  EXPECT_EQ(cause_of([&] { f.get(); }), errc::device_failed) << last_text;
  rt.spawn(on("sim:0"), stir, update(b), word{2}).get();
  EXPECT_EQ(contents(b)[3], 5u);
}

TEST_F(gpu_faults, a_task_that_breaks_every_device_it_meets_is_given_up) {
  std::vector<soft_gpu::sim_fault> faults;
  for (int i = 1; i <= 3; ++i) faults.push_back(broken("LaunchKernel", i));
  configure(faults);
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({100}, tiles(100), 1), b = rt.filled<word>({100}, tiles(100), 1);
  auto f = rt.spawn(stir_on_gpu, update(a), word{2});
  EXPECT_EQ(cause_of([&] { f.get(); }), errc::device_failed) << last_text;
  rt.spawn(on("sim:0"), stir, update(b), word{2}).get();
  EXPECT_EQ(contents(b)[3], 5u);
}

TEST_F(gpu_faults, a_device_that_keeps_failing_is_left_and_its_tasks_go_to_the_cores) {
  std::vector<soft_gpu::sim_fault> faults;
  for (int i = 1; i <= 40; ++i) faults.push_back(broken("LaunchKernel", i));
  configure(faults);
  runtime rt(with_sims(1));
  std::vector<array<word, 1>> arrays;
  std::vector<future<void>> done;
  for (int i = 0; i < 40; ++i) {
    arrays.push_back(rt.filled<word>({100}, tiles(100), static_cast<word>(i)));
    task_options anywhere;
    anywhere.priority = i % 3;
    done.push_back(rt.spawn(anywhere, stir, update(arrays.back()), word{2}));
  }
  rt.wait_all();
  int fine = 0;
  for (word i = 0; i < 40; ++i) {
    try {
      done[i].get();
      EXPECT_EQ(contents(arrays[i])[7], 2 * i + 7);
      ++fine;
    } catch (const error&) {
      EXPECT_EQ(cause_of([&] { done[i].get(); }), errc::device_failed) << last_text;  // was under way three times
    }
  }
  EXPECT_GE(fine, 30);
  // Nothing is left that could run this one.
  auto b = rt.filled<word>({100}, tiles(100), 1);
  for (int i = 0; i < 5; ++i) {
    auto f = rt.spawn(stir_on_gpu, update(b), word{2});
    const errc code = cause_of([&] { f.get(); });
    EXPECT_TRUE(code == errc::device_lost || code == errc::device_failed || code == errc::dependency_failed)
        << last_text;
    EXPECT_NE(code_of([&] { f.get(); }), errc::task_failed) << last_text;
  }
}

TEST_F(gpu_faults, an_allocation_that_fails_now_and_then_is_tried_again) {
  std::vector<soft_gpu::sim_fault> faults;
  for (int i = 3; i < 30; i += 4) faults.push_back({"MallocAsync", i});
  configure(faults);
  runtime rt(with_sims(1));
  auto a = rt.filled<word>({1600}, tiles(100), 1);
  for (int round = 0; round < 4; ++round) rt.for_each(on("sim:0"), grid(1600), stir, update(a), word{2});
  const auto v = contents(a);
  for (word i = 0; i < 1600; ++i) {
    word expected = 1;
    for (int round = 0; round < 4; ++round) expected = expected * 2 + i;
    ASSERT_EQ(v[i], expected) << i;
  }
}

TEST_F(gpu_faults, a_kernel_that_hangs_is_given_up_at_its_deadline_and_run_again) {
  soft_gpu::sim_fault hangs{"LaunchKernel", 1};
  hangs.hang = true;
  configure({hangs});
  options o = with_sims(1);
  o.devices[0].deadline = std::chrono::milliseconds(20);
  runtime rt(o);
  auto a = rt.filled<word>({100}, tiles(100), 1);
  auto f = rt.spawn(on("sim:0"), stir, update(a), word{2});
  ASSERT_TRUE(f.wait_for(std::chrono::seconds(5)));  // less than closing waits for what may still end
  f.get();
  EXPECT_EQ(contents(a)[10], 12u);
}

// ---- any fault at any time ------------------------------------------------------------------------------------------

class gpu_chaos : public gpu_faults, public testing::WithParamInterface<unsigned> {};

TEST_P(gpu_chaos, gives_exact_results_or_says_what_is_lost) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  const char* calls[] = {"LaunchKernel", "MemcpyAsync", "MallocAsync", "EventRecord"};
  std::vector<soft_gpu::sim_fault> faults;
  for (int i = 0; i < 4; ++i) {
    const char* call = calls[pick(0, 3)];
    faults.push_back(pick(0, 1) ? broken(call, pick(1, 60), pick(0, 1)) : lost(call, pick(1, 60), pick(0, 1)));
  }
  configure(faults);
  runtime rt(with_sims(2));
  constexpr int count = 6;
  std::vector<array<word, 1>> arrays;
  std::vector<word> model(count);
  for (int i = 0; i < count; ++i) {
    model[static_cast<std::size_t>(i)] = static_cast<word>(i);
    arrays.push_back(rt.filled<word>({50}, tiles(50), static_cast<word>(i), "array " + std::to_string(i)));
  }
  const scope scopes[] = {scope::any(), scope::gpu(), scope::executor("sim:0"), scope::cpu()};
  for (int step = 0; step < 80; ++step) {
    const auto i = static_cast<std::size_t>(pick(0, count - 1)), k = static_cast<std::size_t>(pick(0, count - 1));
    task_options o;
    o.where = scopes[pick(0, 3)];
    if (pick(0, 2) != 0 || i == k) {
      const auto x = static_cast<word>(pick(1, 9));
      rt.spawn(o, stir, update(arrays[i]), x);
      model[i] = model[i] * x + 10;
    } else {
      rt.spawn(o, triple, read(arrays[k]), write(arrays[i]));
      model[i] = model[k] * 3;
    }
  }
  rt.wait_all();
  for (std::size_t i = 0; i < count; ++i) {
    try {
      EXPECT_EQ(contents(arrays[i])[10], model[i]) << i;
    } catch (const error&) {
      const errc code = cause_of([&] { contents(arrays[i]); });
      EXPECT_TRUE(code == errc::data_lost || code == errc::device_failed || code == errc::device_lost) << last_text;
    }
  }
  // And goes on.
  auto fresh = rt.filled<word>({50}, tiles(50), 1);
  rt.spawn(stir, update(fresh), word{2}).get();
  EXPECT_EQ(contents(fresh)[10], 12u);
}

INSTANTIATE_TEST_SUITE_P(seeds, gpu_chaos, testing::Range(0u, 40u));

}  // namespace
