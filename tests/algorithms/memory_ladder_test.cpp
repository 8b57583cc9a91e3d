// What this file is for: linear algebra whose tiles take four times the memory of its device, and of the host.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes are compared with what nobody can do without. In tiles, with room for S of them:
// - Every input comes in once and every result goes out once: 3 n^2 for C = A B, n (n + 1) for Cholesky.
// - Reads of a product: at least 2 n^3 / sqrt(S) - 2 S (Smith, Lowery, Langou, van de Geijn, "A tight I/O lower bound
//   for matrix multiplication", 2017). At four times the memory, S = 3 n^2 / 4, that is less than the 2 n^2 above.
// - Reads of Cholesky: n^3 / (3 sqrt(2) sqrt(S)) to leading order (Beaumont, Eyraud-Dubois, Verite, Langou,
//   "I/O-optimal algorithms for symmetric linear algebra kernels", 2022). The best known order of square blocks
//   (Bereux, 2009) reads sqrt(2) times that. What is known of lower orders is no bound at this size, so both figures
//   are looked at.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/linear_algebra.hpp"
#include "tests/support/driver_leaks.hpp"

#if defined(TROUPE_HAVE_BLAS)

namespace {

using namespace troupe;
using troupe::index_t;

constexpr index_t tile = 32;

// Sanitizers make kernels with barriers a hundred times slower. There the sizes are halved and what moves is not
// judged: the tasks under way hold too much of so few tiles.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
constexpr index_t sized(index_t n) { return sanitized ? n / 2 : n; }
constexpr std::uint64_t tile_bytes = static_cast<std::uint64_t>(tile * tile) * sizeof(double);

struct memory {
  std::uint64_t device = 0, host = 0;  // 0: no limit
};

/// The outcome of a run, and what it took.
struct outcome {
  std::vector<double> values;
  executor_report device;
  runtime_report all;
};

double number(index_t i) { return static_cast<double>((i * 7919) % 1021) / 1021 - 0.5; }

template <class Prepare, class Work>
outcome run(const memory& limits, const std::string& where, index_t size, Prepare&& prepare, Work&& work) {
  options o{.threads = 2};
  o.devices = {{where == "cpu:0" ? "none" : where, limits.device}};
  o.cost_cache = "none";
  o.memory_bytes = limits.host;
  if (limits.host != 0) o.spill_directory = testing::TempDir();
  runtime rt(o);
  auto result = rt.array<double>({size, size}, tiles(tile, tile), "result");
  const auto inputs = prepare(rt, result);
  work(rt, inputs, result, scope::executor(where)).get();
  outcome seen;
  for (index_t i = 0; i < size; i += tile) {  // a strip at a time: the host may have no room for more
    const auto strip = result.sub({{i, 0}, {std::min(i + tile, size), size}}).read();
    for (index_t y = 0; y < strip.size(0); ++y)
      for (index_t x = 0; x < size; ++x) seen.values.push_back(strip(y, x));
  }
  seen.all = rt.report();
  for (const auto& e : seen.all.executors)
    if (e.name == where) seen.device = e;
  return seen;
}

struct factors {
  array<double, 2> a, b;
};

void fill(array<double, 2>& a, index_t seed) {
  const index_t n = a.size(0);
  for (index_t i = 0; i < n; i += tile) {
    auto strip = a.sub({{i, 0}, {std::min(i + tile, n), n}}).write();
    for (index_t y = 0; y < strip.size(0); ++y)
      for (index_t x = 0; x < n; ++x) strip(y, x) = number((i + y) * n + x + seed);
  }
}

outcome product(index_t n, const memory& limits, const std::string& where) {
  const index_t size = n * tile;
  return run(
      limits, where, size,
      [&](runtime& rt, auto&) {
        factors f{rt.array<double>({size, size}, tiles(tile, tile), "A"),
                  rt.array<double>({size, size}, tiles(tile, tile), "B")};
        fill(f.a, 1);
        fill(f.b, 2);
        return f;
      },
      [](runtime& rt, const factors& f, array<double, 2>& c, const scope& s) {
        return algorithms::gemm(rt, 1.0, f.a, f.b, 0.0, c, s);
      });
}

outcome factored(index_t n, const memory& limits, const std::string& where) {
  const index_t size = n * tile;
  return run(
      limits, where, size,
      [&](runtime&, array<double, 2>& a) {
        for (index_t i = 0; i < size; i += tile) {
          auto strip = a.sub({{i, 0}, {i + tile, size}}).write();
          for (index_t y = 0; y < tile; ++y)
            for (index_t x = 0; x < size; ++x) {
              const index_t row = i + y, lo = std::min(row, x), hi = std::max(row, x);
              strip(y, x) = number(hi * size + lo) + (row == x ? static_cast<double>(size) : 0);
            }
        }
        return 0;
      },
      [](runtime& rt, int, array<double, 2>& a, const scope& s) { return algorithms::cholesky(rt, a, s); });
}

void expect_same_bits(const outcome& a, const outcome& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  EXPECT_EQ(std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)), 0);
}

