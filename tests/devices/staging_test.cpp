// What this file is for: copies from and to pageable memory by way of pinned buffers: exact, beside callers, bounded.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <future>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

#include "devices/gpu/gpu.hpp"
#include "devices/gpu/staged_copy.hpp"
#include "devices/sim/sim.h"

namespace {

using namespace troupe::devices;
using namespace troupe::soft_gpu;
using troupe::error;
using troupe::index_t;
using four = std::array<index_t, troupe::rank_max>;

// ---- the pieces -----------------------------------------------------------------------------------------------------

index_t last_of(const four& stride, const four& count) {
  index_t at = 0;
  for (int d = 0; d < troupe::rank_max; ++d) at += (count[d] - 1) * stride[d];
  return at;
}
// Returns strides of a box inside a larger one, so that there are gaps.
four loose(const four& count, std::mt19937& random) {
  four s;
  index_t step = 1;
  for (int d = troupe::rank_max - 1; d >= 0; --d) {
    s[d] = step;
    step *= count[d] + static_cast<index_t>(random() % 2 * 3);
  }
  return s;
}

TEST(staged_copies, are_what_a_loop_over_elements_does_whatever_the_pieces) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    four count;
    for (auto& n : count) n = static_cast<index_t>(1 + random() % 5);
    const four host_stride = loose(count, random), device_stride = loose(count, random);
    const std::size_t element = 1 + random() % 8;
    const auto e = static_cast<index_t>(element);
    const auto bytes = [&](const four& s) { return static_cast<std::size_t>((last_of(s, count) + 1) * e); };
    std::vector<std::byte> host(bytes(host_stride)), device(bytes(device_stride)), expected(device.size());
    for (auto& b : host) b = static_cast<std::byte>(random());
    for (index_t a = 0; a < count[0]; ++a)
      for (index_t b = 0; b < count[1]; ++b)
        for (index_t c = 0; c < count[2]; ++c)
          for (index_t d = 0; d < count[3]; ++d) {
            const auto at = [&](const four& s) { return (a * s[0] + b * s[1] + c * s[2] + d * s[3]) * e; };
            std::memcpy(expected.data() + at(device_stride), host.data() + at(host_stride), element);
          }

    const auto plan = gpu::plan_staged(host_stride, device_stride, count, element);
    ASSERT_EQ(plan.bytes(), count[0] * count[1] * count[2] * count[3] * e);
    const auto most = static_cast<index_t>(1 + random() % 40);
    std::vector<std::byte> back(host.size()), back_expected(host.size());
    for (index_t at = 0; at < plan.bytes();) {
      const auto piece = plan.next(at, most);
      ASSERT_EQ(piece.begin, at);
      ASSERT_GT(piece.end, at);
      ASSERT_LE(piece.end - at, most);
      at = piece.end;
      std::vector<std::byte> buffer(static_cast<std::size_t>(piece.end - piece.begin));
      plan.copy_host(piece, host.data(), buffer.data(), true);
      std::byte* from = buffer.data();
      plan.for_each_block(piece, [&](index_t, index_t to, index_t width, index_t rows) {
        for (index_t r = 0; r < rows; ++r, to += plan.outer.back().device, from += width)
          std::memcpy(device.data() + to, from, static_cast<std::size_t>(width));
      });
      EXPECT_EQ(from, buffer.data() + buffer.size());
      plan.copy_host(piece, back.data(), buffer.data(), false);
      plan.copy_host(piece, back_expected.data(), buffer.data(), false);
    }
    ASSERT_EQ(device, expected) << seed;
    std::vector<std::byte> again(static_cast<std::size_t>(plan.bytes())), once(again.size());
    plan.copy_host({0, plan.bytes()}, back.data(), again.data(), true);
    plan.copy_host({0, plan.bytes()}, host.data(), once.data(), true);
    ASSERT_EQ(again, once) << seed;
  }
}

TEST(staged_copies, know_what_lies_in_a_row_on_the_device) {
  EXPECT_TRUE(gpu::plan_staged({0, 0, 50, 1}, {0, 0, 10, 1}, {1, 1, 20, 10}, 4).is_packed_there());
  EXPECT_FALSE(gpu::plan_staged({0, 0, 10, 1}, {0, 0, 50, 1}, {1, 1, 20, 10}, 4).is_packed_there());
  EXPECT_EQ(gpu::plan_staged({0, 0, 10, 1}, {0, 0, 50, 1}, {1, 1, 0, 10}, 4).width, 0);
}

// ---- the device -----------------------------------------------------------------------------------------------------

constexpr strides line{0, 0, 0, 1};
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t rings_max = 2 * 3 * 2 * mib;  // both directions, three buffers each

sim_fault refusal(const char* call, int nth, simError_t e) { return {call, nth, -1, e, false, false, false}; }

