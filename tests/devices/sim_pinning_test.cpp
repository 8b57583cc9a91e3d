// What this file is for: the software GPU told to treat pageable memory as CUDA does, and memory pinned where it is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "sim_suite.hpp"

namespace {

using namespace troupe::soft_gpu;
using sim_suite::gate;

class sim_pinning : public testing::Test {
 protected:
  void start(sim_options o) {
    ASSERT_EQ(simConfigure(std::move(o)), simSuccess);
    ASSERT_EQ(simStreamCreateWithFlags(&lane, simStreamNonBlocking), simSuccess);
    ASSERT_EQ(simMalloc(&there, bytes), simSuccess);
  }
  ~sim_pinning() override {
    simStreamDestroy(lane);
    simConfigure({});
  }
  simError_t copy_in(const void* from) { return simMemcpyAsync(there, from, bytes, simMemcpyHostToDevice, lane); }
  bool is_busy() const { return simStreamQuery(lane) == simErrorNotReady; }
  static std::size_t pinned_now() {
    std::size_t now = 0, most = 0;
    EXPECT_EQ(simPinnedBytes(&now, &most), simSuccess);
    return now;
  }

  static constexpr std::size_t bytes = 4096;
  simStream_t lane = nullptr;
  void* there = nullptr;
};

TEST_F(sim_pinning, copies_of_pageable_memory_hold_their_caller_where_that_is_asked_for) {
  start({.pageable_blocks = true});
  const std::vector<char> host(bytes);
  std::atomic<bool> passed = false;
  ASSERT_EQ(simLaunchHostFunc(
                lane, [](void* p) { static_cast<std::atomic<bool>*>(p)->store(true); }, &passed),
            simSuccess);
  ASSERT_EQ(copy_in(host.data()), simSuccess);
  EXPECT_TRUE(passed);  // what came before it has run as well
  EXPECT_FALSE(is_busy());
}

TEST_F(sim_pinning, copies_of_pinned_memory_never_hold_their_caller) {
  start({.pageable_blocks = true});
  std::vector<char> host(bytes);
  ASSERT_EQ(simHostRegister(host.data(), bytes, simHostRegisterPortable), simSuccess);
  gate g;
  ASSERT_EQ(g.block(lane), simSuccess);
  ASSERT_EQ(copy_in(host.data()), simSuccess);
  EXPECT_TRUE(is_busy());
  g.open();
  ASSERT_EQ(simStreamSynchronize(lane), simSuccess);
  EXPECT_EQ(simHostUnregister(host.data()), simSuccess);
}

TEST_F(sim_pinning, by_default_no_copy_holds_its_caller) {
  start({});
  const std::vector<char> host(bytes);
  gate g;
  ASSERT_EQ(g.block(lane), simSuccess);
  ASSERT_EQ(copy_in(host.data()), simSuccess);
  EXPECT_TRUE(is_busy());
  g.open();
  ASSERT_EQ(simStreamSynchronize(lane), simSuccess);
}

TEST_F(sim_pinning, copies_of_pageable_memory_are_slower_where_that_is_asked_for) {
  start({.pageable_gb_per_s = 0.001});
  const std::vector<char> host(bytes);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(copy_in(host.data()), simSuccess);
  ASSERT_EQ(simStreamSynchronize(lane), simSuccess);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(4096));
}

TEST_F(sim_pinning, says_of_every_address_what_it_is) {
  start({});
  std::vector<char> host(bytes);
  simPointerAttributes a{};
  ASSERT_EQ(simPointerGetAttributes(&a, host.data()), simSuccess);
  EXPECT_EQ(a.type, simMemoryTypeUnregistered);
  ASSERT_EQ(simHostRegister(host.data(), bytes, 0), simSuccess);
  EXPECT_EQ(pinned_now(), bytes);
  ASSERT_EQ(simPointerGetAttributes(&a, host.data() + bytes - 1), simSuccess);
  EXPECT_EQ(a.type, simMemoryTypeHost);
  ASSERT_EQ(simPointerGetAttributes(&a, there), simSuccess);
  EXPECT_EQ(a.type, simMemoryTypeDevice);
  EXPECT_EQ(a.device, 0);
  EXPECT_EQ(simHostUnregister(host.data()), simSuccess);
  EXPECT_EQ(pinned_now(), 0u);
}

TEST_F(sim_pinning, refuses_what_is_pinned_already_or_not_at_all) {
  start({});
  std::vector<char> host(bytes);
  EXPECT_EQ(simHostRegister(nullptr, 1, 0), simErrorInvalidValue);
  EXPECT_EQ(simHostRegister(host.data(), 0, 0), simErrorInvalidValue);
  ASSERT_EQ(simHostRegister(host.data() + 100, 100, 0), simSuccess);
  EXPECT_EQ(simHostRegister(host.data(), 101, 0), simErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(simHostRegister(host.data() + 199, 100, 0), simErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(simHostRegister(host.data() + 200, 100, 0), simSuccess);
  EXPECT_EQ(simHostUnregister(host.data()), simErrorHostMemoryNotRegistered);
  EXPECT_EQ(simFreeHost(host.data() + 100), simErrorInvalidValue);  // not what simMallocHost gave
  EXPECT_EQ(simHostUnregister(host.data() + 100), simSuccess);
  EXPECT_EQ(simHostUnregister(host.data() + 200), simSuccess);
}

}  // namespace
