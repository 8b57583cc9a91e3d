// What this file is for: random programs under a tiny host memory budget leave the bytes that a serial run leaves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// All arrays together are four times the budget; devices, where there are any, have a quarter of it. A failing case
// prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;
using troupe::index_t;
using word = std::uint32_t;

// to = to * factor + from, over two boxes of the same size
constexpr auto blend = kernel<in<word, 1>, inout<word, 1>, word>("blend")
                           .on(cpu,
                               [](view<const word, 1> from, view<word, 1> to, word factor) {
                                 for (index_t i = 0; i < to.size(0); ++i)
                                   to(to.lo(0) + i) = to(to.lo(0) + i) * factor + from(from.lo(0) + i);
                               })
                           .on(gpu, source{R"(
GPU_KERNEL void blend(GPU_IN(unsigned, from), GPU_INOUT(unsigned, to), const unsigned factor) {
  const long i = GPU_GLOBAL_ID(0), at = GPU_LO(to, 0) + i;
  if (at < GPU_HI(to, 0)) GPU_AT1(to, at) = GPU_AT1(to, at) * factor + GPU_AT1(from, GPU_LO(from, 0) + i);
})",
                                           "blend"});
// to = from * factor + 1
constexpr auto carry = kernel<in<word, 1>, out<word, 1>, word>("carry")
                           .on(cpu,
                               [](view<const word, 1> from, view<word, 1> to, word factor) {
                                 for (index_t i = 0; i < to.size(0); ++i)
                                   to(to.lo(0) + i) = from(from.lo(0) + i) * factor + 1;
                               })
                           .on(gpu, source{R"(
GPU_KERNEL void carry(GPU_IN(unsigned, from), GPU_OUT(unsigned, to), const unsigned factor) {
  const long i = GPU_GLOBAL_ID(0), at = GPU_LO(to, 0) + i;
  if (at < GPU_HI(to, 0)) GPU_AT1(to, at) = GPU_AT1(from, GPU_LO(from, 0) + i) * factor + 1;
})",
                                           "carry"});

struct machine {
  const char* name;
  int threads, core_groups, sims;
  bool small_devices;  // a quarter of the budget
};
std::ostream& operator<<(std::ostream& out, const machine& m) { return out << m.name; }

constexpr index_t tile = 64, tiles_each = 4, size = tile * tiles_each;
constexpr std::size_t arrays = 16;                                               // 64 tiles
constexpr std::uint64_t budget = arrays * tiles_each / 4 * tile * sizeof(word);  // 16 tiles

class program {
 public:
  program(std::uint32_t seed, const machine& m) : random_(seed), longest_(m.small_devices ? tile : size) {
    for (int i = 0; i < m.core_groups; ++i) places_.push_back("cpu:" + std::to_string(i));
    for (int i = 0; i < m.sims; ++i) places_.push_back("sim:" + std::to_string(i));
    for (auto& a : model_) a.assign(size, 7);
  }

  void run(runtime& rt, int steps) {
    std::array<array<word, 1>, arrays> a;
    for (std::size_t i = 0; i < arrays; ++i) {
      a[i] = rt.array<word>({size}, tiles(tile), "a" + std::to_string(i));
      for (index_t t = 0; t < size; t += tile)
        rt.spawn([](view<word, 1> v) { std::fill_n(v.data(), v.size(0), 7u); },
                 write(a[i].sub(box<1>{{t}, {t + tile}})));
    }
    for (int i = 0; i < steps; ++i) step(rt, a);
    for (std::size_t i = 0; i < arrays; ++i) {
      const auto v = a[i].read();
      for (index_t k = 0; k < size; ++k)
        ASSERT_EQ(v(k), model_[i][static_cast<std::size_t>(k)]) << "array " << i << ", element " << k;
    }
  }