class gpu_staging : public testing::Test {
 protected:
  accelerator& start(sim_options o) {
    o.pageable_blocks = true;
    EXPECT_EQ(simConfigure(std::move(o)), simSuccess);
    source = make_sim_source();
    device = source->open(0, 2, 0);
    return *device;
  }
  ~gpu_staging() override {
    device.reset();
    simConfigure({});
  }
  void copy_in(int lane, void* to, const std::vector<std::uint32_t>& from) {
    device->copy_in(lane, {to, 0}, line, reinterpret_cast<const std::byte*>(from.data()), line,
                    {1, 1, 1, static_cast<index_t>(from.size())}, 4);
  }
  void copy_out(int lane, std::vector<std::uint32_t>& to, void* from) {
    device->copy_out(lane, reinterpret_cast<std::byte*>(to.data()), line, {from, 0}, line,
                     {1, 1, 1, static_cast<index_t>(to.size())}, 4);
  }
  void finish(int lane) {
    const ticket t = device->record(lane, false);
    while (device->completed(lane) < t) std::this_thread::yield();
  }
  simStream_t stream(int lane) { return static_cast<simStream_t>(device->native_lane(lane)); }

  std::unique_ptr<accelerator_source> source;
  std::unique_ptr<accelerator> device;
};

std::vector<std::uint32_t> numbers(std::size_t bytes) {
  std::vector<std::uint32_t> v(bytes / 4);
  std::iota(v.begin(), v.end(), 7u);
  return v;
}

struct gate {
  std::promise<void> opened;
  std::shared_future<void> wait = opened.get_future().share();
  void block(simStream_t s) {
    ASSERT_EQ(simLaunchHostFunc(
                  s, [](void* p) { static_cast<gate*>(p)->wait.wait(); }, this),
              simSuccess);
  }
};

TEST_F(gpu_staging, brings_everything_there_and_back_with_few_pinned_bytes) {
  accelerator& a = start({.seed = 5});
  const auto there = numbers(17 * mib + 12);
  std::vector<std::uint32_t> back(there.size());
  void* const p = a.allocate(0, there.size() * 4);
  copy_in(0, p, there);
  copy_out(0, back, p);  // in order behind it
  finish(0);
  EXPECT_EQ(back, there);
  std::size_t now = 0, most = 0;
  ASSERT_EQ(simPinnedBytes(&now, &most), simSuccess);
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, rings_max);
}

// With copies that hold their caller this would not end.
TEST_F(gpu_staging, does_not_hold_its_caller) {
  accelerator& a = start({});
  const auto there = numbers(9 * mib);
  std::vector<std::uint32_t> back(there.size());
  void* const p = a.allocate(0, there.size() * 4);
  finish(0);
  gate g;
  g.block(stream(0));
  copy_in(0, p, there);
  copy_out(0, back, p);
  const ticket end = a.record(0, false);
  finish(1);  // another lane goes on
  EXPECT_LT(a.completed(0), end);
  EXPECT_NE(back, there);
  g.opened.set_value();
  finish(0);
  EXPECT_EQ(back, there);
}

TEST_F(gpu_staging, another_lane_that_waits_for_its_ticket_finds_all_of_it) {
  accelerator& a = start({.seed = 3});
  const auto there = numbers(5 * mib);
  std::vector<std::uint32_t> back(there.size());
  void* const p = a.allocate(0, there.size() * 4);
  for (int round = 0; round < 5; ++round) {
    std::fill(back.begin(), back.end(), 0u);
    copy_in(0, p, there);
    a.wait(1, 0, a.record(0, false));
    copy_out(1, back, p);
    finish(1);
    ASSERT_EQ(back, there);
    a.wait(0, 1, a.recorded(1));
  }
}

TEST_F(gpu_staging, is_not_for_memory_that_is_pinned) {
  // Staging needs a function of the host's.
  accelerator& a = start({.faults = {refusal("LaunchHostFunc", 1, simErrorInvalidValue)}});
  void* const p = a.allocate(0, mib);
  std::byte* const pinned = a.allocate_pinned(mib);
  a.copy_in(0, {p, 0}, line, pinned, line, {1, 1, 1, static_cast<index_t>(mib)}, 1);
  finish(0);
  auto mine = numbers(mib);
  const auto pinning = source->pinning(0);
  ASSERT_TRUE(pinning);
  using outcome = page_pinning::outcome;
  ASSERT_EQ(pinning->pin(reinterpret_cast<std::byte*>(mine.data()), mib), outcome::pinned);
  EXPECT_EQ(pinning->pin(reinterpret_cast<std::byte*>(mine.data()), mib), outcome::was_pinned);
  copy_in(0, p, mine);
  finish(0);
  pinning->unpin(reinterpret_cast<std::byte*>(mine.data()));
  EXPECT_THROW(copy_in(0, p, mine), error);  // the first function
  a.deallocate_pinned(pinned);
}

