// What this file is for: windows, slices and borders on devices: the same elements as on cores, from tiles that are there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;
using troupe::index_t;

// b = a weighted sum over the whole window, so that each element's place matters. Views that end at the array's edge
// (clip) are summed as far as they go.
constexpr auto text = R"(
GPU_KERNEL void mix(GPU_IN(TYPE, a), GPU_OUT(TYPE, b), const int ry, const int rx) {
  const long y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1), x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0);
  if (y >= GPU_HI(b, 0) || x >= GPU_HI(b, 1)) return;
  TYPE sum = 0;
  for (long v = y - ry; v <= y + ry; ++v)
    for (long u = x - rx; u <= x + rx; ++u)
      if (v >= GPU_LO(a, 0) && v < GPU_HI(a, 0) && u >= GPU_LO(a, 1) && u < GPU_HI(a, 1))
        sum = sum * 3 + GPU_AT2(a, v, u);
  GPU_AT2(b, y, x) = sum;
})";
template <class T>
void mix_on_cpu(view<const T, 2> a, view<T, 2> b, int ry, int rx) {
  for (index_t y = b.lo(0); y < b.hi(0); ++y)
    for (index_t x = b.lo(1); x < b.hi(1); ++x) {
      T sum = 0;
      for (index_t v = y - ry; v <= y + ry; ++v)
        for (index_t u = x - rx; u <= x + rx; ++u)
          if (v >= a.lo(0) && v < a.hi(0) && u >= a.lo(1) && u < a.hi(1)) sum = static_cast<T>(sum * 3 + a(v, u));
      b(y, x) = sum;
    }
}

template <class T>
const char* typed_text();
#define TYPED(T, name)                                                     \
  template <>                                                              \
  const char* typed_text<T>() {                                            \
    static const std::string s = "#define TYPE " name + std::string(text); \
    return s.c_str();                                                      \
  }
TYPED(std::uint8_t, "unsigned char")
TYPED(std::uint16_t, "unsigned short")
TYPED(std::uint32_t, "unsigned int")
TYPED(std::uint64_t, "unsigned long")
#undef TYPED

class gpu_random_windows : public testing::TestWithParam<unsigned> {};

// A stencil back and forth between two arrays, on one device, two, or devices and cores, beside the cores alone.
template <class T>
void compare(std::mt19937& random, const char* name) {
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  const auto mix =
      kernel<in<T, 2>, out<T, 2>, int, int>(name).on(cpu, &mix_on_cpu<T>).on(gpu, source{typed_text<T>(), "mix"});
  const index_t height = pick(1, 24), width = pick(1, 24);
  const tile_shape<2> shape = tiles(pick(1, 12), pick(1, 12));
  const index_t chunk_y = pick(1, 12), chunk_x = pick(1, 12);
  const int ry = pick(0, 3), rx = pick(0, 3);
  auto mapper = window(ry, rx);
  switch (pick(0, 3)) {
    case 0:
      mapper = mapper.clamp();
      break;
    case 1:
      mapper = mapper.wrap();
      break;
    case 2:
      mapper = mapper.fill(T{7});
      break;
    default:;
  }
  const bool by_tiles = pick(0, 1) != 0;
  options o;
  o.threads = 2;
  o.devices = {{"sim:0", 64 << 10}, {"sim:1"}};
  runtime rt(o);
  const scope places[] = {scope::executor("sim:0"), scope::gpu(), scope::any(), scope::cpu()};
  std::vector<T> results[2];
  for (int run = 0; run < 2; ++run) {
    array<T, 2> a = rt.template array<T>({height, width}, shape), b = rt.template array<T>({height, width}, shape);
    {
      auto v = a.write();
      for (index_t y = 0; y < height; ++y)
        for (index_t x = 0; x < width; ++x) v(y, x) = static_cast<T>(y * 31 + x * 7 + 1);
    }
    for (int step = 0; step < 5; ++step) {
      task_options where;
      where.where = run == 0 ? scope::cpu() : places[pick(0, 3)];
      const auto space = by_tiles ? grid(height, width).chunks(shape.size[0], shape.size[1])
                                  : grid(height, width).chunks(chunk_y, chunk_x);
      rt.for_each(where, space, mix, read(a, mapper), write(b), ry, rx);
      std::swap(a, b);
    }
    const auto v = a.read();
    for (index_t y = 0; y < height; ++y)
      for (index_t x = 0; x < width; ++x) results[run].push_back(v(y, x));
  }
  EXPECT_EQ(results[0], results[1]) << name << " " << height << " x " << width << ", radius " << ry << ", " << rx;
}

