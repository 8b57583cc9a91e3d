// What this file is for: copies between devices in what people and placement see: costs, explanations, lists, traces.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "peer_copies.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace peers;

constexpr index_t large = 1 << 18;  // 1 MiB
constexpr double large_bytes = large * sizeof(word);

double ms(std::chrono::nanoseconds t) { return std::chrono::duration<double, std::milli>(t).count(); }

class gpu_peers_costs : public gpu_peers {
 protected:
  options measured(int count) const {
    options o = with_sims(count);
    o.cost_cache = scratch.path();
    return o;
  }
  // Where placement would run a task on what sim:0 alone has.
  static explanation asked(runtime& rt) {
    auto a = rt.filled<word>({large}, tiles(large), 1), b = rt.array<word>({large}, tiles(large));
    rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
    auto f = rt.spawn(triple, read(a), write(b));
    f.get();
    EXPECT_EQ(b.read()(5), 3 * stirred(1, 3, 5));
    return rt.explain(f);
  }
  const test::scratch_folder scratch;
};

TEST_F(gpu_peers_costs, a_fast_way_between_devices_makes_a_device_nearer_than_the_host) {
  configure({.copy_gb_per_s = 0.1, .peer = true, .peer_gb_per_s = 2});
  runtime rt(measured(2));
  const explanation e = asked(rt);
  ASSERT_EQ(e.candidates.size(), 3u) << e.text();
  const auto &host = e.candidates[0], &there = e.candidates[1], &other = e.candidates[2];
  EXPECT_EQ(there.transfer.count(), 0) << e.text();
  EXPECT_GT(ms(host.transfer), 0.4 * large_bytes / 0.1e6) << e.text();
  EXPECT_LT(ms(other.transfer), ms(host.transfer) / 2) << e.text();
  EXPECT_EQ(other.bytes_from_peers, large_bytes) << e.text();
  EXPECT_EQ(host.bytes_from_peers, 0u) << e.text();
}

TEST_F(gpu_peers_costs, without_one_it_is_both_hops) {
  configure({.copy_gb_per_s = 0.1});
  runtime rt(measured(2));
  const explanation e = asked(rt);
  ASSERT_EQ(e.candidates.size(), 3u) << e.text();
  EXPECT_GT(ms(e.candidates[2].transfer), 1.5 * ms(e.candidates[0].transfer)) << e.text();
  EXPECT_EQ(e.candidates[2].bytes_from_peers, 0u) << e.text();
}

TEST_F(gpu_peers_costs, real_copies_teach_what_a_way_costs) {
  configure({.peer = true, .peer_gb_per_s = 0.1});  // nobody has measured it
  options o = with_sims(2);
  o.spin = std::chrono::seconds(1);  // a thread that sleeps does not see when a copy ends
  runtime rt(o);
  auto a = rt.filled<word>({large}, tiles(large), 1);
  for (int i = 0; i < 8; ++i) rt.spawn(on("sim:" + std::to_string(i % 2)), stir, update(a), word{3}).get();
  const explanation e = asked(rt);
  ASSERT_EQ(e.candidates.size(), 3u) << e.text();
  EXPECT_GT(ms(e.candidates[2].transfer), 0.4 * large_bytes / 0.1e6) << e.text();  // a guess would be 1 ms
}

TEST_F(gpu_peers_costs, ways_are_listed_with_their_speed_which_is_kept) {
  configure({.devices = 3, .peer = true, .peer_gb_per_s = 0.02});  // slower than others' time slices
  const auto sims = [&](bool measure) {
    for (auto& l : list_devices({.measure = measure, .cost_cache = scratch.path()}))
      if (l.kind == device_kind::sim) return l.devices;
    return std::vector<device_info>();
  };
  const auto unknown = sims(false);
  ASSERT_EQ(unknown.size(), 3u);
  ASSERT_EQ(unknown[1].peers.size(), 2u);
  EXPECT_EQ(unknown[1].peers[0].gb_per_s, 0);
  auto measured = sims(true);
  const auto is_known = [](const device_info& d) {
    return std::all_of(d.peers.begin(), d.peers.end(), [](const peer_link& p) { return p.gb_per_s > 0; });
  };
  // Where others take the cores it may take more than one start.
  for (int i = 0; i < 50 && !std::all_of(measured.begin(), measured.end(), is_known); ++i) measured = sims(true);
  const auto kept = sims(false);
  ASSERT_EQ(measured.size(), 3u);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(measured[1].peers[0].from, "sim:0");
  EXPECT_EQ(measured[1].peers[1].from, "sim:2");
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_GT(measured[i].peers.at(k).gb_per_s, 0.002);
      EXPECT_LT(measured[i].peers.at(k).gb_per_s, 0.2);
      EXPECT_GT(measured[i].peers.at(k).latency_us, 0);
      EXPECT_DOUBLE_EQ(kept[i].peers.at(k).gb_per_s, measured[i].peers.at(k).gb_per_s);
    }
  configure({});
  for (const auto& d : sims(false)) EXPECT_TRUE(d.peers.empty()) << d.name;
}

TEST_F(gpu_peers_costs, a_device_that_breaks_while_the_way_is_measured_goes_through_the_host) {
  configure({.peer = true, .faults = {{"MemcpyPeerAsync", 3, -1, soft_gpu::simErrorLaunchFailure, true}}});
  runtime rt(measured(2));
  auto a = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{3});
  rt.spawn(on("sim:1"), stir, update(a), word{3}).get();
  EXPECT_EQ(report_of(rt, "sim:1").bytes_from_peers, 0u);
  EXPECT_EQ(a.read()(5), stirred(stirred(1, 3, 5), 3, 5));
}

TEST_F(gpu_peers_costs, a_trace_shows_copies_and_where_they_came_from) {
  configure({.peer = true});
  options o = with_sims(2);
  o.trace = (scratch.path() / "trace.json").string();
  {
    runtime rt(o);
    auto a = rt.filled<word>({n}, tiles(n), 1);
    rt.spawn(on("sim:0"), stir, update(a), word{3});
    rt.spawn(on("sim:1"), stir, update(a), word{3});
    rt.wait_all();
  }
  std::ifstream in(o.trace);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(text.find("\"copy from sim:0\""), std::string::npos);
  EXPECT_EQ(text.find("\"copy from sim:1\""), std::string::npos);
}

}  // namespace
