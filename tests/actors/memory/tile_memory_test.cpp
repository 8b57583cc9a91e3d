// What this file is for: slabs for tiles: pinned within a limit, used again, given back, left alone where refused.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/tile_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/actors/placement/stage.hpp"

namespace {

using namespace troupe::detail;
using troupe::devices::page_pinning;

constexpr std::size_t mib = std::size_t{1} << 20;

// The memory that a driver would know of.
struct driver {
  std::mutex guard;
  std::map<std::byte*, std::size_t> pinned;
  std::size_t bytes = 0, most = 0;
  int calls = 0, refusals = 0;
  std::size_t gives = SIZE_MAX;
};
class pinning final : public page_pinning {
 public:
  explicit pinning(driver& d) : at_(d) {}
  outcome pin(std::byte* p, std::size_t bytes) override {
    const std::lock_guard hold(at_.guard);
    ++at_.calls;
    if (at_.pinned.contains(p)) return outcome::was_pinned;
    if (bytes > at_.gives - std::min(at_.gives, at_.bytes)) {
      ++at_.refusals;
      return outcome::refused;
    }
    at_.pinned[p] = bytes;
    at_.most = std::max(at_.most, at_.bytes += bytes);
    return outcome::pinned;
  }
  void unpin(std::byte* p) noexcept override {
    const std::lock_guard hold(at_.guard);
    at_.bytes -= at_.pinned.at(p);
    at_.pinned.erase(p);
  }

 private:
  driver& at_;
};

class tiles_in_memory : public testing::Test {
 protected:
  void pin(std::uint64_t bytes_max, int kinds = 1) {
    std::vector<std::unique_ptr<page_pinning>> all;
    for (int i = 0; i < kinds; ++i) all.push_back(std::make_unique<pinning>(drivers[i]));
    memory.pin_for(std::move(all), bytes_max);
  }
  bool is_pinned(std::byte* p, std::size_t bytes, int kind = 0) {
    const auto& all = drivers[kind].pinned;
    const auto after = all.upper_bound(p);
    return after != all.begin() && p + bytes <= std::prev(after)->first + std::prev(after)->second;
  }
  std::byte* take(std::size_t bytes) {
    std::byte* const p = memory.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0u);
    std::memset(p, 0x5a, bytes);
    return p;
  }

  driver drivers[2];
  test::plain_device host;
  tile_memory memory{host};
};

TEST_F(tiles_in_memory, come_from_the_host_where_no_device_gains) {
  std::byte* const p = take(1000);
  EXPECT_EQ(memory.pinned_bytes(), 0u);
  EXPECT_EQ(memory.allocate_pinned(1000), nullptr);
  memory.deallocate(p, 1000);
}

TEST_F(tiles_in_memory, share_slabs_and_leave_them_for_the_next) {
  pin(100 * mib);
  std::vector<std::byte*> all;
  for (int i = 0; i < 100; ++i) all.push_back(take(1000));
  for (std::byte* p : all) EXPECT_TRUE(is_pinned(p, 1000));
  EXPECT_EQ(drivers[0].pinned.size(), 1u);
  for (std::byte* p : all) memory.deallocate(p, 1000);
  EXPECT_EQ(take(1000), all.front());
  EXPECT_EQ(drivers[0].calls, 1);
  memory.deallocate(all.front(), 1000);
}

TEST_F(tiles_in_memory, are_pinned_for_every_kind_of_device) {
  pin(100 * mib, 2);
  std::byte* const p = take(5 * mib);
  EXPECT_TRUE(is_pinned(p, 5 * mib, 0));
  EXPECT_TRUE(is_pinned(p, 5 * mib, 1));
  memory.deallocate(p, 5 * mib);
}

TEST_F(tiles_in_memory, beyond_the_limit_are_pageable) {
  pin(10 * mib);
  std::vector<std::byte*> all;
  int pinned = 0;
  for (int i = 0; i < 20; ++i) {
    all.push_back(take(mib));
    pinned += is_pinned(all.back(), mib);
  }
  EXPECT_EQ(pinned, 10);
  EXPECT_LE(drivers[0].most, 10 * mib);
  EXPECT_EQ(memory.pinned_bytes(), drivers[0].bytes);
  for (std::byte* p : all) memory.deallocate(p, mib);
  // No slab is large enough for this one: those without tiles make room.
  std::byte* const large = take(9 * mib);
  EXPECT_TRUE(is_pinned(large, 9 * mib));
  EXPECT_LE(drivers[0].most, 10 * mib);
  memory.deallocate(large, 9 * mib);
}

TEST_F(tiles_in_memory, are_pageable_where_the_driver_says_no_and_it_is_not_asked_each_time) {
  drivers[0].gives = 6 * mib;
  pin(100 * mib);
  std::vector<std::byte*> all;
  for (int i = 0; i < 50; ++i) all.push_back(take(mib));
  EXPECT_LE(drivers[0].most, 6 * mib);
  EXPECT_GE(drivers[0].most, 4 * mib);
  EXPECT_EQ(drivers[0].refusals, 1);
  // Opened anew it may give more.
  drivers[0].gives = SIZE_MAX;
  memory.pin_again();
  all.push_back(take(20 * mib));
  EXPECT_TRUE(is_pinned(all.back(), 20 * mib));
  memory.deallocate(all.back(), 20 * mib);
  all.pop_back();
  for (std::byte* p : all) memory.deallocate(p, mib);
}