 private:
  index_t pick(index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random_); }

  void step(runtime& rt, std::array<array<word, 1>, arrays>& a) {
    const auto from = static_cast<std::size_t>(pick(0, arrays - 1));
    const std::size_t to = (from + static_cast<std::size_t>(pick(1, arrays - 1))) % arrays;
    index_t length = tile, read_at = pick(0, tiles_each - 1) * tile, write_at = pick(0, tiles_each - 1) * tile;
    if (pick(0, 2) == 0) {  // any box
      length = pick(1, longest_);
      read_at = pick(0, size - length);
      write_at = pick(0, size - length);
    }
    const auto factor = static_cast<word>(random_());
    const auto source = a[from].sub(box<1>{{read_at}, {read_at + length}});
    const auto target = a[to].sub(box<1>{{write_at}, {write_at + length}});
    const index_t what = pick(0, 9);
    task_options how{.priority = static_cast<int>(pick(-1, 1))};
    if (pick(0, 3) != 0)
      how.where = scope::executor(places_[static_cast<std::size_t>(pick(0, static_cast<index_t>(places_.size()) - 1))]);
    auto* const r = &model_[from][static_cast<std::size_t>(read_at)];
    auto* const w = &model_[to][static_cast<std::size_t>(write_at)];
    const auto n = static_cast<std::size_t>(length);
    if (what < 5) {
      rt.spawn(how, blend, read(source), update(target), factor);
      for (std::size_t i = 0; i < n; ++i) w[i] = w[i] * factor + r[i];
    } else if (what < 8) {
      rt.spawn(how, carry, read(source), write(target), factor);
      for (std::size_t i = 0; i < n; ++i) w[i] = r[i] * factor + 1;
    } else if (what == 8) {  // fails at first
      rt.spawn(
          {.retries = 1},
          [factor](task_context& c, view<word, 1> v) {
            for (index_t i = 0; i < v.size(0); ++i) v(i) += factor;
            if (c.attempt() == 1) throw std::runtime_error("the first try fails");
          },
          update(target));
      for (std::size_t i = 0; i < n; ++i) w[i] += factor;
    } else {
      auto v = target.update();
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(v(static_cast<index_t>(i)), w[i])
            << "array " << to << ", element " << write_at + static_cast<index_t>(i);
        v(static_cast<index_t>(i)) ^= factor;
        w[i] ^= factor;
      }
    }
  }

  std::mt19937 random_;
  const index_t longest_;  // a device has room for two tiles that hold it, the assembled box and the target
  std::vector<std::string> places_;
  std::array<std::vector<word>, arrays> model_;
};

class spilling_programs : public testing::TestWithParam<machine> {};

TEST_P(spilling_programs, leave_the_bytes_of_the_serial_run) {
  const machine m = GetParam();
  options o;
  o.threads = m.threads;
  o.core_groups = m.core_groups;
  o.memory_bytes = budget;
  o.spill_directory = testing::TempDir();
  for (int i = 0; i < m.sims; ++i)
    o.devices.push_back({"sim:" + std::to_string(i), m.small_devices ? budget / 4 : budget});
  o.eager_devices = true;
  runtime rt(o);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    program(seed, m).run(rt, 150);
    if (HasFailure()) break;
    rt.wait_all();
    const runtime_report r = rt.report();
    if (m.sims == 0) {  // devices free their copies a moment later
      ASSERT_EQ(r.bytes_allocated, 0u);
      ASSERT_EQ(r.bytes_on_disk, 0u);
    }
    ASSERT_LE(r.bytes_allocated_max, budget);
  }
  EXPECT_GT(rt.report().bytes_spilled, 0u);
  EXPECT_GT(rt.report().bytes_read_back, 0u);
  rt.shutdown(o.shutdown_timeout);
  EXPECT_EQ(rt.report().bytes_allocated, 0u);
  EXPECT_EQ(rt.report().bytes_on_disk, 0u);
}

INSTANTIATE_TEST_SUITE_P(machines, spilling_programs,
                         testing::Values(machine{"one_thread", 1, 1, 0, false}, machine{"two_groups", 4, 2, 0, false},
                                         machine{"with_a_device", 2, 1, 1, false},
                                         machine{"with_small_devices", 2, 2, 2, true}),
                         [](const auto& shown) { return std::string(shown.param.name); });

}  // namespace
