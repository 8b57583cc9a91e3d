// What this file is for: copies between devices: where they go, what is pinned meanwhile, what is exact in the end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "peer_copies.hpp"

namespace {

using namespace peers;

TEST_F(gpu_peers, R10_with_peer_access_a_tile_is_copied_once_and_not_through_the_host) {
  configure({.peer = true});
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
  const auto before = report_of(rt, "sim:0");
  const auto went = traffic(0), came = traffic(1);
  rt.spawn(on("sim:1"), stir, update(a), word{3}).get();
  rt.spawn(on("sim:1"), stir, update(a), word{3}).get();
  EXPECT_EQ(report_of(rt, "sim:0").bytes_moved, before.bytes_moved);
  EXPECT_EQ(report_of(rt, "sim:0").bytes_from_peers, 0u);
  EXPECT_EQ(report_of(rt, "sim:1").bytes_moved, 0u);
  EXPECT_EQ(report_of(rt, "sim:1").bytes_from_peers, bytes);
  // The devices have seen the same.
  EXPECT_EQ(traffic(0).to_host, went.to_host);
  EXPECT_EQ(traffic(1).from_host, came.from_host);
  EXPECT_EQ(traffic(1).from_peers, came.from_peers + bytes);
  EXPECT_EQ(a.read()(7), stirred(stirred(stirred(1, 3, 7), 3, 7), 3, 7));
  EXPECT_EQ(traffic(0).to_host, went.to_host);  // the first owner has nothing to say any more
  EXPECT_EQ(traffic(1).to_host, bytes);
}

TEST_F(gpu_peers, R10_without_peer_access_a_tile_is_copied_once_out_and_once_in) {
  configure({});
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
  const auto went = traffic(0), came = traffic(1);
  rt.spawn(on("sim:1"), stir, update(a), word{3}).get();
  rt.spawn(on("sim:1"), stir, update(a), word{3}).get();
  EXPECT_EQ(traffic(0).to_host, went.to_host + bytes);
  EXPECT_EQ(traffic(1).from_host, came.from_host + bytes);
  EXPECT_EQ(traffic(1).from_peers, 0u);
  EXPECT_EQ(report_of(rt, "sim:1").bytes_from_peers, 0u);
  EXPECT_EQ(a.read()(7), stirred(stirred(stirred(1, 3, 7), 3, 7), 3, 7));
}

TEST_F(gpu_peers, a_chain_goes_from_device_to_device_without_coming_home) {
  configure({.devices = 3, .peer = true});
  runtime rt(with_sims(3));
  auto a = rt.filled<word>({n}, tiles(n), 1);
  word model = 1;
  constexpr int hops = 30;
  for (int i = 0; i <= hops; ++i) {
    rt.spawn(on("sim:" + std::to_string(i % 3)), stir, update(a), word{3});
    model = stirred(model, 3, 11);
  }
  EXPECT_EQ(a.read()(11), model);
  std::uint64_t in = 0, out = 0, direct = 0;
  for (int d = 0; d < 3; ++d) {
    in += traffic(d).from_host;
    out += traffic(d).to_host;
    direct += traffic(d).from_peers;
  }
  EXPECT_EQ(in, bytes);
  EXPECT_EQ(out, bytes);
  EXPECT_EQ(direct, hops * bytes);
}

TEST_F(gpu_peers, several_read_what_one_goes_on_answering_for) {
  configure({.devices = 3, .peer = true});
  runtime rt(with_sims(3));
  auto a = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{3});
  std::vector<array<word, 1>> b;
  for (int i = 0; i < 20; ++i) {
    b.push_back(rt.array<word>({n}, tiles(n)));
    rt.spawn(on("sim:" + std::to_string(1 + i % 2)), triple, read(a), write(b.back()));
  }
  rt.wait_all();
  for (int d : {1, 2}) {
    EXPECT_EQ(traffic(d).from_peers, bytes) << d;  // and not once for each reader
    EXPECT_EQ(traffic(d).from_host, 0u) << d;
  }
  EXPECT_EQ(traffic(0).to_host, 0u);
  EXPECT_EQ(a.read()(9), stirred(1, 3, 9));
  EXPECT_EQ(traffic(0).to_host, bytes);  // brought home by the one that wrote it
  EXPECT_EQ(traffic(1).to_host + traffic(2).to_host, 0u);
  for (auto& x : b) EXPECT_EQ(x.read()(9), 3 * stirred(1, 3, 9));
}