TEST_P(gpu_random_windows, are_as_on_cores) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  compare<std::uint8_t>(random, "mix 8");
  compare<std::uint16_t>(random, "mix 16");
  compare<std::uint32_t>(random, "mix 32");
  compare<std::uint64_t>(random, "mix 64");
}

INSTANTIATE_TEST_SUITE_P(seeds, gpu_random_windows, testing::Range(0u, 25u));

constexpr auto blur = kernel<in<std::uint32_t, 2>, out<std::uint32_t, 2>, int, int>("blur").on(gpu, source{R"(
GPU_KERNEL void blur(GPU_IN(unsigned, a), GPU_OUT(unsigned, b), const int ry, const int rx) {
  const long y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1), x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0);
  if (y >= GPU_HI(b, 0) || x >= GPU_HI(b, 1)) return;
  unsigned sum = 0;
  for (long v = y - ry; v <= y + ry; ++v)
    for (long u = x - rx; u <= x + rx; ++u) sum += GPU_AT2(a, v, u);
  GPU_AT2(b, y, x) = sum;
})",
                                                                                                           "blur"});

std::uint64_t moved(const runtime& rt, const std::string& name) {
  for (const auto& e : rt.executors())
    if (e.name == name) return e.bytes_moved;
  ADD_FAILURE() << "no executor " << name;
  return 0;
}

TEST(gpu_windows, of_tiles_that_are_there_move_nothing_through_the_host) {
  options o;
  o.threads = 1;
  o.devices = {{"sim:0"}};
  runtime rt(o);
  auto a = rt.filled<std::uint32_t>({64, 64}, tiles(16, 16), 1), b = rt.array<std::uint32_t>({64, 64}, tiles(16, 16));
  const auto step = [&] {
    rt.for_each(grid(64, 64).chunks(16, 16), blur, read(a, window(2, 2).clamp()), write(b), 2, 2);
    std::swap(a, b);
  };
  step();
  rt.wait_all();
  const std::uint64_t first = moved(rt, "sim:0");
  EXPECT_GE(first, 64u * 64 * 4);      // each tile once,
  EXPECT_LT(first, 64u * 64 * 4 * 2);  // and rims of neighbours that were not there yet
  for (int i = 0; i < 5; ++i) step();
  rt.wait_all();
  EXPECT_EQ(moved(rt, "sim:0"), first);
  std::uint32_t expected = 1;
  for (int i = 0; i < 6; ++i) expected *= 25;
  EXPECT_EQ(a.read()(63, 0), expected);
}

TEST(gpu_windows, of_a_neighbour_at_home_fetch_its_rows_only) {
  options o;
  o.threads = 1;
  o.devices = {{"sim:0"}};
  runtime rt(o);
  auto a = rt.filled<std::uint32_t>({64, 16}, tiles(16, 16), 1), b = rt.array<std::uint32_t>({64, 16}, tiles(16, 16));
  // One chunk: the tile under it, and two rows of each neighbour.
  rt.spawn(blur, read(a.sub({{14, 0}, {34, 16}})), write(rt.array<std::uint32_t>({20, 16}, tiles(20, 16))), 0, 0).get();
  EXPECT_EQ(moved(rt, "sim:0"), 20u * 16 * 4);
}

}  // namespace
