// What this file is for: the GPU backend on the software GPU: lanes, tickets, memory, failures; and without any GPU.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "gpu_suite.hpp"

namespace {

using namespace gpu_suite;
using four = std::array<index_t, troupe::rank_max>;

TEST_F(gpu_sim, tells_what_it_is) {
  const auto source = make_sim_source(wishes());
  EXPECT_EQ(source->kind(), troupe::device_kind::sim);
  EXPECT_EQ(source->count(), 2);
  const auto a = source->open(1, 3, 1 << 20);
  EXPECT_EQ(a->facts().name, "sim:1");
  EXPECT_EQ(a->facts().index, 1);
  EXPECT_EQ(a->facts().lanes, 3);
  EXPECT_EQ(a->facts().memory_bytes, 1u << 20);
  EXPECT_FALSE(a->facts().identity.empty());
  EXPECT_EQ(thrown([&] { source->open(2, 1, 0); }), code(errc::bad_argument));
}

TEST_F(gpu_sim, a_lane_waits_for_the_ticket_of_another) {
  troupe::soft_gpu::sim_options o;
  o.copy_gb_per_s = 0.05;  // 1 MiB lasts 20 ms
  configure(o);
  auto& a = device(2);
  const std::vector<std::int32_t> host(1 << 18, 42);
  void* p = a.allocate(0, host.size() * 4);
  void* q = a.allocate(0, host.size() * 4);
  const four n{1, 1, 1, static_cast<index_t>(host.size())};
  for (int round = 0; round < 3; ++round) {
    a.copy_in(0, {p, 0}, line, reinterpret_cast<const std::byte*>(host.data()), line, n, 4);
    const ticket in = a.record(0, false);
    a.wait(1, 0, in);
    a.copy(1, {q, 0}, line, {p, 0}, line, n, 4);
    EXPECT_EQ(get<std::int32_t>(q, host.size(), 1), host);
    EXPECT_GE(a.completed(0), in);
    EXPECT_NO_THROW(a.wait(1, 0, in));  // long reached
    EXPECT_NO_THROW(a.wait(1, 0, 0));
  }
  EXPECT_EQ(thrown([&] { a.wait(1, 0, 1000); }), code(errc::bad_argument));
}

TEST_F(gpu_sim, tickets_count_from_1_and_the_listener_hears_of_those_that_notify) {
  auto& a = device(2);
  std::mutex guard;
  std::condition_variable changed;
  int heard = 0;
  a.listen([&] {
    const std::lock_guard lock(guard);
    ++heard;
    changed.notify_all();
  });
  EXPECT_EQ(a.completed(0), 0u);
  EXPECT_EQ(a.record(0, false), 1u);
  for (int i = 1; i <= 100; ++i) {
    const int lane = i % 2;
    const ticket t = a.record(lane, true);
    std::unique_lock lock(guard);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return heard == i; }));
    lock.unlock();
    ASSERT_EQ(a.completed(lane), t);
  }
}

TEST_F(gpu_sim, allocates_up_to_its_limit_and_again_what_was_freed) {
  auto& a = device(1, 1 << 20);
  EXPECT_EQ(a.allocate(0, (1 << 20) + 1), nullptr);
  void* p = a.allocate(0, 1 << 19);
  void* q = a.allocate(0, 1 << 19);
  ASSERT_NE(p, nullptr);
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0u);
  EXPECT_EQ(a.allocate(0, 1), nullptr);
  a.deallocate(0, p);
  EXPECT_NE(a.allocate(0, 1 << 19), nullptr);
}

TEST_F(gpu_sim, a_full_device_answers_null_and_goes_on) {
  troupe::soft_gpu::sim_options o;
  o.memory_bytes = 1 << 20;
  configure(o);
  const auto source = make_sim_source(wishes());
  const auto a = source->open(0, 1, 0), b = source->open(0, 1, 0);  // two logical devices that both count on all of it
  EXPECT_NE(a->allocate(0, 700 << 10), nullptr);
  EXPECT_EQ(b->allocate(0, 700 << 10), nullptr);
  EXPECT_NE(b->allocate(0, 100 << 10), nullptr);
  EXPECT_NO_THROW(finish(*b, 0));
}

TEST_F(gpu_sim, pinned_memory_can_be_copied_from_and_to) {
  auto& a = device();
  std::byte* p = a.allocate_pinned(4096);
  ASSERT_NE(p, nullptr);
  std::memset(p, 7, 4096);
  void* d = a.allocate(0, 4096);
  a.copy_in(0, {d, 0}, line, p, line, {1, 1, 1, 4096}, 1);
  EXPECT_EQ(get<std::uint8_t>(d, 4096), std::vector<std::uint8_t>(4096, 7));
  a.deallocate_pinned(p);
}

