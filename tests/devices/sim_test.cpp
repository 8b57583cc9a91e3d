// What this file is for: the software GPU says what it is, copies between devices, and fails as it was told to.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "sim_suite.hpp"

namespace {

using namespace sim_suite;

// ---- devices ----

TEST_F(sim, counts_devices_and_says_what_they_are) {
  int count = 0;
  OK(simGetDeviceCount(&count));
  EXPECT_EQ(count, 2);
  simDeviceProp p{};
  OK(simGetDeviceProperties(&p, 1));
  EXPECT_STREQ(p.name, "troupe software GPU");
  EXPECT_EQ(p.totalGlobalMem, std::size_t{256} << 20);
  EXPECT_EQ(p.warpSize, 32);
  EXPECT_EQ(simGetDeviceProperties(&p, 2), simErrorInvalidDevice);
  EXPECT_EQ(simSetDevice(2), simErrorInvalidDevice);
  EXPECT_EQ(simGetLastError(), simErrorInvalidDevice);
  EXPECT_EQ(simGetLastError(), simSuccess);
  EXPECT_STREQ(simGetErrorName(simErrorInvalidDevice), "simErrorInvalidDevice");
}

TEST_F(sim, has_no_device_where_none_is_asked_for) {
  configure({.devices = 0});
  int count = 7;
  EXPECT_EQ(simGetDeviceCount(&count), simErrorNoDevice);
  EXPECT_EQ(count, 0);
  void* p = nullptr;
  EXPECT_EQ(simMalloc(&p, 8), simErrorNoDevice);
  EXPECT_EQ(simSetDevice(0), simErrorNoDevice);
  EXPECT_EQ(simDeviceSynchronize(), simErrorNoDevice);
}

TEST_F(sim, is_not_configured_while_streams_are_alive) {
  const auto s = stream();
  EXPECT_EQ(simConfigure({}), simErrorNotPermitted);
  OK(simStreamDestroy(s));
  EXPECT_EQ(simStreamDestroy(s), simErrorInvalidResourceHandle);
  EXPECT_EQ(simStreamSynchronize(s), simErrorInvalidResourceHandle);
}

// ---- peers ----

TEST_F(sim, breaks_when_memory_of_another_device_is_used) {
  const auto a = stream(0);
  double* p = on_device(std::vector<double>{1}, a);
  int can = 1;
  OK(simDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 0);
  const auto b = stream(1);
  EXPECT_EQ(simDeviceEnablePeerAccess(0, 0), simErrorPeerAccessUnsupported);
  OK(start(kernel<&increment>, 1, 1, b, p));
  EXPECT_EQ(simStreamSynchronize(b), simErrorIllegalAddress);
  OK(simDeviceReset());
  EXPECT_EQ(on_host(p, 1, a), std::vector<double>{1});
}

TEST_F(sim, copies_between_devices_where_it_says_so) {
  const auto a = stream(0);
  double* p = on_device(std::vector<double>{1, 2}, a);
  const auto b = stream(1);
  auto* q = memory<double>(2);
  EXPECT_EQ(simMemcpyPeerAsync(q, 0, p, 1, 16, b), simErrorInvalidValue);
  OK(simMemcpyPeerAsync(q, 1, p, 0, 16, b));
  EXPECT_EQ(on_host(q, 2, b), (std::vector<double>{1, 2}));
}

TEST_F(sim, counts_what_goes_between_devices_without_access_as_gone_to_the_host_and_back) {
  for (const bool peer : {false, true}) {
    configure({.peer = peer});
    const auto a = stream(0);
    double* p = on_device(std::vector<double>{1, 2}, a);
    const auto b = stream(1);
    auto* q = memory<double>(2);
    EXPECT_EQ(simDeviceEnablePeerAccess(0, 0), peer ? simSuccess : simErrorPeerAccessUnsupported);
    OK(simMemcpyPeerAsync(q, 1, p, 0, 16, b));
    OK(simStreamSynchronize(b));
    sim_traffic from, to;
    OK(simGetTraffic(&from, 0));
    OK(simGetTraffic(&to, 1));
    EXPECT_EQ(from.from_host, 16u);  // p
    EXPECT_EQ(from.to_host, peer ? 0u : 16u);
    EXPECT_EQ(to.from_host, peer ? 0u : 16u);
    EXPECT_EQ(to.from_peers, peer ? 16u : 0u);
    EXPECT_EQ(simGetTraffic(&to, 2), simErrorInvalidDevice);
    OK(simStreamDestroy(a));
    OK(simStreamDestroy(b));
  }
}

TEST_F(sim, reaches_memory_of_a_peer_once_it_is_enabled) {
  configure({.peer = true});
  const auto a = stream(0);
  double* p = on_device(std::vector<double>{1}, a);
  int can = 0;
  OK(simDeviceCanAccessPeer(&can, 1, 0));
  EXPECT_EQ(can, 1);
  const auto b = stream(1);
  OK(simDeviceEnablePeerAccess(0, 0));
  EXPECT_EQ(simDeviceEnablePeerAccess(0, 0), simErrorPeerAccessAlreadyEnabled);
  OK(start(kernel<&increment>, 1, 1, b, p));
  OK(simStreamSynchronize(b));
  EXPECT_EQ(on_host(p, 1, a), std::vector<double>{2});
}

// ---- faults ----

TEST_F(sim, fails_the_nth_call_and_no_other) {
  configure({.faults = {{.call = "Malloc", .nth = 2, .device = 0}, {.call = "StreamCreateWithFlags", .nth = 1}}});
  void* p = nullptr;
  simStream_t s = nullptr;
  EXPECT_EQ(simStreamCreateWithFlags(&s, 0), simErrorMemoryAllocation);
  EXPECT_EQ(simMalloc(&p, 8), simSuccess);
  OK(simSetDevice(1));
  EXPECT_EQ(simMalloc(&p, 8), simSuccess);
  OK(simSetDevice(0));
  EXPECT_EQ(simMalloc(&p, 8), simErrorMemoryAllocation);
  EXPECT_EQ(simMalloc(&p, 8), simSuccess);
}

TEST_F(sim, breaks_in_the_order_of_the_stream_and_still_calls_back) {
  configure({.faults = {{.call = "LaunchKernel", .error = simErrorLaunchFailure, .sticky = true}}});
  const auto s = stream(), other = stream();
  const auto e = event();
  double* p = on_device(std::vector<double>{1}, s);
  double seen = 0;
  std::atomic<bool> called = false;
  gate g;
  OK(g.block(s));
  OK(simMemcpyAsync(&seen, p, sizeof seen, simMemcpyDeviceToHost, s));
  OK(start(kernel<&increment>, 1, 1, s, p));
  double skipped = 7;
  OK(simMemcpyAsync(&skipped, p, sizeof skipped, simMemcpyDeviceToHost, s));
  OK(simEventRecord(e, s));
  OK(simStreamWaitEvent(other, e));
  OK(simLaunchHostFunc(other, &set_flag, &called));
  g.open();
  EXPECT_EQ(simStreamSynchronize(other), simErrorLaunchFailure);
  EXPECT_EQ(simEventQuery(e), simErrorLaunchFailure);
  OK(simDeviceReset());
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(skipped, 7);
  EXPECT_TRUE(called);
}

TEST_F(sim, loses_a_device_at_once) {
  configure({.faults = {{.call = "MemcpyAsync", .nth = 2, .lost = true}}});
  const auto s = stream();
  int x = 1;
  int* p = memory<int>(1);
  OK(simMemcpyAsync(p, &x, 4, simMemcpyHostToDevice, s));
  EXPECT_EQ(simMemcpyAsync(p, &x, 4, simMemcpyHostToDevice, s), simErrorDevicesUnavailable);
  EXPECT_EQ(simStreamSynchronize(s), simErrorDevicesUnavailable);
  EXPECT_EQ(simFree(p), simErrorDevicesUnavailable);
  OK(simDeviceReset());
}

TEST_F(sim, ends_an_operation_that_hangs_when_the_device_is_reset) {
  configure({.faults = {{.call = "MemcpyAsync", .hang = true}}});
  const auto s = stream(), behind = stream(), elsewhere = stream(1);
  OK(simSetDevice(0));
  int x = 1;
  int* p = memory<int>(1);
  const auto e = event();
  std::atomic<bool> called = false;
  OK(simMemcpyAsync(p, &x, 4, simMemcpyHostToDevice, s));
  OK(simEventRecord(e, s));
  OK(simStreamWaitEvent(behind, e));
  OK(simStreamWaitEvent(elsewhere, e));
  OK(simLaunchHostFunc(behind, &set_flag, &called));
  EXPECT_EQ(simStreamQuery(s), simErrorNotReady);
  EXPECT_FALSE(called);
  OK(simDeviceReset());
  EXPECT_TRUE(called);
  OK(simStreamSynchronize(elsewhere));
  EXPECT_EQ(simStreamSynchronize(s), simErrorInvalidResourceHandle);
  const auto again = stream();
  EXPECT_EQ(on_host(on_device(std::vector<int>{5}, again), 1, again), std::vector<int>{5});
}

TEST_F(sim, closes_while_an_operation_hangs_in_a_destroyed_stream) {
  configure({.faults = {{.call = "LaunchHostFunc", .hang = true}}});
  const auto s = stream();
  std::atomic<bool> called = false;
  OK(simLaunchHostFunc(s, &set_flag, &called));
  OK(simStreamDestroy(s));
  configure({});
  EXPECT_TRUE(called);
}

}  // namespace
