// What this file is for: windows, slices and borders on devices: the same elements as on cores, from tiles in place.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;
using troupe::index_t;

// b = a weighted sum over the whole window, so that each element's place matters. Views that end at the array's edge
// (clip) are summed as far as they go.
constexpr auto text = R"(
GPU_KERNEL void mixed(GPU_IN(TYPE, a), GPU_OUT(TYPE, b), const int ry, const int rx) {
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
      kernel<in<T, 2>, out<T, 2>, int, int>(name).on(cpu, &mix_on_cpu<T>).on(gpu, source{typed_text<T>(), "mixed"});
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
  o.eager_devices = true;
  runtime rt(o);
  const scope scopes[] = {scope::executor("sim:0"), scope::gpu(), scope::any(), scope::cpu()};
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
      where.where = run == 0 ? scope::cpu() : scopes[pick(0, 3)];
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

// Steps back and forth between two arrays, recorded: on cores, and on a device, where windows are put together between
// the kernels of a run, which is one call from the second run on.
template <class T>
void compare_runs(std::mt19937& random, const std::string& device, const char* name) {
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  const auto mix =
      kernel<in<T, 2>, out<T, 2>, int, int>(name).on(cpu, &mix_on_cpu<T>).on(gpu, source{typed_text<T>(), "mixed"});
  const index_t height = pick(1, 18), width = pick(1, 18);
  const tile_shape<2> shape = tiles(pick(3, 12), pick(3, 12));
  const int ry = pick(0, 3), rx = pick(0, 3), border = pick(0, 4), steps = pick(1, 2);
  // Chunks are tiles, or lie in one each.
  const auto part_of = [&](index_t n) {
    const index_t parts = pick(1, 3);
    return n % parts == 0 ? n / parts : n;
  };
  const auto space = grid(height, width).chunks(part_of(shape.size[0]), part_of(shape.size[1]));
  options o;
  o.threads = 2;
  o.devices = {{device}};
  runtime rt(o);
  std::vector<T> results[2];
  for (const bool there : {false, true}) {
    array<T, 2> a = rt.template array<T>({height, width}, shape), b = rt.template array<T>({height, width}, shape);
    {
      auto v = a.write();
      for (index_t y = 0; y < height; ++y)
        for (index_t x = 0; x < width; ++x) v(y, x) = static_cast<T>(y * 31 + x * 7 + 1);
    }
    const graph g = rt.record([&](recorder& r) {
      const auto step = [&](const array<T, 2>& from, const array<T, 2>& to) {
        const auto w = window(ry, rx);
        if (border == 4) {
          r.for_each(space, mix, read(from, all()), write(to), ry, rx);
          return;
        }
        r.for_each(space, mix,
                   read(from, border == 0   ? w.clamp()
                              : border == 1 ? w.wrap()
                              : border == 2 ? w.fill(static_cast<T>(0x0102030405060708ull))
                                            : w),
                   write(to), ry, rx);
      };
      for (int i = 0; i < steps; ++i) {
        step(a, b);
        step(b, a);
      }
    });
    for (int run = 0; run < 4; ++run) {
      rt.run({.where = there ? scope::executor(device) : scope::cpu()}, g);
      if (run != 1) continue;  // the next run finds other contents
      rt.spawn([](view<T, 2> v) { v(v.lo(0), v.lo(1)) = T{3}; }, update(a)).get();
    }
    const auto v = a.read();
    for (index_t y = 0; y < height; ++y)
      for (index_t x = 0; x < width; ++x) results[there].push_back(v(y, x));
  }
  EXPECT_EQ(results[0], results[1]) << name << " " << height << " x " << width << ", tiles " << shape.size[0] << " x "
                                    << shape.size[1] << ", radius " << ry << ", " << rx << ", border " << border;
}

class gpu_random_runs : public testing::TestWithParam<std::tuple<const char*, unsigned>> {};

TEST_P(gpu_random_runs, with_windows_are_as_on_cores) {
  const auto [device, seed] = GetParam();
  for (const auto& l : list_devices())
    if (std::string(device).starts_with(l.kind_name + ":") && l.devices.empty())
      GTEST_SKIP() << "no " << l.kind_name << ": " << l.remark;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  compare_runs<std::uint8_t>(random, device, "mix 8");
  compare_runs<std::uint16_t>(random, device, "mix 16");
  compare_runs<std::uint32_t>(random, device, "mix 32");
  compare_runs<std::uint64_t>(random, device, "mix 64");
}

INSTANTIATE_TEST_SUITE_P(sim, gpu_random_runs, testing::Combine(testing::Values("sim:0"), testing::Range(0u, 30u)));
INSTANTIATE_TEST_SUITE_P(others, gpu_random_runs,
                         testing::Combine(testing::Values("opencl:0", "cuda:0", "hip:0"), testing::Range(0u, 4u)));

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
  // A single chunk: the tile under it, and two rows of each neighbour.
  rt.spawn(blur, read(a.sub({{14, 0}, {34, 16}})), write(rt.array<std::uint32_t>({20, 16}, tiles(20, 16))), 0, 0).get();
  EXPECT_EQ(moved(rt, "sim:0"), 20u * 16 * 4);
}