void expect_close(const outcome& a, const outcome& b, double tolerance) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) ASSERT_NEAR(a.values[i], b.values[i], tolerance) << i;
}

double tiles_moved(const outcome& o) { return static_cast<double>(o.device.bytes_moved) / tile_bytes; }

void tell(const outcome& o, const char* what) {
  std::cout << what << ": " << (o.device.bytes_moved - o.device.bytes_out) / tile_bytes << " tiles in, "
            << o.device.bytes_out / tile_bytes << " out, behind " << o.device.chained << " of " << o.device.tasks
            << ", most in use " << o.device.memory_used_max / tile_bytes << " of " << o.device.memory_bytes / tile_bytes
            << "; spilled " << o.all.bytes_spilled / tile_bytes << ", read back " << o.all.bytes_read_back / tile_bytes
            << "\n";
}

TEST(memory_ladder, a_product_of_four_times_the_devices_memory_is_exact_and_moves_little_more_than_it_must) {
  constexpr index_t n = sized(16);
  const memory limits{3 * n * n / 4 * tile_bytes};
  const outcome o = product(n, limits, "sim:0");
  tell(o, "product");
  expect_same_bits(o, product(n, {}, "sim:0"));
  expect_close(o, product(n, {}, "cpu:0"), 4 * (n * tile + 2) * std::numeric_limits<double>::epsilon() * 2);
  EXPECT_LE(o.device.memory_used_max, limits.device);
  if (!sanitized) {
    EXPECT_LE(tiles_moved(o), 1.5 * 3 * n * n);
  }
}

TEST(memory_ladder, a_factorisation_of_four_times_the_devices_memory_is_exact_and_moves_little_more_than_it_must) {
  constexpr index_t n = sized(32);
  const memory limits{n * (n + 1) / 8 * tile_bytes};
  const outcome o = factored(n, limits, "sim:0");
  tell(o, "factored");
  expect_same_bits(o, factored(n, {}, "sim:0"));
  constexpr double size = n * tile;
  expect_close(o, factored(n, {}, "cpu:0"), 10 * size * std::numeric_limits<double>::epsilon() * std::sqrt(size));
  EXPECT_LE(o.device.memory_used_max, limits.device);
  const double room = n * (n + 1) / 8, once = n * (n + 1) / 2;
  if (!sanitized) {
    EXPECT_LE(tiles_moved(o), 1.5 * (n * n * n / (3 * std::sqrt(2.0) * std::sqrt(room)) + once));
  }
  if (!sanitized) {
    EXPECT_LE(tiles_moved(o), 1.75 * 2 * once);
  }
}

// ---- and of the host's ----------------------------------------------------------------------------------------------

TEST(memory_ladder, a_product_spills_to_disk_where_the_host_has_room_for_half_of_it) {
  constexpr index_t n = sized(12);
  const memory limits{3 * n * n / 4 * tile_bytes, 3 * n * n / 2 * tile_bytes};
  const outcome o = product(n, limits, "sim:0");
  tell(o, "product, spilled");
  expect_same_bits(o, product(n, {}, "sim:0"));
  EXPECT_LE(o.device.memory_used_max, limits.device);
  EXPECT_LE(o.all.bytes_allocated_max, limits.host);
  EXPECT_GT(o.all.bytes_spilled, 0u);
  if (!sanitized) {
    EXPECT_LE(tiles_moved(o), 1.5 * 3 * n * n);
  }
  // The disk is to the host what the host is to the device, and nothing is on it at first.
  if (!sanitized) {
    EXPECT_LE(static_cast<double>(o.all.bytes_spilled + o.all.bytes_read_back) / tile_bytes, 2.5 * 3 * n * n);
  }
}

TEST(memory_ladder, a_factorisation_spills_to_disk_where_the_host_has_room_for_half_of_it) {
  constexpr index_t n = sized(24);
  const memory limits{n * (n + 1) / 8 * tile_bytes, n * n / 2 * tile_bytes};  // the upper triangle takes room at first
  const outcome o = factored(n, limits, "sim:0");
  tell(o, "factored, spilled");
  expect_same_bits(o, factored(n, {}, "sim:0"));
  EXPECT_LE(o.device.memory_used_max, limits.device);
  EXPECT_LE(o.all.bytes_allocated_max, limits.host);
  EXPECT_GT(o.all.bytes_spilled, 0u);
  if (!sanitized) {
    EXPECT_LE(tiles_moved(o), 3.0 * n * (n + 1));  // as tasks become ready, least recently used: 5 to 8 times
  }                                                // what the host has to give up leaves the device as well
}

TEST(memory_ladder, a_device_has_room_for_all_and_the_host_for_an_eighth_of_what_is_dirty_there) {
  constexpr index_t n = 16;  // a strip has to fit
  const memory limits{0, n * (n + 1) / 16 * tile_bytes};
  const outcome o = factored(n, limits, "sim:0");
  tell(o, "factored, little host memory");
  expect_same_bits(o, factored(n, {}, "sim:0"));
  EXPECT_LE(o.all.bytes_allocated_max, limits.host);
}

}  // namespace

#endif
