// What this file is for: kernels on the software GPU: their numbers, barriers, modules, and what breaks them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "sim_suite.hpp"

namespace {

using namespace sim_suite;
using testing::HasSubstr;

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

}  // namespace