// b = the element one window before, three times, and the one behind, where they are in the view.
constexpr auto spread_text = R"(
#define AT(i, j, k, l) ((i) >= GPU_LO(a, 0) && (i) < GPU_HI(a, 0) && (j) >= GPU_LO(a, 1) && (j) < GPU_HI(a, 1) && \
                        (k) >= GPU_LO(a, 2) && (k) < GPU_HI(a, 2) && (l) >= GPU_LO(a, 3) && (l) < GPU_HI(a, 3) ? \
                        GPU_AT4(a, i, j, k, l) : 0)
GPU_KERNEL void spread(GPU_IN(unsigned short, a), GPU_OUT(unsigned short, b), const int r) {
  const long k = GPU_LO(b, 2) + GPU_GLOBAL_ID(1), l = GPU_LO(b, 3) + GPU_GLOBAL_ID(0);
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(2) / GPU_SIZE(b, 1), j = GPU_LO(b, 1) + GPU_GLOBAL_ID(2) % GPU_SIZE(b, 1);
  if (i < GPU_HI(b, 0) && k < GPU_HI(b, 2) && l < GPU_HI(b, 3))
    GPU_AT4(b, i, j, k, l) = 3 * AT(i - r, j - r, k - r, l - r) + AT(i + r, j + r, k + r, l + r);
})";

// Arrays with an axis of one element in every place but those that `size` has, so that one text serves all ranks.
void spread_on_cpu(view<const std::uint16_t, 4> a, view<std::uint16_t, 4> b, int r) {
  const auto at = [&](index_t i, index_t j, index_t k, index_t l) -> int {
    return i >= a.lo(0) && i < a.hi(0) && j >= a.lo(1) && j < a.hi(1) && k >= a.lo(2) && k < a.hi(2) && l >= a.lo(3) &&
                   l < a.hi(3)
               ? a(i, j, k, l)
               : 0;
  };
  for (index_t i = b.lo(0); i < b.hi(0); ++i)
    for (index_t j = b.lo(1); j < b.hi(1); ++j)
      for (index_t k = b.lo(2); k < b.hi(2); ++k)
        for (index_t l = b.lo(3); l < b.hi(3); ++l)
          b(i, j, k, l) =
              static_cast<std::uint16_t>(3 * at(i - r, j - r, k - r, l - r) + at(i + r, j + r, k + r, l + r));
}
constexpr auto spread = kernel<in<std::uint16_t, 4>, out<std::uint16_t, 4>, int>("spread")
                            .on(cpu, &spread_on_cpu)
                            .on(gpu, source{spread_text, "spread", {16, 4, 4}});

