// What this file is for: tasks that fit into a device's memory only by pieces, and those that do not fit at all.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;
using troupe::index_t;
using word = std::uint32_t;

// b = the sum of a over a square around.
constexpr auto blur = kernel<in<word, 2>, out<word, 2>, int>("blur").on(gpu, source{R"(
GPU_KERNEL void blur(GPU_IN(unsigned, a), GPU_OUT(unsigned, b), const int r) {
  const long y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1), x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0);
  if (y >= GPU_HI(b, 0) || x >= GPU_HI(b, 1)) return;
  unsigned sum = 0;
  for (long v = y - r; v <= y + r; ++v)
    for (long u = x - r; u <= x + r; ++u) sum += GPU_AT2(a, v, u);
  GPU_AT2(b, y, x) = sum;
})",
                                                                                    "blur"});

options with_memory(std::uint64_t bytes) {
  options o;
  o.threads = 1;
  o.devices = {{"sim:0", bytes}};
  o.eager_devices = true;
  o.cost_cache = "none";
  return o;
}

word number(index_t y, index_t x) { return static_cast<word>(y * 131 + x * 7 + 1); }

array<word, 2> numbers(runtime& rt, index_t height, index_t width, tile_shape<2> t) {
  auto a = rt.array<word>({height, width}, t, "numbers");
  auto v = a.write();
  for (index_t y = 0; y < height; ++y)
    for (index_t x = 0; x < width; ++x) v(y, x) = number(y, x);
  return a;
}

executor_report device(const runtime& rt) { return rt.executors(scope::gpu()).at(0); }

TEST(gpu_room, a_box_comes_by_itself_where_its_tile_has_no_room) {
  runtime rt(with_memory(64 << 10));
  auto a = numbers(rt, 160, 128, tiles(160, 128));  // 80 KiB in one tile
  auto b = rt.array<word>({10, 128}, tiles(10, 128));
  // 45 of its 80 KiB, so the whole tile would be fetched
  rt.spawn(blur, read(a.sub({{40, 0}, {130, 128}})), write(b), 0).get();
  const auto v = b.read();
  for (index_t y = 0; y < 10; ++y)
    for (index_t x = 0; x < 128; ++x) ASSERT_EQ(v(y, x), number(40 + y, x));
  EXPECT_LE(device(rt).memory_used_max, 64u << 10);
}

TEST(gpu_room, a_window_with_a_border_comes_by_itself_where_its_tiles_have_no_room) {
  runtime rt(with_memory(48 << 10));  // three tiles; a chunk with its frame takes more than two
  auto a = numbers(rt, 128, 128, tiles(64, 64));
  auto b = rt.array<word>({128, 128}, tiles(64, 64)), c = rt.array<word>({128, 128}, tiles(64, 64));
  rt.for_each(grid(128, 128).chunks(64, 64), blur, read(a, window(1, 1).clamp()), write(b), 1);
  rt.for_each(grid(128, 128).chunks(64, 64), blur, read(b, window(1, 1).wrap()), write(c), 1);  // what is dirty there
  const auto at = [](index_t y, index_t x) {
    word sum = 0;
    for (index_t v = y - 1; v <= y + 1; ++v)
      for (index_t u = x - 1; u <= x + 1; ++u)
        sum += number(std::clamp<index_t>(v, 0, 127), std::clamp<index_t>(u, 0, 127));
    return sum;
  };
  const auto v = c.read();
  for (index_t y = 0; y < 128; ++y)
    for (index_t x = 0; x < 128; ++x) {
      word expected = 0;
      for (index_t dy = 127; dy <= 129; ++dy)
        for (index_t dx = 127; dx <= 129; ++dx) expected += at((y + dy) % 128, (x + dx) % 128);
      ASSERT_EQ(v(y, x), expected) << y << ", " << x;
    }
  EXPECT_LE(device(rt).memory_used_max, 48u << 10);
}

TEST(gpu_room, a_window_that_can_never_fit_is_refused_at_spawn_with_both_sizes) {
  runtime rt(with_memory(64 << 10));
  auto a = numbers(rt, 128, 128, tiles(64, 64));
  auto b = rt.array<word>({16, 16}, tiles(16, 16));
  try {
    rt.spawn(blur, read(a), write(b), 0);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory);
    EXPECT_NE(std::string(e.what()).find(std::to_string(128 * 128 * 4 + 16 * 16 * 4)), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(std::to_string(64 << 10)), std::string::npos) << e.what();
  }
}

TEST(gpu_room, a_part_that_can_never_fit_is_refused_at_spawn_with_both_sizes) {
  runtime rt(with_memory(32 << 10));
  auto a = numbers(rt, 16, 16, tiles(16, 16));
  auto b = rt.array<word>({128, 128}, tiles(128, 128));
  try {
    rt.spawn(blur, read(a), write(b.sub({{0, 0}, {100, 100}})), 0);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory);
    EXPECT_NE(std::string(e.what()).find(std::to_string(16 * 16 * 4 + 100 * 100 * 4)), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(std::to_string(32 << 10)), std::string::npos) << e.what();
  }
}

// The room of each box is rounded up to what a device gives at least, which nobody knows at `spawn`.
TEST(gpu_room, a_task_for_which_there_turns_out_to_be_no_room_names_what_it_takes) {
  runtime rt(with_memory(1280));
  auto a = numbers(rt, 13, 13, tiles(13, 13));       // 676 bytes: 768
  auto b = rt.array<word>({12, 12}, tiles(12, 12));  // 576 bytes: 768
  auto f = rt.spawn(blur, read(a), write(b), 0);
  try {
    f.get();
    FAIL();
  } catch (const task_failed& e) {
    EXPECT_NE(std::string(e.what()).find("1536"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("1280"), std::string::npos) << e.what();
  }
}

constexpr auto add_one = kernel<inout<word, 1>>("gpu_room.add_one")
                             .on(cpu,
                                 [](view<word, 1> a) {
                                   for (auto i = a.lo(0); i < a.hi(0); ++i) ++a(i);
                                 })
                             .on(gpu, source{"GPU_KERNEL void add_one(GPU_INOUT(unsigned, a)) {"
                                             "  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);"
                                             "  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += 1;"
                                             "}",
                                             "add_one"});

// No scope keeps it off the device, whose memory is too small.
TEST(gpu_room, a_task_that_does_not_fit_on_the_device_runs_on_the_cores) {
  runtime rt(options{.threads = 1, .devices = {{.name = "sim:0", .memory_bytes = 64 << 10}}, .cost_cache = "none"});
  auto a = rt.filled<word>({100'000}, tiles(100'000), 0);
  for (int i = 0; i < 20; ++i) rt.spawn(add_one, update(a));
  const auto v = a.read();
  EXPECT_EQ(v(0), 20u);
  EXPECT_EQ(v(99'999), 20u);
}

}  // namespace
