// What this file is for: kernels of the GPU backend: results, wrong arguments and texts, the cache of compiled ones.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "devices/rtc/text.hpp"
#include "gpu_suite.hpp"

namespace {

using namespace gpu_suite;

TEST_F(gpu_sim, the_fill_kernel_repeats_its_pattern) {
  auto& a = device();
  void* p = a.allocate(0, 400);
  const std::int64_t words = 100, step = 64;
  const int period = 3;
  const std::uint32_t w[4] = {11, 22, 33, 44};
  const auto id = a.load({"fill", kernels::fill, "fill"});
  a.launch(0, id, {{64, 1, 1}, {32, 1, 1}},
           std::array{memory(p), value(words), value(step), value(period), value(w[0]), value(w[1]), value(w[2]),
                      value(w[3])});
  const auto got = get<std::uint32_t>(p, 100);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], w[i % 3]) << i;
}

TEST_F(gpu_sim, runs_axpy) {
  auto& a = device();
  std::vector<double> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0);
  std::iota(y.begin(), y.end(), 5.0);
  void *dx = put(x), *dy = put(y);
  const auto shape = shape_of({1000});
  const double factor = 2.5;
  const auto id = a.load({"core", kernels::core, "axpy"});
  EXPECT_EQ(a.load({"core", kernels::core, "axpy"}), id);
  a.launch(0, id, {{1000, 1, 1}, {128, 1, 1}},
           std::array{value(factor), memory(dx), value(shape), memory(dy), value(shape)});
  const auto got = get<double>(dy, 1000);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(got[i], y[i] + factor * x[i]) << i;
}

TEST_F(gpu_sim, runs_block_sum_with_local_memory_and_barriers) {
  auto& a = device();
  std::vector<float> x(200);
  std::iota(x.begin(), x.end(), 1.0f);
  void *dx = put(x), *sums = a.allocate(0, 4 * sizeof(float));
  const auto sx = shape_of({200}), ss = shape_of({4});
  a.launch(0, a.load({"core", kernels::core, "block_sum"}), {{200, 1, 1}, {64, 1, 1}},
           std::array{memory(dx), value(sx), memory(sums), value(ss)});
  const auto got = get<float>(sums, 4);
  for (std::size_t g = 0; g < 4; ++g) {
    float sum = 0;
    for (std::size_t i = g * 64; i < std::min<std::size_t>(200, (g + 1) * 64); ++i) sum += x[i];
    EXPECT_EQ(got[g], sum) << g;
  }
}

TEST_F(gpu_sim, runs_histogram_with_atomics) {
  auto& a = device();
  std::mt19937 random(3);
  std::vector<std::int32_t> x(5000), expected(16, 0);
  for (auto& v : x) v = static_cast<std::int32_t>(random() % 20) - 2;
  for (const auto v : x)
    if (v >= 0 && v < 16) ++expected[static_cast<std::size_t>(v)];
  void *dx = put(x), *counts = a.allocate(0, 64);
  const std::byte zero{};
  a.fill(0, {counts, 0}, &zero, 1, 64);
  const auto sx = shape_of({5000}), sc = shape_of({16});
  a.launch(0, a.load({"core", kernels::core, "histogram"}), {{5000, 1, 1}, {100, 1, 1}},
           std::array{memory(dx), value(sx), memory(counts), value(sc)});
  EXPECT_EQ(get<std::int32_t>(counts, 16), expected);
}

TEST_F(gpu_sim, runs_tiled_dgemm_on_a_box_inside_a_larger_array) {
  auto& a = device();
  const index_t m = 37, n = 21, depth = 50;
  std::mt19937 random(11);
  std::uniform_real_distribution<double> number(-1, 1);
  std::vector<double> x(m * depth), y(depth * n), z((m + 4) * (n + 6));
  for (auto* v : {&x, &y, &z})
    for (auto& e : *v) e = number(random);
  void *dx = put(x), *dy = put(y), *dz = put(z);
  const auto sx = shape_of({m, depth}), sy = shape_of({depth, n});
  kernels::shape sz = shape_of({m, n});  // element (2, 3) of the array is (100, 200) of the kernel
  sz.lo = {100, 200, 0, 0};
  sz.hi = {100 + m, 200 + n, 1, 1};
  sz.stride = {n + 6, 1, 0, 0};
  sz.offset = 2 * (n + 6) + 3;
  const double alpha = 0.5, beta = 2;
  a.launch(0, a.load({"core", kernels::core, "dgemm"}),
           {{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(m), 1}, {16, 16, 1}},
           std::array{value(alpha), memory(dx), value(sx), memory(dy), value(sy), value(beta), memory(dz), value(sz)});
  const auto got = get<double>(dz, z.size());
  auto expected = z;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      double sum = 0;
      for (index_t k = 0; k < depth; ++k)
        sum += x[static_cast<std::size_t>(i * depth + k)] * y[static_cast<std::size_t>(k * n + j)];
      auto& e = expected[static_cast<std::size_t>(sz.offset + i * (n + 6) + j)];
      e = alpha * sum + beta * e;
    }
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-13) << i;
}

