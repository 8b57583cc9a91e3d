// What this file is for: bodies that drive a device themselves, with the software GPU's own calls.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "devices/sim/sim.h"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using test::word;

void check(soft_gpu::simError_t e) {
  if (e != soft_gpu::simSuccess) throw std::runtime_error(soft_gpu::simGetErrorName(e));
}
soft_gpu::simStream_t lane_of(const device_call& c) { return static_cast<soft_gpu::simStream_t>(c.lane()); }

// By way of memory of its own, so that scratch is tried too.
void copy_routine(device_call& call, view<const word, 1> a, view<word, 1> b) {
  const std::size_t bytes = static_cast<std::size_t>(a.size(0)) * sizeof(word);
  void* const between = call.scratch(bytes);
  check(soft_gpu::simMemcpyAsync(between, a.data(), bytes, soft_gpu::simMemcpyDeviceToDevice, lane_of(call)));
  check(soft_gpu::simMemcpyAsync(b.data(), between, bytes, soft_gpu::simMemcpyDeviceToDevice, lane_of(call)));
}
constexpr auto copy = kernel<in<word, 1>, out<word, 1>>("copy").on(sim, routine<&copy_routine>);

constexpr auto stir = test::stir_on_gpu;

options with_sim() {
  options o;
  o.threads = 1;
  o.devices = {{"sim:0"}};
  return o;
}

TEST(gpu_routines, run_inside_the_flow_of_data) {
  runtime rt(with_sim());
  auto a = rt.filled<word>({50}, tiles(50), 2), b = rt.array<word>({50}, tiles(50));
  word expected = 2;
  for (int i = 0; i < 30; ++i) {
    rt.spawn(stir, update(a), word{3});
    expected = expected * 3 + 7;
    rt.spawn(copy, read(a), write(b));
    std::swap(a, b);
  }
  EXPECT_EQ(a.read()(7), expected);
}

TEST(gpu_routines, see_the_part_of_a_tile_that_they_were_given) {
  runtime rt(with_sim());
  auto a = rt.array<word>({40}, tiles(40)), b = rt.array<word>({10}, tiles(10));
  {
    auto v = a.write();
    for (index_t i = 0; i < 40; ++i) v(i) = static_cast<word>(i);
  }
  rt.spawn(stir, update(a), word{1});  // so that it is there
  rt.spawn(copy, read(a.sub({{20}, {30}})), write(b));
  EXPECT_EQ(b.read()(3), 46u);
}

// Takes the element of each array whose number the values say.
void pick_routine(device_call& call, std::span<const view<const word, 1>> from, std::span<const index_t> which,
                  view<word, 1> to) {
  for (std::size_t i = 0; i < from.size(); ++i)
    check(soft_gpu::simMemcpyAsync(to.data() + i, from[i].data() + which[i], sizeof(word),
                                   soft_gpu::simMemcpyDeviceToDevice, lane_of(call)));
}
constexpr auto pick =
    kernel<in_all<word, 1>, std::span<const index_t>, out<word, 1>>("pick").on(sim, routine<&pick_routine>);

TEST(gpu_routines, have_lists_as_bodies_for_cores_do) {
  runtime rt(with_sim());
  for (const std::size_t count : {1, 3, 16, 40}) {
    std::vector<array<word, 1>> from;
    std::vector<index_t> which;
    std::vector<future<index_t>> later;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<word> numbers(8);
      for (std::size_t k = 0; k < 8; ++k) numbers[k] = 10 * i + k;
      from.push_back(rt.adopt(std::move(numbers)));
      which.push_back(static_cast<index_t>(i * 5 % 8));
      later.push_back(rt.spawn([i] { return static_cast<index_t>(i * 3 % 8); }));
    }
    const auto n = static_cast<index_t>(count);
    const auto to = rt.array<word>({n}, tiles(n));
    rt.spawn(pick, read_all(from), which, write(to));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to.read()(static_cast<index_t>(i)), 10 * i + i * 5 % 8) << i;
    rt.spawn(pick, read_all(from), later, write(to));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to.read()(static_cast<index_t>(i)), 10 * i + i * 3 % 8) << i;
  }
}

TEST(gpu_routines, that_throw_fail_their_task_only) {
  static constexpr auto broken = kernel<inout<word, 1>>("broken").on(
      sim, routine<[](device_call&, view<word, 1>) { throw std::runtime_error("the library says no"); }>);
  runtime rt(with_sim());
  auto a = rt.filled<word>({10}, tiles(10), 1), b = rt.array<word>({10}, tiles(10));
  auto end = rt.spawn(broken, update(a));
  auto after = rt.spawn(copy, read(a), write(b));
  try {
    end.get();
    FAIL() << "it threw";
  } catch (const task_failed& e) {
    EXPECT_NE(std::string(e.what()).find("the library says no"), std::string::npos) << e.what();
  }
  EXPECT_THROW(after.get(), task_failed);
  auto c = rt.filled<word>({10}, tiles(10), 4);
  rt.spawn(copy, read(c), write(b));
  EXPECT_EQ(b.read()(9), 4u);
}

