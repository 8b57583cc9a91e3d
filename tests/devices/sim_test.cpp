// What this file is for: the software GPU keeps the vocabulary's promises, and bites where a real one would.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "devices/sim/sim.h"

namespace {

using namespace troupe::soft_gpu;
using testing::HasSubstr;

#define OK(call) ASSERT_EQ(call, simSuccess)

// ---- kernels ----

int global_id() {
  const auto& i = self();
  return i.group_id[0] * i.local_size[0] + i.local_id[0];
}
void axpy(int n, double a, const double* x, double* y) {
  if (const int i = global_id(); i < n) y[i] += a * x[i];
}
void block_sum(int n, const double* x, double* sums) {
  static const char key = 0;
  const auto& me = self();
  const int l = me.local_id[0], size = me.local_size[0], i = global_id();
  auto* part = local_memory<double>(&key, static_cast<std::size_t>(size));
  part[l] = i < n ? x[i] : 0;
  barrier();
  for (int step = size / 2; step > 0; step /= 2) {
    if (l < step) part[l] += part[l + step];
    barrier();
  }
  if (l == 0) sums[me.group_id[0]] = part[0];
}
void stops_early(double*) {
  if (self().local_id[0] != 3) barrier();
}
void throws(double*) { throw std::runtime_error("a kernel's own error"); }
void throws_between_barriers(double*) {
  barrier();
  if (self().local_id[0] == 2) throw 7;
  barrier();
}
void writes_beyond(double* p, int n) { p[n] = 1; }
void increment(double* p) { p[0] += 1; }
void numbers_3d(int* p) {
  const auto& i = self();
  const int x = i.group_id[0] * i.local_size[0] + i.local_id[0], y = i.group_id[1] * i.local_size[1] + i.local_id[1],
            z = i.group_id[2] * i.local_size[2] + i.local_id[2];
  const int nx = i.group_count[0] * i.local_size[0], ny = i.group_count[1] * i.local_size[1];
  p[(z * ny + y) * nx + x] = (z * 100 + y) * 100 + x;
}

/// A kernel as a module compiled later would have it.
void module_reverse(const troupe_sim_item* item, void** args) {
  static const char key = 0;
  const long n = *static_cast<long*>(args[0]);
  auto* p = *static_cast<int**>(args[1]);
  auto* copy = static_cast<int*>(item->local_memory(item, &key, static_cast<unsigned long>(n) * sizeof(int)));
  const int l = item->local_id[0];
  copy[l] = p[l];
  item->barrier(item);
  p[l] = copy[n - 1 - l];
}

template <class... A>
simError_t start(const sim_kernel& k, dim3 groups, dim3 group, simStream_t s, A... args) {
  void* pointers[] = {&args..., nullptr};
  return simLaunchKernel(&k, groups, group, pointers, 0, s);
}

/// Holds a stream up until it is opened.
struct gate {
  std::promise<void> opened;
  std::shared_future<void> wait = opened.get_future().share();
  void open() { opened.set_value(); }
  simError_t block(simStream_t s) {
    return simLaunchHostFunc(
        s, [](void* g) { static_cast<gate*>(g)->wait.wait(); }, this);
  }
};
void set_flag(void* f) { *static_cast<std::atomic<bool>*>(f) = true; }

class sim : public testing::Test {
 protected:
  void SetUp() override { configure({}); }
  void TearDown() override {
    for (const auto s : streams_) simStreamDestroy(s);
    ASSERT_EQ(simConfigure({}), simSuccess);
  }