TEST_F(gpu_peers, a_writer_on_the_source_waits_for_the_copy_before_it) {
  configure({.copy_gb_per_s = 0, .peer = true, .peer_gb_per_s = 0.002});  // 8 ms a tile
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1);
  word model = 1;
  std::vector<array<word, 1>> b;
  std::vector<word> expected;
  for (word i = 0; i < 6; ++i) {
    rt.spawn(on("sim:0"), stir, update(a), word{3});
    model = stirred(model, 3, n - 1);
    b.push_back(rt.array<word>({n}, tiles(n)));
    rt.spawn(on("sim:1"), triple, read(a), write(b.back()));
    expected.push_back(3 * model);
  }
  for (std::size_t i = 0; i < b.size(); ++i) EXPECT_EQ(b[i].read()(n - 1), expected[i]) << i;
  EXPECT_EQ(traffic(1).from_peers, 6 * bytes);
}

TEST_F(gpu_peers, of_a_window_only_the_missing_rows_come_over) {
  configure({.peer = true});
  runtime rt(with_sims(2));
  constexpr index_t side = 64, half = 32;
  auto a = rt.array<word>({side, side}, tiles(half, side)), b = rt.array<word>({side, side}, tiles(half, side));
  const auto rows = [&](index_t from, index_t to) { return box<2>{{from, 0}, {to, side}}; };
  for (index_t y = 0; y < 2; ++y)
    rt.spawn(on("sim:" + std::to_string(y)), number, write(a.sub(rows(y * half, y * half + half))));
  rt.wait_all();
  const auto before = traffic(0).from_host + traffic(1).from_host;
  rt.spawn(on("sim:0"), below, read(a.sub(rows(0, half + 1))), write(b.sub(rows(0, half))));
  rt.spawn(on("sim:1"), below, read(a.sub(rows(half, side))), write(b.sub(rows(half, side))));
  rt.wait_all();
  EXPECT_EQ(traffic(0).from_peers, side * sizeof(word));  // one row
  EXPECT_EQ(traffic(1).from_peers, 0u);
  EXPECT_EQ(traffic(0).from_host + traffic(1).from_host, before);
  EXPECT_EQ(traffic(0).to_host + traffic(1).to_host, 0u);
  const auto v = b.read();
  for (index_t x = 0; x < side; ++x) {
    EXPECT_EQ(v(half - 2, x), 1000 * (half - 1) + x);
    EXPECT_EQ(v(half - 1, x), x);  // the other device's first row
    EXPECT_EQ(v(half, x), 1000 + x);
  }
}

TEST_F(gpu_peers, two_uses_of_one_device_copy_within_it) {
  configure({});
  options o = with_sims(1);
  o.devices.push_back({"sim:0"});
  runtime rt(o);
  auto a = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
  rt.spawn(on("sim:0#1"), stir, update(a), word{3}).get();
  EXPECT_EQ(report_of(rt, "sim:0#1").bytes_from_peers, bytes);
  EXPECT_EQ(report_of(rt, "sim:0").bytes_moved, bytes);
  EXPECT_EQ(traffic(0).to_host, 0u);
  EXPECT_EQ(a.read()(7), stirred(stirred(1, 3, 7), 3, 7));
}

TEST_F(gpu_peers, memory_of_the_caller_has_what_was_written_last_in_the_end) {
  configure({.peer = true});
  std::vector<word> mine(n, 1);
  {
    runtime rt(with_sims(2));
    auto a = rt.borrow(std::span<word>(mine), {n}, tiles(n));
    rt.spawn(on("sim:0"), stir, update(a), word{3});
    rt.spawn(on("sim:1"), stir, update(a), word{3});
    auto b = rt.array<word>({n}, tiles(n));
    rt.spawn(on("sim:0"), triple, read(a), write(b));
    rt.wait_all();
  }
  EXPECT_EQ(mine[5], stirred(stirred(1, 3, 5), 3, 5));
}

// ---- room -----------------------------------------------------------------------------------------------------------

TEST_F(gpu_peers, a_tile_that_is_lent_goes_home_when_its_device_needs_the_room) {
  configure({.peer = true});
  options o = with_sims(2);
  o.devices[0].memory_bytes = 3 * bytes;
  runtime rt(o);
  auto a = rt.filled<word>({n}, tiles(n), 1), b = rt.array<word>({n}, tiles(n)), c = rt.array<word>({n}, tiles(n));
  rt.spawn(on("sim:0"), stir, update(a), word{3});
  rt.spawn(on("sim:1"), triple, read(a), write(b)).get();
  auto many = rt.filled<word>({6 * n}, tiles(n), 2);
  rt.for_each(on("sim:0"), grid(6 * n), stir, update(many), word{5}).get();  // a has left sim:0
  EXPECT_GE(traffic(0).to_host, bytes);
  rt.spawn(on("sim:1"), triple, read(a), write(c)).get();
  EXPECT_EQ(c.read()(3), 3 * stirred(1, 3, 3));
  EXPECT_EQ(a.read()(3), stirred(1, 3, 3));
  EXPECT_EQ(b.read()(3), 3 * stirred(1, 3, 3));
}