// CUDA refuses to copy across the end of a registration, even where the next one begins there.
TEST_F(gpu_staging, is_for_memory_that_was_pinned_in_pieces) {
  accelerator& a = start({.seed = 23});
  const auto pinning = source->pinning(0);
  ASSERT_TRUE(pinning);
  for (const std::size_t bytes : {mib / 16, 3 * mib}) {
    auto there = numbers(bytes);
    std::vector<std::uint32_t> back(there.size());
    auto *const first = reinterpret_cast<std::byte*>(there.data()), *const half = first + bytes / 2;
    using outcome = page_pinning::outcome;
    ASSERT_EQ(pinning->pin(first, bytes / 2), outcome::pinned);
    ASSERT_EQ(pinning->pin(half, bytes - bytes / 2), outcome::pinned);
    void* const p = a.allocate(0, bytes);
    ASSERT_EQ(simMemcpyAsync(p, first, bytes, simMemcpyHostToDevice, stream(0)), simErrorInvalidValue);
    (void)simGetLastError();
    copy_in(0, p, there);
    copy_out(0, back, p);
    finish(0);
    EXPECT_EQ(back, there);
    std::fill(there.begin(), there.end(), 0u);
    copy_out(0, there, p);
    finish(0);
    EXPECT_EQ(back, there);
    pinning->unpin(first);
    pinning->unpin(half);
    a.deallocate(0, p);
  }
}

TEST_F(gpu_staging, without_room_for_buffers_copies_all_the_same) {
  accelerator& a = start({.faults = {refusal("MallocHost", 2, simErrorMemoryAllocation)}});
  const auto there = numbers(5 * mib);
  std::vector<std::uint32_t> back(there.size());
  void* const p = a.allocate(0, there.size() * 4);
  copy_in(0, p, there);
  copy_out(0, back, p);
  finish(0);
  EXPECT_EQ(back, there);
}

TEST_F(gpu_staging, a_closed_device_touches_the_hosts_memory_no_more) {
  accelerator& a = start({.copy_gb_per_s = 0.5, .faults = {{"MemcpyAsync", 3, -1, simErrorLaunchFailure, true}}});
  auto gone = std::make_unique<std::vector<std::uint32_t>>(numbers(16 * mib));
  void* const p = a.allocate(0, 16 * mib);
  try {
    copy_in(0, p, *gone);
    copy_out(0, *gone, p);
    finish(0);
    FAIL() << "the device has not failed";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), troupe::errc::device_failed);
  }
  device.reset();
  gone.reset();  // ASan would see it
  device = source->open(0, 2, 0);
  const auto there = numbers(3 * mib);
  std::vector<std::uint32_t> back(there.size());
  void* const q = device->allocate(0, there.size() * 4);
  copy_in(0, q, there);
  copy_out(0, back, q);
  finish(0);
  EXPECT_EQ(back, there);
}

// ---- small copies ---------------------------------------------------------------------------------------------------

// A function of the host's costs its stream more than a small copy.
TEST_F(gpu_staging, small_copies_call_no_function_of_the_hosts) {
  accelerator& a = start({.seed = 11, .faults = {refusal("LaunchHostFunc", 1, simErrorInvalidValue)}});
  std::mt19937 random(29);
  void* const p = a.allocate(0, mib);
  for (int round = 0; round < 200; ++round) {
    // A box of the host's rows, packed on the device.
    const index_t rows = 1 + static_cast<index_t>(random() % 60), width = 1 + static_cast<index_t>(random() % 250);
    const index_t pitch = width + static_cast<index_t>(random() % 100);
    const auto there = numbers(static_cast<std::size_t>(rows * pitch) * 4);
    std::vector<std::uint32_t> back(there.size(), 0);
    const strides host{0, 0, pitch, 1}, packed{0, 0, width, 1};
    const std::array<index_t, 4> count{1, 1, rows, width};
    a.copy_in(0, {p, 0}, packed, reinterpret_cast<const std::byte*>(there.data()), host, count, 4);
    a.wait(1, 0, a.record(0, false));
    a.copy_out(1, reinterpret_cast<std::byte*>(back.data()), host, {p, 0}, packed, count, 4);
    finish(1);
    for (index_t y = 0; y < rows; ++y)
      for (index_t x = 0; x < pitch; ++x) {
        const auto at = static_cast<std::size_t>(y * pitch + x);
        ASSERT_EQ(back[at], x < width ? there[at] : 0) << rows << " x " << width << " of " << pitch;
      }
    a.wait(0, 1, a.recorded(1));
  }
}

