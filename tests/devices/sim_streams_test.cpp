// What this file is for: streams, events and graphs of the software GPU.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "sim_suite.hpp"

namespace {

using namespace sim_suite;

// ---- streams and events ----

TEST_F(sim, orders_streams_of_two_devices_by_events) {
  const auto a = stream(0), b = stream(1);
  OK(simSetDevice(0));
  const auto e = event();
  OK(simEventQuery(e));  // never recorded: complete
  gate g;
  std::atomic<bool> after = false;
  OK(g.block(a));
  OK(simEventRecord(e, a));
  OK(simStreamWaitEvent(b, e));
  OK(simLaunchHostFunc(b, &set_flag, &after));
  EXPECT_EQ(simEventQuery(e), simErrorNotReady);
  EXPECT_EQ(simStreamQuery(a), simErrorNotReady);
  EXPECT_EQ(simStreamQuery(b), simErrorNotReady);
  EXPECT_EQ(simPeekAtLastError(), simSuccess);
  EXPECT_FALSE(after);
  g.open();
  OK(simStreamSynchronize(b));
  EXPECT_TRUE(after);
  OK(simEventQuery(e));
  EXPECT_EQ(simEventRecord(e, b), simErrorInvalidResourceHandle);  // of another device
  OK(simEventDestroy(e));
  EXPECT_EQ(simEventQuery(e), simErrorInvalidResourceHandle);
}

TEST_F(sim, waits_for_the_record_that_was_the_last_when_the_wait_was_called) {
  const auto a = stream(), b = stream(), c = stream();
  const auto e = event();
  gate first, second;
  OK(first.block(a));
  OK(simEventRecord(e, a));
  OK(simStreamWaitEvent(b, e));
  OK(second.block(c));
  OK(simEventRecord(e, c));
  first.open();
  OK(simStreamSynchronize(b));
  EXPECT_EQ(simEventQuery(e), simErrorNotReady);
  second.open();
  OK(simEventSynchronize(e));
}

TEST_F(sim, keeps_events_and_streams_that_are_destroyed_before_they_are_reached) {
  const auto a = stream(), b = stream();
  const auto e = event();
  gate g;
  OK(g.block(a));
  OK(simEventRecord(e, a));
  OK(simStreamWaitEvent(b, e));
  OK(simEventDestroy(e));
  OK(simStreamDestroy(a));
  EXPECT_EQ(simStreamQuery(b), simErrorNotReady);
  g.open();
  OK(simStreamSynchronize(b));
  OK(simDeviceSynchronize());
}

TEST_F(sim, measures_the_time_between_events) {
  configure({.launch_us = 3000});
  const auto s = stream();
  const auto a = event(), b = event();
  auto* p = memory<double>(1);
  OK(simEventRecord(a, s));
  OK(start(kernel<&increment>, 1, 1, s, p));
  OK(simEventRecord(b, s));
  OK(simEventSynchronize(b));
  float ms = 0;
  OK(simEventElapsedTime(&ms, a, b));
  EXPECT_GE(ms, 2.99F);
  simEvent_t blind = nullptr;
  OK(simEventCreateWithFlags(&blind, simEventDisableTiming));
  OK(simEventRecord(blind, s));
  EXPECT_EQ(simEventElapsedTime(&ms, a, blind), simErrorInvalidResourceHandle);
}

TEST_F(sim, permits_no_calls_in_host_functions) {
  const auto s = stream();
  std::atomic<simError_t> got = simSuccess;
  OK(simLaunchHostFunc(
      s, [](void* to) { *static_cast<std::atomic<simError_t>*>(to) = simDeviceSynchronize(); }, &got));
  OK(simStreamSynchronize(s));
  EXPECT_EQ(got, simErrorNotPermitted);
}

TEST_F(sim, serves_the_devices_own_stream_as_null) {
  int* p = on_device(std::vector<int>{1, 2}, nullptr);
  EXPECT_EQ(on_host(p, 2, nullptr), (std::vector<int>{1, 2}));
  OK(simDeviceSynchronize());
}

TEST_F(sim, runs_what_eight_threads_ask_for) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 8; ++t) {
    const auto s = stream(t % 2);
    threads.emplace_back([&right, s, t] {
      simSetDevice(t % 2);
      for (int i = 0; i < 20; ++i) {
        void* p = nullptr;
        double x = t, y = 0;
        bool ok = simMallocAsync(&p, sizeof x, s) == simSuccess;
        ok = ok && simMemcpyAsync(p, &x, sizeof x, simMemcpyHostToDevice, s) == simSuccess;
        ok = ok && start(kernel<&increment>, 1, 1, s, static_cast<double*>(p)) == simSuccess;
        ok = ok && simMemcpyAsync(&y, p, sizeof y, simMemcpyDeviceToHost, s) == simSuccess;
        ok = ok && simFreeAsync(p, s) == simSuccess && simStreamSynchronize(s) == simSuccess;
        right += ok && y == t + 1;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 160);
}

TEST_F(sim, gives_the_same_results_whatever_the_delays) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    configure({.seed = seed});
    const auto a = stream(0), b = stream(0);
    const auto to_b = event(), to_a = event();
    double* p = on_device(std::vector<double>{0}, a);
    for (int i = 0; i < 30; ++i) {
      OK(start(kernel<&increment>, 1, 1, a, p));
      OK(simEventRecord(to_b, a));
      OK(simStreamWaitEvent(b, to_b));
      OK(start(kernel<&increment>, 1, 1, b, p));
      OK(simEventRecord(to_a, b));
      OK(simStreamWaitEvent(a, to_a));
    }
    EXPECT_EQ(on_host(p, 1, a), std::vector<double>{60}) << "seed " << seed;
    OK(simStreamDestroy(a));
    OK(simStreamDestroy(b));
  }
}

