// What this file is for: a fresh software GPU for each test of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/sim/sim.h"

#define OK(call) ASSERT_EQ(call, simSuccess)

namespace sim_suite {

using namespace troupe::soft_gpu;

inline void increment(double* p) { p[0] += 1; }

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
inline void set_flag(void* f) { *static_cast<std::atomic<bool>*>(f) = true; }

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

}  // namespace sim_suite