TEST_F(tiles_in_memory, give_their_slabs_back_when_it_is_tidied) {
  pin(200 * mib);
  std::byte *const a = take(20 * mib), *const b = take(30 * mib);
  memory.deallocate(a, 20 * mib);
  EXPECT_GT(drivers[0].bytes, 30 * mib);
  memory.tidy();
  EXPECT_EQ(drivers[0].bytes, 30 * mib);  // what has a tile stays
  EXPECT_EQ(memory.pinned_bytes(), 30 * mib);
  memory.deallocate(b, 30 * mib);
  memory.tidy();
  EXPECT_EQ(drivers[0].bytes, 0u);
}

TEST_F(tiles_in_memory, outlive_the_devices) {
  pin(100 * mib);
  std::byte* const p = take(mib);
  memory.unpin_all();
  EXPECT_EQ(drivers[0].bytes, 0u);
  EXPECT_EQ(memory.pinned_bytes(), 0u);
  EXPECT_EQ(p[mib - 1], std::byte{0x5a});
  memory.deallocate(p, mib);
  std::byte* const q = take(mib);
  EXPECT_EQ(drivers[0].bytes, 0u);
  memory.deallocate(q, mib);
}

TEST_F(tiles_in_memory, never_overlap_whoever_takes_and_gives) {
  pin(24 * mib);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      struct tile {
        std::byte *begin, mark;
        std::size_t bytes;
      };
      std::vector<tile> mine;
      const auto drop = [&](std::size_t i) {
        const tile one = mine[i];
        for (std::size_t k = 0; k < one.bytes; k += 61) ASSERT_EQ(one.begin[k], one.mark);
        memory.deallocate(one.begin, one.bytes);
        mine[i] = mine.back();
        mine.pop_back();
      };
      for (int i = 0; i < 2000; ++i) {
        if (mine.size() > 20 || (random() % 2 && !mine.empty())) {
          drop(random() % mine.size());
          continue;
        }
        const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? mib : 5000);
        const auto mark = static_cast<std::byte>(random());
        std::byte* const p = memory.allocate(bytes);
        std::memset(p, static_cast<int>(mark), bytes);
        mine.push_back({p, mark, bytes});
        if (i % 500 == 0) memory.tidy();
      }
      while (!mine.empty()) drop(0);
    });
  for (auto& t : threads) t.join();
  EXPECT_LE(drivers[0].most, 24 * mib);
  memory.tidy();
  EXPECT_EQ(drivers[0].bytes, 0u);
}

// ---- memory of others -----------------------------------------------------------------------------------------------

TEST_F(tiles_in_memory, memory_of_others_is_pinned_for_every_kind_and_beyond_the_limit) {
  pin(0, 2);
  std::vector<std::byte> mine(100'000);
  const auto [number, gains] = memory.pin_outside(mine.data(), mine.size());
  EXPECT_TRUE(gains);
  EXPECT_NE(number, 0u);
  for (const int kind : {0, 1}) EXPECT_TRUE(is_pinned(mine.data(), mine.size(), kind));
  EXPECT_EQ(memory.pinned_bytes(), 0u) << "of the runtime's own";
  memory.unpin_outside(number);
  memory.unpin_outside(number);
  for (const int kind : {0, 1}) EXPECT_EQ(drivers[kind].bytes, 0u);
}

TEST_F(tiles_in_memory, what_somebody_else_has_pinned_stays_pinned) {
  pin(0, 2);
  std::vector<std::byte> mine(1'000);
  drivers[1].pinned[mine.data()] = mine.size();
  drivers[1].bytes = mine.size();
  const auto [number, gains] = memory.pin_outside(mine.data(), mine.size());
  const auto [second, gains_too] = memory.pin_outside(mine.data(), mine.size());
  EXPECT_TRUE(gains && gains_too);
  EXPECT_EQ(second, 0u) << "there is nothing to undo";
  memory.unpin_outside(second);
  EXPECT_TRUE(is_pinned(mine.data(), mine.size(), 0));
  memory.unpin_outside(number);
  EXPECT_EQ(drivers[0].bytes, 0u);
  EXPECT_EQ(drivers[1].bytes, mine.size());
}

TEST_F(tiles_in_memory, a_driver_that_refuses_memory_of_others_is_no_error) {
  pin(0);
  drivers[0].gives = 10;
  std::vector<std::byte> mine(1'000);
  EXPECT_EQ(memory.pin_outside(mine.data(), mine.size()), std::make_pair(0UL, false));
  EXPECT_EQ(memory.pin_outside(mine.data(), 0), std::make_pair(0UL, false));
}

TEST_F(tiles_in_memory, memory_of_others_is_pinned_again_and_let_go_with_the_devices) {
  pin(0);
  std::vector<std::byte> mine(1'000);
  const auto number = memory.pin_outside(mine.data(), mine.size()).first;
  drivers[0].pinned.clear();  // a reset
  drivers[0].bytes = 0;
  memory.pin_again();
  EXPECT_TRUE(is_pinned(mine.data(), mine.size()));
  memory.unpin_all();
  EXPECT_EQ(drivers[0].bytes, 0u);
  memory.unpin_outside(number);
  EXPECT_EQ(memory.pin_outside(mine.data(), mine.size()).first, 0u);
}

}  // namespace