TEST_F(gpu_sim, text_that_does_not_compile_gives_the_log_with_name_line_and_target) {
  auto& a = device();
  const char* text = "GPU_KERNEL void wrong(GPU_OUT(float, a)) {\n  GPU_AT1(a, 0) = nonsense;\n}\n";
  EXPECT_EQ(thrown([&] { a.load({"my kernels", text, "wrong"}); }), code(errc::compile_failed));
  EXPECT_NE(said.find("nonsense"), std::string::npos) << said;
  EXPECT_NE(said.find("my_kernels:2"), std::string::npos) << said;
  EXPECT_NE(said.find("kernel wrong (my kernels) for host"), std::string::npos) << said;
  EXPECT_NO_THROW(a.load({"core", kernels::core, "axpy"}));  // the device goes on
}

TEST_F(gpu_sim, an_entry_that_is_not_in_the_text_does_not_compile) {
  auto& a = device();
  EXPECT_EQ(thrown([&] { a.load({"core", kernels::core, "saxpy"}); }), code(errc::compile_failed));
  EXPECT_NE(said.find("saxpy"), std::string::npos) << said;
  EXPECT_EQ(thrown([&] { a.load({"core", kernels::core, "axpy; int x"}); }), code(errc::compile_failed));
}

TEST_F(gpu_sim, arguments_and_shapes_that_do_not_fit_are_refused) {
  auto& a = device();
  void* p = a.allocate(0, 800);
  const auto shape = shape_of({100});
  const double d = 1;
  const float f = 1;
  const auto id = a.load({"core", kernels::core, "axpy"});
  const launch_shape fine{{100, 1, 1}, {64, 1, 1}};
  const auto good = std::array{value(d), memory(p), value(shape), memory(p), value(shape)};
  const auto refused = [&](launch_shape s, std::span<const kernel_argument> args, kernel_id k) {
    return thrown([&] { a.launch(0, k, s, args); }) == code(errc::bad_argument);
  };
  EXPECT_TRUE(refused(fine, std::span(good).first(4), id));
  EXPECT_NE(said.find("takes 5 arguments, not 4"), std::string::npos) << said;
  EXPECT_TRUE(refused(fine, std::array{value(f), memory(p), value(shape), memory(p), value(shape)}, id));
  EXPECT_TRUE(refused(fine, std::array{value(d), value(d), value(shape), memory(p), value(shape)}, id));
  EXPECT_TRUE(refused({{100, 1, 1}, {0, 1, 1}}, good, id));
  EXPECT_TRUE(refused({{4096, 1, 1}, {2048, 1, 1}}, good, id));
  EXPECT_TRUE(refused(fine, good, id + 1));
  EXPECT_EQ(thrown([&] { a.record(2, false); }), code(errc::bad_argument));
  EXPECT_NO_THROW(a.launch(0, id, {{0, 1, 1}, {64, 1, 1}}, good));  // nothing to run
  EXPECT_NO_THROW(finish(a, 0));
}

TEST_F(gpu_sim, a_compiled_kernel_is_found_on_disk_and_one_that_is_damaged_is_made_again) {
  const folder f;
  auto s = wishes();
  s.cache = f.path / "cache";
  const kernel_source source{"core", kernels::core, "axpy"};
  const auto files = [&] {
    std::vector<fs::path> all;
    for (const auto& e : fs::directory_iterator(s.cache)) all.push_back(e.path());
    return all;
  };
  make_sim_source(s)->open(0, 1, 0)->load(source);
  ASSERT_EQ(files().size(), 1u);
  const auto file = files()[0];
  const auto size = fs::file_size(file);

  // A hit: nothing is written.
  const auto good_time = fs::last_write_time(file);
  make_sim_source(s)->open(0, 1, 0)->load(source);
  EXPECT_EQ(fs::last_write_time(file), good_time);

  // Cut off, then with one byte wrong: ignored, and written anew.
  fs::resize_file(file, size / 2);
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load(source));
  EXPECT_EQ(fs::file_size(file), size);
  {
    std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
    io.seekp(static_cast<std::streamoff>(size / 2));
    io.put('\x5a').put('\x5b').put('\x5c');
  }
  const rtc::kernel_cache cache(s.cache, s.cache_bytes_max);
  const auto key = file.stem().string();
  EXPECT_FALSE(cache.find(key));
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load(source));
  EXPECT_TRUE(cache.find(key));

  // Whole, but of no use to the loader.
  const std::vector<std::byte> nonsense(100, std::byte{1});
  cache.store(key, nonsense);
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load(source));
  EXPECT_EQ(fs::file_size(file), size);
}

TEST_F(gpu_sim, a_cache_that_cannot_be_written_is_no_error) {
  auto s = wishes();
  s.cache = "/proc/troupe";
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load({"core", kernels::core, "axpy"}));
  s.cache.clear();
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load({"core", kernels::core, "axpy"}));
}

TEST_F(gpu_sim, without_a_compiler_kernels_are_not_supported) {
  auto s = wishes();
  s.programs.clear();
  const auto a = make_sim_source(s)->open(0, 1, 0);
  EXPECT_EQ(thrown([&] { a->load({"core", kernels::core, "axpy"}); }), code(errc::not_supported));
  EXPECT_NE(said.find("no C++ compiler"), std::string::npos) << said;
}

}  // namespace