  void configure(sim_options o) {
    o.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_ += line + "\n";
    };
    ASSERT_EQ(simConfigure(std::move(o)), simSuccess);
  }
  simStream_t stream(int device = 0) {
    simStream_t s = nullptr;
    EXPECT_EQ(simSetDevice(device), simSuccess);
    EXPECT_EQ(simStreamCreateWithFlags(&s, simStreamNonBlocking), simSuccess);
    streams_.push_back(s);
    return s;
  }
  static simEvent_t event() {
    simEvent_t e = nullptr;
    EXPECT_EQ(simEventCreateWithFlags(&e, simEventDefault), simSuccess);
    return e;
  }
  template <class T>
  static T* memory(std::size_t count) {
    void* p = nullptr;
    EXPECT_EQ(simMalloc(&p, count * sizeof(T)), simSuccess);
    return static_cast<T*>(p);
  }
  template <class T>
  static T* on_device(const std::vector<T>& v, simStream_t s) {
    T* p = memory<T>(v.size());
    EXPECT_EQ(simMemcpyAsync(p, v.data(), v.size() * sizeof(T), simMemcpyHostToDevice, s), simSuccess);
    EXPECT_EQ(simStreamSynchronize(s), simSuccess);
    return p;
  }
  template <class T>
  static std::vector<T> on_host(const T* p, std::size_t count, simStream_t s) {
    std::vector<T> v(count);
    EXPECT_EQ(simMemcpyAsync(v.data(), p, count * sizeof(T), simMemcpyDeviceToHost, s), simSuccess);
    EXPECT_EQ(simStreamSynchronize(s), simSuccess);
    return v;
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  std::mutex mutex_;
  std::string log_;
  std::vector<simStream_t> streams_;
};

using sim_death = sim;

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

// ---- memory ----

TEST_F(sim_death, ends_a_host_that_reads_device_memory) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a death test forks beside threads";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const volatile double* p = memory<double>(4);
  EXPECT_DEATH(static_cast<void>(p[1]), "");
}

TEST_F(sim, fills_fresh_memory_with_nan) {
  const auto s = stream();
  for (const double x : on_host(memory<double>(100), 100, s)) EXPECT_TRUE(std::isnan(x));
  void* p = nullptr;
  OK(simMallocAsync(&p, 40, s));
  for (const float x : on_host(static_cast<float*>(p), 10, s)) EXPECT_TRUE(std::isnan(x));
}

TEST_F(sim, gives_back_what_was_copied_in) {
  const auto s = stream();
  for (const std::size_t n : {1U, 255U, 256U, 257U, 100000U}) {
    std::vector<int> v(n);
    std::iota(v.begin(), v.end(), 3);
    int* p = on_device(v, s);
    EXPECT_EQ(on_host(p, n, s), v);
    EXPECT_EQ(on_host(p + n / 2, n - n / 2, s), std::vector<int>(v.begin() + static_cast<long>(n / 2), v.end()));
    OK(simFree(p));
  }
}

TEST_F(sim, copies_rows_with_pitches) {
  const auto s = stream();
  std::vector<int> v(8 * 5);
  std::iota(v.begin(), v.end(), 0);
  int* p = memory<int>(4 * 3);
  constexpr std::size_t w = 3 * sizeof(int);
  OK(simMemcpy2DAsync(p, 4 * sizeof(int), &v[8 + 2], 8 * sizeof(int), w, 3, simMemcpyHostToDevice, s));
  std::vector<int> back(9);
  OK(simMemcpy2DAsync(back.data(), w, p, 4 * sizeof(int), w, 3, simMemcpyDeviceToHost, s));
  OK(simStreamSynchronize(s));
  EXPECT_THAT(back, testing::ElementsAre(10, 11, 12, 18, 19, 20, 26, 27, 28));
  EXPECT_EQ(simMemcpy2DAsync(p, 4, v.data(), 32, w, 3, simMemcpyHostToDevice, s), simErrorInvalidPitchValue);
}

TEST_F(sim, fills_bytes) {
  const auto s = stream();
  int* p = memory<int>(10);
  OK(simMemsetAsync(p, 1, 8, s));
  EXPECT_THAT(on_host(p, 3, s), testing::ElementsAre(0x01010101, 0x01010101, -1));
}

TEST_F(sim, refuses_copies_whose_direction_or_extent_is_wrong) {
  const auto s = stream();
  std::vector<int> v(10);
  int* p = memory<int>(10);
  EXPECT_EQ(simMemcpyAsync(p, v.data(), 40, simMemcpyDeviceToHost, s), simErrorInvalidValue);
  EXPECT_EQ(simMemcpyAsync(v.data(), p, 40, simMemcpyHostToDevice, s), simErrorInvalidValue);
  EXPECT_EQ(simMemcpyAsync(p, v.data(), 41, simMemcpyDefault, s), simErrorInvalidValue);
  EXPECT_EQ(simMemcpyAsync(v.data(), p + 5, 24, simMemcpyDefault, s), simErrorInvalidValue);
  EXPECT_EQ(simMemcpyAsync(p, nullptr, 40, simMemcpyDefault, s), simErrorInvalidValue);
  EXPECT_EQ(simMemsetAsync(v.data(), 0, 8, s), simErrorInvalidValue);
  EXPECT_EQ(simFree(v.data()), simErrorInvalidValue);
  EXPECT_EQ(simFree(p + 1), simErrorInvalidValue);
  OK(simFree(p));
  EXPECT_EQ(simFree(p), simErrorInvalidValue);
}

