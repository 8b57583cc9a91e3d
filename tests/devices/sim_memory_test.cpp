// What this file is for: memory of the software GPU: apart from the host's, filled with NaN, bounded, its ends watched.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sim_suite.hpp"

namespace {

using namespace sim_suite;
using testing::HasSubstr;

void writes_beyond(double* p, int n) { p[n] = 1; }

using sim_death = sim;

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

}  // namespace