// More elements than a grid has groups in its other dimensions, all in one tile, with every border.
TEST(gpu_windows, of_many_elements_are_as_on_cores) {
  using four = extent<4>;
  for (const four& size : {four{{1, 1, 1, 70'000}}, four{{1, 1, 300, 300}}, four{{1, 40, 41, 42}},
                           four{{16, 17, 18, 19}}, four{{60, 40, 30, 1}}, four{{1, 1, 40'000, 2}}}) {
    options o;
    o.threads = 1;
    o.devices = {{"sim:0"}};
    runtime rt(o);
    auto a = rt.array<std::uint16_t>(size, tiles(size[0], size[1], size[2], size[3]));
    {
      auto v = a.write();
      for (index_t i = 0; i < size[0]; ++i)
        for (index_t j = 0; j < size[1]; ++j)
          for (index_t k = 0; k < size[2]; ++k)
            for (index_t l = 0; l < size[3]; ++l)
              v(i, j, k, l) = static_cast<std::uint16_t>(i * 7919 + j * 131 + k * 31 + l * 7 + 1);
    }
    for (const window_mapper<4>& mapper : std::initializer_list<window_mapper<4>>{
             window(1, 1, 1, 1), window(1, 1, 1, 1).clamp(), window(1, 1, 1, 1).wrap(),
             window(1, 1, 1, 1).fill(std::uint16_t{5})}) {
      std::vector<std::uint16_t> results[2];
      for (int run = 0; run < 2; ++run) {
        auto b = rt.array<std::uint16_t>(size, tiles(size[0], size[1], size[2], size[3]));
        rt.for_each({.where = run == 0 ? scope::cpu() : scope::gpu()},
                    grid(size[0], size[1], size[2], size[3]).chunks(size[0], size[1], size[2], size[3]), spread,
                    read(a, mapper), write(b), 1)
            .get();
        const auto v = b.read();
        for (index_t i = 0; i < size[0]; ++i)
          for (index_t j = 0; j < size[1]; ++j)
            for (index_t k = 0; k < size[2]; ++k)
              for (index_t l = 0; l < size[3]; ++l) results[run].push_back(v(i, j, k, l));
      }
      EXPECT_TRUE(results[0] == results[1]) << size[0] << " x " << size[1] << " x " << size[2] << " x " << size[3];
    }
  }
}

// The ranks that programs have, beside arrays of four dimensions.
template <int N>
void expect_clamped(extent<N> size, tile_shape<N> shape, const source& body) {
  const auto copy = kernel<in<std::uint32_t, N>, out<std::uint32_t, N>>("copy").on(gpu, body);
  options o;
  o.threads = 1;
  o.devices = {{"sim:0"}};
  runtime rt(o);
  auto a = rt.filled<std::uint32_t>(size.sizes, shape, 3), b = rt.array<std::uint32_t>(size, shape);
  if constexpr (N == 1)
    rt.for_each(grid(size[0]).chunks(size[0]), copy, read(a, window(1).clamp()), write(b)).get();
  else
    rt.for_each(grid(size[0], size[1]).chunks(size[0], size[1]), copy, read(a, window(1, 1).clamp()), write(b)).get();
  const auto v = b.read();
  if constexpr (N == 1)
    EXPECT_EQ(v(0) + v(size[0] - 1), 6u);
  else
    EXPECT_EQ(v(0, 0) + v(size[0] - 1, size[1] - 1), 6u);
}

TEST(gpu_windows, of_one_and_two_dimensions_may_be_large) {
  const source line{R"(
GPU_KERNEL void copy(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  const long x = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (x < GPU_HI(b, 0)) GPU_AT1(b, x) = (GPU_AT1(a, x - 1) + GPU_AT1(a, x + 1)) / 2;
})",
                    "copy"};
  const source matrix{R"(
GPU_KERNEL void copy(GPU_IN(unsigned, a), GPU_OUT(unsigned, b)) {
  const long x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1);
  if (x < GPU_HI(b, 1) && y < GPU_HI(b, 0)) GPU_AT2(b, y, x) = (GPU_AT2(a, y - 1, x - 1) + GPU_AT2(a, y + 1, x + 1)) / 2;
})",
                      "copy"};
  for (const index_t n : {65'535, 65'536, 300'000}) expect_clamped<1>({{n}}, tiles(n), line);
  for (const auto& size : {extent<2>{{256, 257}}, {{2, 70'000}}, {{70'000, 2}}, {{1250, 1250}}})
    expect_clamped<2>(size, tiles(size[0], size[1]), matrix);
}

// A loop of two steps on 16 tiles, whose windows need memory of their own on the device.
class gpu_runs_with_windows : public testing::Test {
 protected:
  void start(std::size_t bytes) {
    options o;
    o.threads = 1;
    o.devices = {{"sim:0", bytes}};
    rt_.emplace(o);
    a_ = rt_->filled<std::uint32_t>({64, 64}, tiles(16, 16), 1);
    b_ = rt_->filled<std::uint32_t>({64, 64}, tiles(16, 16), 0);
    g_ = rt_->record([&](recorder& r) {
      r.for_each(grid(64, 64).chunks(16, 16), blur, read(a_, window(1, 1).wrap()), write(b_), 1, 1);
      r.for_each(grid(64, 64).chunks(16, 16), blur, read(b_, window(1, 1).wrap()), write(a_), 1, 1);
    });
  }
  std::uint64_t replays() const {
    for (const auto& e : rt_->report().executors)
      if (e.name == "sim:0") return e.replays;
    return 0;
  }
  std::optional<runtime> rt_;
  array<std::uint32_t, 2> a_, b_;
  graph g_;
};

TEST_F(gpu_runs_with_windows, are_one_call_from_the_second_on_and_move_nothing) {
  start(0);
  rt_->run(g_).get();
  const std::uint64_t before = moved(*rt_, "sim:0");
  for (int i = 0; i < 4; ++i) rt_->run(g_).get();
  EXPECT_EQ(replays(), 4u);
  EXPECT_EQ(moved(*rt_, "sim:0"), before);
  const auto v = a_.read();
  std::uint32_t each = 1;
  for (int i = 0; i < 10; ++i) each *= 9;
  for (index_t y = 0; y < 64; ++y)
    for (index_t x = 0; x < 64; ++x) ASSERT_EQ(v(y, x), each);
}

TEST_F(gpu_runs_with_windows, need_room_for_the_windows_of_one_call) {
  constexpr std::size_t tiles_there = 2 * 64 * 64 * 4, window_there = 18 * 18 * 4;
  start(tiles_there + window_there / 2);
  try {
    rt_->run(g_).get();
    FAIL() << "there was no room";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory) << e.what();
  }
  start(tiles_there + 2 * window_there);
  EXPECT_NO_THROW(rt_->run(g_).get());
  EXPECT_EQ(a_.read()(5, 5), 81u);
}

// One part of a tile is changed where it is.
TEST(gpu_runs_of_parts, leave_the_rest_of_their_tiles) {
  options o;
  o.threads = 1;
  o.devices = {{"sim:0"}};
  runtime rt(o);
  const auto a = rt.filled<std::uint32_t>({8, 8}, tiles(8, 8), 1), b = rt.array<std::uint32_t>({16, 16}, tiles(8, 8));
  const graph g = rt.record([&](recorder& r) {
    r.spawn(blur, read(a.sub(box<2>{{1, 1}, {7, 7}})), write(b.sub(box<2>{{3, 3}, {5, 5}})), 0, 0);
  });
  try {
    rt.run({.where = scope::executor("sim:0")}, g).get();
    FAIL() << "the run has the whole tile, of which nobody wrote the rest";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("nobody wrote all of [0,8) x [0,8)"), std::string::npos) << e.what();
  }
  {
    auto v = b.sub(box<2>{{0, 0}, {8, 8}}).write();
    for (index_t y = 0; y < 8; ++y)
      for (index_t x = 0; x < 8; ++x) v(y, x) = 7;
  }
  for (int i = 0; i < 3; ++i) rt.run({.where = scope::executor("sim:0")}, g).get();
  const auto v = b.sub(box<2>{{0, 0}, {8, 8}}).read();
  for (index_t y = 0; y < 8; ++y)
    for (index_t x = 0; x < 8; ++x) EXPECT_EQ(v(y, x), y >= 3 && y < 5 && x >= 3 && x < 5 ? 1u : 7u) << y << ", " << x;
}

}  // namespace