TEST_F(sim, gives_no_more_than_its_capacity) {
  constexpr std::size_t all = std::size_t{1} << 20;
  configure({.memory_bytes = all});
  void *p = nullptr, *q = nullptr;
  OK(simMalloc(&p, all));
  EXPECT_EQ(simMalloc(&q, 1), simErrorMemoryAllocation);
  EXPECT_EQ(q, nullptr);
  std::size_t free = 1, total = 0;
  OK(simMemGetInfo(&free, &total));
  EXPECT_EQ(free, 0U);
  EXPECT_EQ(total, all);
  OK(simFree(p));
  OK(simMalloc(&p, all / 2));
  OK(simMalloc(&q, all / 2));
  EXPECT_EQ(simMalloc(&p, SIZE_MAX), simErrorMemoryAllocation);
}

TEST_F(sim, gives_memory_again_in_the_order_of_a_stream_before_it_is_free) {
  constexpr std::size_t all = std::size_t{1} << 20;
  configure({.memory_bytes = all});
  const auto s = stream(), other = stream();
  gate g;
  OK(g.block(s));
  void *p = nullptr, *q = nullptr;
  OK(simMallocAsync(&p, all, s));
  OK(simMemsetAsync(p, 1, all, s));
  OK(simFreeAsync(p, s));
  EXPECT_EQ(simFreeAsync(p, s), simErrorInvalidValue);
  EXPECT_EQ(simMallocAsync(&q, all, other), simErrorMemoryAllocation);
  EXPECT_EQ(simMallocAsync(&q, all, s), simSuccess);
  EXPECT_EQ(p, q);
  g.open();
  EXPECT_EQ(on_host(static_cast<int*>(q), 4, s), std::vector<int>(4, -1));
  OK(simFreeAsync(q, s));
  OK(simStreamSynchronize(s));
  OK(simMallocAsync(&q, all, other));
}

TEST_F(sim, notices_writes_beyond_the_end) {
  const auto s = stream();
  auto* p = memory<double>(3);
  OK(start(kernel<&writes_beyond>, 1, 1, s, p, 3));
  OK(simStreamSynchronize(s));
  EXPECT_EQ(simFree(p), simErrorIllegalAddress);
  EXPECT_EQ(simStreamQuery(s), simErrorIllegalAddress);
  EXPECT_THAT(log(), HasSubstr("beyond the end"));
  OK(simDeviceReset());
}

TEST_F(sim, tells_of_memory_that_was_never_freed) {
  memory<int>(1);
  void* p = nullptr;
  OK(simMallocHost(&p, 10));
  EXPECT_EQ(log(), "");
  configure({});
  EXPECT_THAT(log(), HasSubstr("device 0: 1 allocations never freed"));
  EXPECT_THAT(log(), HasSubstr("1 pinned allocations"));
}

// ---- kernels ----

TEST_F(sim, runs_a_kernel_on_arguments_that_may_die) {
  const auto s = stream();
  constexpr int n = 1000;
  const double* x = on_device(std::vector<double>(n, 2), s);
  double* y = on_device(std::vector<double>(n, 1), s);
  gate g;
  OK(g.block(s));
  OK(start(kernel<&axpy>, 8, 128, s, n, 3.0, x, y));
  g.open();
  EXPECT_EQ(on_host(y, n, s), std::vector<double>(n, 7));
}

TEST_F(sim, numbers_work_items_in_three_dimensions) {
  const auto s = stream();
  int* p = memory<int>(6 * 4 * 2);
  OK(start(kernel<&numbers_3d>, {3, 2, 1}, {2, 2, 2}, s, p));
  const auto v = on_host(p, 48, s);
  for (int z = 0, i = 0; z < 2; ++z)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 6; ++x, ++i) EXPECT_EQ(v[static_cast<std::size_t>(i)], (z * 100 + y) * 100 + x);
}