// What finds no room in the ring goes the way of large copies, and nothing is lost or overtaken.
TEST_F(gpu_staging, more_small_copies_than_the_ring_holds_all_arrive) {
  accelerator& a = start({.seed = 13});
  std::mt19937 random(31);
  constexpr std::size_t n = 400;
  void* const p = a.allocate(0, n * mib / 16);
  std::vector<std::vector<std::uint32_t>> there, back(n);
  gate g;
  g.block(stream(0));
  for (std::size_t i = 0; i < n; ++i) {
    there.push_back(numbers(4 + random() % (mib / 16)));
    there.back()[0] = static_cast<std::uint32_t>(i);
    back[i].resize(there.back().size());
    copy_in(0, static_cast<std::byte*>(p) + i * mib / 16, there[i]);
  }
  for (std::size_t i = 0; i < n; ++i) copy_out(0, back[i], static_cast<std::byte*>(p) + i * mib / 16);
  EXPECT_EQ(back[0][0], 0u);
  g.opened.set_value();
  finish(0);
  EXPECT_EQ(back, there);
}

TEST_F(gpu_staging, a_small_copy_that_has_not_arrived_does_not_overwrite_a_later_large_one) {
  accelerator& a = start({});
  const auto old = numbers(mib / 32);
  auto later = numbers(mib);
  for (auto& x : later) x += 1;
  void* const p = a.allocate(0, mib / 32);
  void* const q = a.allocate(0, mib);
  copy_in(0, p, old);
  copy_in(0, q, later);
  finish(0);
  std::vector<std::uint32_t> back(later.size(), 0);
  a.copy_out(0, reinterpret_cast<std::byte*>(back.data()), line, {p, 0}, line,
             {1, 1, 1, static_cast<index_t>(old.size())}, 4);
  a.wait(1, 0, a.record(0, false));
  copy_out(1, back, q);
  finish(1);
  finish(0);
  EXPECT_EQ(back, later);
}

TEST_F(gpu_staging, of_two_small_copies_to_the_same_memory_the_later_one_stays) {
  accelerator& a = start({.seed = 29});
  const auto old = numbers(mib / 32);
  auto later = old;
  for (auto& x : later) x += 1;
  void* const p = a.allocate(0, mib / 32);
  void* const q = a.allocate(0, mib / 32);
  copy_in(0, p, old);
  copy_in(0, q, later);
  a.wait(1, 0, a.record(0, false));
  for (int round = 0; round < 20; ++round)
    for (const bool pinned : {false, true}) {
      std::vector<std::uint32_t> back(old.size(), 0);
      auto* const bytes = reinterpret_cast<std::byte*>(back.data());
      copy_out(0, back, p);
      a.wait(1, 0, a.record(0, false));
      const auto pinning = source->pinning(0);
      if (pinned) {
        ASSERT_EQ(pinning->pin(bytes, back.size() * 4), page_pinning::outcome::pinned);
      }
      copy_out(1, back, q);
      finish(1);
      finish(0);
      EXPECT_EQ(back, later) << pinned;
      if (pinned) pinning->unpin(bytes);
      a.wait(0, 1, a.recorded(1));
    }
}

TEST_F(gpu_staging, a_small_copy_arrives_before_a_lane_that_has_waited_for_it_is_seen_to_end) {
  accelerator& a = start({.seed = 17});
  void* const p = a.allocate(0, mib / 32);
  const auto there = numbers(mib / 32);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint32_t> back(there.size(), 0);
    copy_in(0, p, there);
    copy_out(0, back, p);
    a.wait(1, 0, a.record(0, false));
    finish(1);
    ASSERT_EQ(back, there);
  }
}

TEST_F(gpu_staging, closing_brings_small_copies_home_but_for_those_of_a_device_that_failed) {
  accelerator& a = start({});
  void* const p = a.allocate(0, mib / 32);
  const auto there = numbers(mib / 32);
  std::vector<std::uint32_t> back(there.size(), 0);
  copy_in(0, p, there);
  copy_out(0, back, p);
  device.reset();
  EXPECT_EQ(back, there);

  start({.faults = {{"MemcpyAsync", 3, -1, simErrorLaunchFailure, true}}});
  auto gone = std::make_unique<std::vector<std::uint32_t>>(there);
  void* const q = device->allocate(0, mib / 32);
  copy_in(0, q, there);
  copy_out(0, *gone, q);
  EXPECT_THROW(
      {
        copy_in(0, q, there);
        finish(0);
      },
      error);
  gone.reset();  // ASan would see it
  device.reset();
}

TEST(gpu_pinning, is_offered_only_where_copies_gain_by_it) {
  ASSERT_EQ(simConfigure({}), simSuccess);
  EXPECT_FALSE(make_sim_source()->pinning(0));
}

}  // namespace