TEST(gpu_routines, that_ask_for_too_much_are_told_so) {
  static constexpr auto greedy = kernel<inout<word, 1>>("greedy").on(
      sim, routine<[](device_call& c, view<word, 1>) { (void)c.scratch(std::size_t{1} << 40); }>);
  runtime rt(with_sim());
  auto a = rt.filled<word>({10}, tiles(10), 1);
  try {
    rt.spawn(greedy, update(a)).get();
    FAIL() << "there was room";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("1099511627776 bytes"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), errc::out_of_memory);
  }
}

struct counted {
  explicit counted(device_call& c) : device(c.device()) { ++made; }
  ~counted() { ++gone; }
  int device, calls = 0;
  static inline std::atomic<int> made{0}, gone{0};
};

TEST(gpu_routines, keep_one_state_for_each_device) {
  static constexpr auto count = kernel<inout<word, 1>>("count").on(sim, routine<[](device_call& c, view<word, 1>) {
                                                                     if (c.state<counted>().device != c.device())
                                                                       throw std::logic_error("another device's");
                                                                     ++c.state<counted>().calls;
                                                                   }>);
  {
    options o = with_sim();
    o.devices = {{"sim:0"}, {"sim:1"}};
    runtime rt(o);
    auto a = rt.filled<word>({100}, tiles(10), 1);
    for (const char* where : {"sim:0", "sim:1", "sim:0"}) {
      task_options on;
      on.where = scope::executor(where);
      rt.for_each(on, grid(100), count, update(a)).get();
    }
    EXPECT_EQ(counted::made, 2);
    EXPECT_EQ(counted::gone, 0);
  }
  EXPECT_EQ(counted::gone, 2);
}

// ---- retries --------------------------------------------------------------------------------------------------------

std::atomic<int> failures_left{0};

// Adds 1 to each byte it is given, by way of the host; but first spoils it, and fails as often as it is to.
void fails_halfway(device_call& call, view<word, 1> a) {
  const std::size_t bytes = static_cast<std::size_t>(a.size(0)) * sizeof(word);
  if (failures_left.fetch_sub(1) > 0) {
    check(soft_gpu::simMemsetAsync(a.data(), 0x77, bytes, lane_of(call)));
    throw std::runtime_error("not this time");
  }
  std::vector<word> v(static_cast<std::size_t>(a.size(0)));
  check(soft_gpu::simMemcpyAsync(v.data(), a.data(), bytes, soft_gpu::simMemcpyDeviceToHost, lane_of(call)));
  check(soft_gpu::simStreamSynchronize(lane_of(call)));
  for (word& w : v) ++w;
  check(soft_gpu::simMemcpyAsync(a.data(), v.data(), bytes, soft_gpu::simMemcpyHostToDevice, lane_of(call)));
  check(soft_gpu::simStreamSynchronize(lane_of(call)));
}
constexpr auto halfway = kernel<inout<word, 1>>("halfway").on(sim, routine<&fails_halfway>);

TEST(gpu_routines, that_throw_are_tried_again_on_what_they_were_to_update) {
  runtime rt(with_sim());
  auto a = rt.filled<word>({50}, tiles(50), 2);
  rt.spawn(stir, update(a), word{3});  // 6 + i, there only
  failures_left = 2;
  auto once = rt.spawn(task_options{.retries = 2}, halfway, update(a));
  rt.spawn(stir, update(a), word{2});  // enqueued behind it
  once.get();
  const auto v = a.read();
  for (index_t i = 0; i < 50; ++i) ASSERT_EQ(v(i), 2 * (6 + i + 1) + i);
  EXPECT_EQ(failures_left.load(), -1);
}

TEST(gpu_routines, that_throw_are_tried_again_on_parts_of_tiles) {
  runtime rt(with_sim());
  auto a = rt.filled<word>({50}, tiles(50), 2);
  failures_left = 1;
  rt.spawn(task_options{.retries = 3}, halfway, update(a.sub({{10}, {20}}))).get();
  const auto v = a.read();
  for (index_t i = 0; i < 50; ++i) ASSERT_EQ(v(i), i >= 10 && i < 20 ? 3u : 2u) << i;
}

TEST(gpu_routines, that_throw_once_too_often_say_how_often_they_were_tried) {
  runtime rt(with_sim());
  auto a = rt.filled<word>({50}, tiles(50), 2);
  failures_left = 3;
  auto f = rt.spawn(task_options{.retries = 2}, halfway, update(a));
  try {
    f.get();
    FAIL();
  } catch (const task_failed& e) {
    EXPECT_EQ(e.attempts(), 3);
    EXPECT_NE(std::string(e.what()).find("not this time"), std::string::npos) << e.what();
  }
  EXPECT_THROW(a.read(), task_failed);
}

TEST(gpu_routines, are_not_tried_again_where_there_is_no_room_for_what_they_update) {
  options o = with_sim();
  o.devices = {{"sim:0", 300}};  // one block of 256 bytes
  runtime rt(o);
  auto a = rt.filled<word>({50}, tiles(50), 2);
  failures_left = 0;
  rt.spawn(halfway, update(a)).get();
  auto f = rt.spawn(task_options{.retries = 2}, halfway, update(a));
  try {
    f.get();
    FAIL();
  } catch (const task_failed& e) {
    EXPECT_NE(std::string(e.what()).find("retries"), std::string::npos) << e.what();
    try {
      e.rethrow_cause();
    } catch (const error& cause) {
      EXPECT_EQ(cause.code(), errc::out_of_memory);
    }
  }
}

}  // namespace