TEST_F(gpu_sim, a_sticky_error_fails_the_device_calls_the_listener_and_leaves_it_fit_to_be_opened_again) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back({.call = "MemcpyAsync",
                      .nth = 1,
                      .device = 0,
                      .error = troupe::soft_gpu::simErrorIllegalAddress,
                      .sticky = true});
  configure(o);
  auto& a = device(2);
  std::atomic<int> heard = 0;
  a.listen([&] { ++heard; });
  const std::vector<double> host(100, 1.0);
  const int code_seen = thrown([&] {
    put(host);
    const ticket t = a.record(0, true);
    while (heard == 0) ::usleep(100);  // nobody asks: the failure is told
    while (a.completed(0) < t) ::usleep(100);
  });
  EXPECT_EQ(code_seen, code(errc::device_failed)) << said;
  EXPECT_NE(said.find("IllegalAddress"), std::string::npos) << said;
  EXPECT_NE(said.find("sim:0"), std::string::npos) << said;
  EXPECT_EQ(thrown([&] { a.completed(1); }), code(errc::device_failed));
  EXPECT_EQ(thrown([&] { a.allocate(0, 1); }), code(errc::device_failed));
  open.reset();

  auto& b = device(2);
  EXPECT_EQ(get<double>(put(host), 100), host);
  EXPECT_NO_THROW(finish(b, 1));
}

TEST_F(gpu_sim, logical_devices_fail_together_and_the_last_one_closed_cures_the_device) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back(
      {.call = "MemsetAsync", .device = 0, .error = troupe::soft_gpu::simErrorLaunchFailure, .sticky = true});
  configure(o);
  const auto source = make_sim_source(wishes());
  auto a = source->open(0, 1, 1 << 20), b = source->open(0, 1, 1 << 20);
  const std::byte zero{};
  a->fill(0, {a->allocate(0, 64), 0}, &zero, 1, 64);
  EXPECT_EQ(thrown([&] { finish(*a, 0); }), code(errc::device_failed)) << said;
  EXPECT_EQ(thrown([&] { finish(*b, 0); }), code(errc::device_failed)) << said;
  a.reset();
  EXPECT_EQ(thrown([&] { source->open(0, 1, 0); }), code(errc::device_failed));  // b still has it
  b.reset();
  a = source->open(0, 1, 0);
  EXPECT_NO_THROW(finish(*a, 0));
}

using slow_gpu_sim = gpu_sim;

TEST_F(slow_gpu_sim, closing_gives_up_an_operation_that_does_not_end) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back({.call = "MemsetAsync", .device = 0, .error = troupe::soft_gpu::simSuccess, .hang = true});
  configure(o);
  auto& a = device(1);
  a.listen([] {});
  const std::byte zero{};
  a.fill(0, {a.allocate(0, 64), 0}, &zero, 1, 64);
  const ticket t = a.record(0, true);
  EXPECT_LT(a.completed(0), t);
  open.reset();  // would not return
  EXPECT_NO_THROW(finish(device(1), 0));
}

TEST_F(gpu_sim, a_lost_device_says_so_and_closes) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back({.call = "MemcpyAsync",
                      .nth = 1,
                      .device = 0,
                      .error = troupe::soft_gpu::simErrorDevicesUnavailable,
                      .lost = true});
  configure(o);
  auto& a = device(1);
  EXPECT_EQ(thrown([&] {
              put(std::vector<double>(100, 1.0));
              finish(a, 0);
            }),
            code(errc::device_lost))
      << said;
  open.reset();
}

TEST_F(gpu_sim, closing_waits_for_what_runs) {
  troupe::soft_gpu::sim_options o;
  o.copy_gb_per_s = 0.05;
  configure(o);
  auto& a = device(2);
  const std::vector<double> host(1 << 17, 1.0);
  std::atomic<bool> gone = false;
  a.listen([&] { EXPECT_FALSE(gone); });
  for (int i = 0; i < 3; ++i) {
    put(host);
    a.record(0, true);
  }
  open.reset();
  gone = true;
}

TEST_F(gpu_sim, no_devices_are_counted_with_the_reason) {
  troupe::soft_gpu::sim_options o;
  o.devices = 0;
  configure(o);
  const auto source = make_sim_source(wishes());
  EXPECT_EQ(source->count(), 0);
  EXPECT_NE(source->remark().find("NoDevice"), std::string::npos) << source->remark();
  EXPECT_EQ(thrown([&] { source->open(0, 1, 0); }), code(errc::bad_argument));
}

TEST(gpu_vendors, absence_is_a_count_of_zero_and_a_remark) {
  for (const auto& source : {make_cuda_source(wishes()), make_hip_source(wishes())}) {
    ASSERT_GE(source->count(), 0);
    if (source->count() > 0) continue;
    EXPECT_FALSE(source->remark().empty());
    EXPECT_EQ(thrown([&] { source->open(0, 1, 0); }), code(errc::bad_argument));
    RecordProperty(source->kind() == troupe::device_kind::cuda ? "cuda" : "hip", source->remark());
  }
}

}  // namespace