TEST_F(sim, lets_no_work_item_pass_a_barrier_before_the_others_reach_it) {
  const auto s = stream();
  constexpr int n = 64 * 50 - 5, groups = 50;
  std::vector<double> x(n);
  std::iota(x.begin(), x.end(), 1);
  const double* in = on_device(x, s);
  auto* sums = memory<double>(groups);
  OK(start(kernel<&block_sum, true>, groups, 64, s, n, in, sums));
  const auto v = on_host(sums, groups, s);
  EXPECT_EQ(v[0], 64 * 65 / 2);
  EXPECT_EQ(std::accumulate(v.begin(), v.end(), 0.0), n * (n + 1.0) / 2);
}

TEST_F(sim, runs_kernels_of_modules) {
  const auto s = stream();
  const sim_argument arguments[] = {{sizeof(long), false}, {sizeof(int*), true}};
  const void* k = nullptr;
  OK(simKernelFromFunction(&k, &module_reverse, arguments, 2, true));
  int* p = on_device(std::vector<int>{1, 2, 3, 4, 5}, s);
  long n = 5;
  void* args[] = {&n, &p};
  OK(simLaunchKernel(k, 1, 5, args, 0, s));
  OK(simKernelDestroy(k));
  EXPECT_THAT(on_host(p, 5, s), testing::ElementsAre(5, 4, 3, 2, 1));
  EXPECT_EQ(simKernelDestroy(k), simErrorInvalidResourceHandle);
}

TEST_F(sim, breaks_for_good_when_a_kernel_throws) {
  for (const auto* k : {&kernel<&throws>, &kernel<&throws, true>, &kernel<&throws_between_barriers, true>,
                        &kernel<&stops_early, true>, &kernel<&throws_between_barriers>}) {
    const auto s = stream();
    auto* p = memory<double>(1);
    OK(start(*k, 2, 4, s, p));
    EXPECT_EQ(simStreamSynchronize(s), simErrorLaunchFailure);
    void* q = nullptr;
    EXPECT_EQ(simMalloc(&q, 8), simErrorLaunchFailure);
    EXPECT_EQ(simGetLastError(), simErrorLaunchFailure);
    EXPECT_EQ(simGetLastError(), simErrorLaunchFailure);
    OK(simSetDevice(1));
    OK(simMalloc(&q, 8));  // the other device lives
    OK(simSetDevice(0));
    OK(simDeviceReset());
    EXPECT_EQ(simGetLastError(), simSuccess);
    EXPECT_EQ(simStreamQuery(s), simErrorInvalidResourceHandle);
    OK(simMalloc(&q, 8));
  }
  EXPECT_THAT(log(), HasSubstr("a kernel's own error"));
  EXPECT_THAT(log(), HasSubstr("only a part of the group"));
  EXPECT_THAT(log(), HasSubstr("without barriers"));
}

TEST_F(sim, refuses_launches_that_no_device_could_run) {
  const auto s = stream();
  auto* p = memory<double>(1);
  EXPECT_EQ(start(kernel<&increment>, 0, 1, s, p), simErrorInvalidConfiguration);
  EXPECT_EQ(start(kernel<&increment>, 1, 1025, s, p), simErrorInvalidConfiguration);
  EXPECT_EQ(start(kernel<&increment>, 1, {64, 32, 1}, s, p), simErrorInvalidConfiguration);
  EXPECT_EQ(start(kernel<&increment>, {1, 65536, 1}, 1, s, p), simErrorInvalidConfiguration);
  void* args[] = {&p};
  EXPECT_EQ(simLaunchKernel(&kernel<&increment>, 1, 1, args, 16, s), simErrorNotSupported);
  EXPECT_EQ(simLaunchKernel(nullptr, 1, 1, args, 0, s), simErrorInvalidDeviceFunction);
  OK(simSetDevice(1));
  EXPECT_EQ(start(kernel<&increment>, 1, 1, s, p), simErrorInvalidResourceHandle);
}

TEST_F(sim, lets_kernels_reach_pinned_memory_and_no_other_of_the_host) {
  const auto s = stream();
  void* pinned = nullptr;
  OK(simMallocHost(&pinned, sizeof(double)));
  auto* x = static_cast<double*>(pinned);
  *x = 4;
  OK(start(kernel<&increment>, 1, 1, s, x));
  OK(simStreamSynchronize(s));
  EXPECT_EQ(*x, 5);
  double pageable = 4;
  OK(start(kernel<&increment>, 1, 1, s, &pageable));
  EXPECT_EQ(simStreamSynchronize(s), simErrorIllegalAddress);
  EXPECT_EQ(pageable, 4);
  OK(simDeviceReset());
  OK(simFreeHost(pinned));
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