TEST_F(sim, copies_no_faster_than_its_link) {
  configure({.copy_gb_per_s = 0.1});
  const auto a = stream(), b = stream();
  const std::vector<char> v(500000);
  char *p = memory<char>(v.size()), *q = memory<char>(v.size());
  const auto begin = std::chrono::steady_clock::now();
  OK(simMemcpyAsync(p, v.data(), v.size(), simMemcpyHostToDevice, a));
  OK(simMemcpyAsync(q, v.data(), v.size(), simMemcpyHostToDevice, b));
  OK(simDeviceSynchronize());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(10));  // one link for both
}

// ---- graphs ----

TEST_F(sim, replays_what_it_captured) {
  const auto s = stream(), fork = stream();
  const auto out = event(), back = event();
  double* p = on_device(std::vector<double>{0}, s);
  OK(simStreamBeginCapture(s, simStreamCaptureModeRelaxed));
  OK(start(kernel<&increment>, 1, 1, s, p));
  OK(simEventRecord(out, s));
  OK(simStreamWaitEvent(fork, out));
  OK(start(kernel<&increment>, 1, 1, fork, p));
  OK(simEventRecord(back, fork));
  EXPECT_EQ(simEventQuery(back), simErrorCapturedEvent);
  OK(simStreamWaitEvent(s, back));
  simGraph_t g = nullptr;
  OK(simStreamEndCapture(s, &g));
  EXPECT_EQ(on_host(p, 1, s), std::vector<double>{0});
  simGraphExec_t x = nullptr;
  OK(simGraphInstantiateWithFlags(&x, g, 0));
  OK(simGraphDestroy(g));
  for (int i = 0; i < 100; ++i) OK(simGraphLaunch(x, i % 2 ? s : fork));
  OK(simGraphExecDestroy(x));  // while it is pending
  OK(simStreamSynchronize(fork));
  OK(simStreamSynchronize(s));
  EXPECT_EQ(on_host(p, 1, s), std::vector<double>{200});
  EXPECT_EQ(simGraphLaunch(x, s), simErrorInvalidResourceHandle);
}

TEST_F(sim, refuses_captures_that_are_not_joined_or_were_looked_into) {
  const auto s = stream(), fork = stream();
  const auto out = event();
  auto* p = memory<double>(1);
  simGraph_t g = nullptr;
  EXPECT_EQ(simStreamEndCapture(s, &g), simErrorIllegalState);
  OK(simStreamBeginCapture(s, simStreamCaptureModeGlobal));
  OK(simEventRecord(out, s));
  OK(simStreamWaitEvent(fork, out));
  OK(start(kernel<&increment>, 1, 1, fork, p));
  EXPECT_EQ(simStreamEndCapture(s, &g), simErrorStreamCaptureUnjoined);
  OK(simStreamSynchronize(fork));

  for (const auto look : {&simStreamQuery, &simStreamSynchronize}) {
    OK(simStreamBeginCapture(s, simStreamCaptureModeGlobal));
    EXPECT_EQ(look(s), simErrorStreamCaptureUnsupported);
    EXPECT_EQ(simStreamEndCapture(s, &g), simErrorStreamCaptureInvalidated);
    EXPECT_EQ(g, nullptr);
  }
  OK(simStreamBeginCapture(s, simStreamCaptureModeGlobal));
  EXPECT_EQ(simDeviceSynchronize(), simErrorStreamCaptureUnsupported);
  EXPECT_EQ(simStreamEndCapture(s, &g), simErrorStreamCaptureInvalidated);
  OK(simStreamSynchronize(s));
}

}  // namespace