class gpu_peers_pressure : public gpu_peers, public testing::WithParamInterface<std::tuple<bool, int>> {};

// The devices lend what others want, and neither has room for more than a few tiles.
TEST_P(gpu_peers_pressure, devices_that_are_full_of_what_others_want_do_not_wait_for_each_other) {
  const auto [peer, count] = GetParam();
  configure({.devices = count, .seed = 7, .peer = peer});
  options o = with_sims(count);
  for (auto& d : o.devices) d.memory_bytes = 3 * bytes + 4096;
  runtime rt(o);
  constexpr int tile_count = 9, rounds = 12;
  std::vector<array<word, 1>> a, b;
  std::vector<word> model(tile_count, 1), other(tile_count, 0);
  for (int i = 0; i < tile_count; ++i) {
    a.push_back(rt.filled<word>({n}, tiles(n), 1));
    b.push_back(rt.array<word>({n}, tiles(n)));
  }
  for (int r = 0; r < rounds; ++r)
    for (int i = 0; i < tile_count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      rt.spawn(on("sim:" + std::to_string((i + r) % count)), stir, update(a[at]), word{3});
      rt.spawn(on("sim:" + std::to_string((i + r + 1) % count)), triple, read(a[at]), write(b[at]));
      model[at] = stirred(model[at], 3, 13);
      other[at] = 3 * model[at];
    }
  rt.wait_all();
  for (std::size_t i = 0; i < tile_count; ++i) {
    EXPECT_EQ(a[i].read()(13), model[i]) << i;
    EXPECT_EQ(b[i].read()(13), other[i]) << i;
  }
  // In the rush tiles may all have left for the host before they were asked for; afterwards they are lent again.
  rt.spawn(on("sim:0"), stir, update(a[0]), word{3}).get();
  const std::uint64_t before = traffic(1).from_peers;
  rt.spawn(on("sim:1"), triple, read(a[0]), write(b[0])).get();
  EXPECT_EQ(traffic(1).from_peers - before, peer ? bytes : 0);
  EXPECT_EQ(b[0].read()(13), 3 * stirred(model[0], 3, 13));
}

INSTANTIATE_TEST_SUITE_P(devices, gpu_peers_pressure, testing::Combine(testing::Bool(), testing::Values(2, 3)));

// ---- any program ----------------------------------------------------------------------------------------------------

class gpu_peers_programs : public gpu_peers, public testing::WithParamInterface<unsigned> {};

TEST_P(gpu_peers_programs, give_what_a_serial_run_gives) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  const int count = pick(2, 3);
  configure({.devices = count, .seed = static_cast<std::uint64_t>(pick(0, 1) * pick(1, 99)), .peer = pick(0, 3) != 0});
  options o = with_sims(count);
  constexpr index_t size = 500;
  constexpr int arrays = 8;
  for (auto& d : o.devices) {
    if (pick(0, 1)) d.memory_bytes = static_cast<std::uint64_t>(pick(3, 6)) * 2048;
    d.lanes = pick(1, 3);
  }
  runtime rt(o);
  std::vector<array<word, 1>> a;
  std::vector<std::vector<word>> model;
  for (word i = 0; i < arrays; ++i) {
    a.push_back(rt.filled<word>({size}, tiles(size), i));
    model.emplace_back(size, i);
  }
  const auto anywhere = [&] {
    const int p = pick(0, count + 1);
    return task_options{.where = p < count    ? scope::executor("sim:" + std::to_string(p))
                                 : p == count ? scope::cpu()
                                              : scope::any()};
  };
  for (int step = 0; step < 200; ++step) {
    const auto i = static_cast<std::size_t>(pick(0, arrays - 1)), k = static_cast<std::size_t>(pick(0, arrays - 1));
    if (pick(0, 2) == 0 || i == k) {
      const auto factor = static_cast<word>(pick(1, 9));
      rt.spawn(anywhere(), stir, update(a[i]), factor);
      for (word x = 0; x < size; ++x) model[i][x] = stirred(model[i][x], factor, x);
    } else if (pick(0, 1)) {
      rt.spawn(anywhere(), triple, read(a[k]), write(a[i]));
      for (std::size_t x = 0; x < size; ++x) model[i][x] = 3 * model[k][x];
    } else {
      rt.spawn(anywhere(), blend, read(a[k]), update(a[i]));
      for (std::size_t x = 0; x < size; ++x) model[i][x] = model[i][x] * 5 + model[k][x];
    }
    if (pick(0, 40) == 0) {
      ASSERT_EQ(contents(a[k]), model[k]) << step;
    }
  }
  for (std::size_t i = 0; i < arrays; ++i) EXPECT_EQ(contents(a[i]), model[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(seeds, gpu_peers_programs, testing::Range(0u, 40u));

}  // namespace
