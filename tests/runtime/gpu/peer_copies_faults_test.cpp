// What this file is for: devices that fail while one copies from another: what is exact, what is lost, what goes on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "peer_copies.hpp"
#include "tests/support/causes.hpp"

namespace {

using namespace peers;

soft_gpu::sim_fault broken(const char* call, int nth, int device) {
  return {call, nth, device, soft_gpu::simErrorLaunchFailure, true, false, false};
}
soft_gpu::sim_fault lost(const char* call, int nth, int device) {
  return {call, nth, device, soft_gpu::simErrorDevicesUnavailable, false, true, false};
}

class gpu_peers_faults : public gpu_peers {
 protected:
  static void configure(std::vector<soft_gpu::sim_fault> faults, double peer_gb_per_s = 0) {
    gpu_peers::configure({.peer = true, .peer_gb_per_s = peer_gb_per_s, .faults = std::move(faults)});
  }
  template <class F>
  static errc cause_of(F&& f) {
    return test::cause_of(std::forward<F>(f), last_text);
  }
  // The copy of a tile that sim:0 alone has, to sim:1, is under way.
  template <class Kernel>
  static future<void> copying(runtime& rt, array<word, 1>& a, array<word, 1>& b, const Kernel& k) {
    rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
    auto f = rt.spawn(on("sim:1"), k, read(a), write(b));
    while (traffic(1).from_peers == 0) std::this_thread::yield();
    return f;
  }
  inline static std::string last_text;
};

TEST_F(gpu_peers_faults, a_target_that_fails_in_the_copy_gets_the_tile_through_the_host) {
  for (const auto& fault : {broken("MemcpyPeerAsync", 1, 1), lost("MemcpyPeerAsync", 1, 1)}) {
    configure({fault});
    runtime rt(with_sims(2));
    auto a = rt.filled<word>({n}, tiles(n), 1), b = rt.array<word>({n}, tiles(n));
    rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
    rt.spawn(on("sim:1"), triple, read(a), write(b)).get();
    EXPECT_EQ(traffic(1).from_host, bytes);
    EXPECT_EQ(b.read()(5), 3 * stirred(1, 3, 5));
    EXPECT_EQ(a.read()(5), stirred(1, 3, 5));
    // And goes on so: what was opened anew is not connected.
    rt.spawn(on("sim:0"), stir, update(a), word{3});
    rt.spawn(on("sim:1"), stir, update(a), word{3});
    EXPECT_EQ(a.read()(5), stirred(stirred(stirred(1, 3, 5), 3, 5), 3, 5));
    EXPECT_EQ(traffic(1).from_peers, 0u);
  }
}

TEST_F(gpu_peers_faults, a_source_that_fails_in_the_copy_is_data_lost_naming_array_and_task) {
  configure({lost("LaunchKernel", 2, 0)}, 0.0005);  // 32 ms a tile
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1, "precious"), b = rt.array<word>({n}, tiles(n));
  auto other = rt.filled<word>({n}, tiles(n), 1);
  auto f = copying(rt, a, b, triple);
  rt.spawn(on("sim:0"), stir, update(other), word{3}).get();  // fails, is run again
  EXPECT_EQ(cause_of([&] { f.get(); }), errc::data_lost) << last_text;
  EXPECT_NE(last_text.find("precious"), std::string::npos) << last_text;
  EXPECT_NE(last_text.find("triple"), std::string::npos) << last_text;
  EXPECT_EQ(other.read()(5), stirred(1, 3, 5));
  rt.spawn(on("sim:1"), triple, read(other), write(a)).get();  // written anew it is as good as ever
  EXPECT_EQ(a.read()(5), 3 * stirred(1, 3, 5));
}

TEST_F(gpu_peers_faults, a_source_that_fails_after_the_tile_came_home_costs_nothing) {
  configure({lost("LaunchKernel", 2, 0)}, 0.0005);
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1), b = rt.array<word>({n}, tiles(n)),
       other = rt.filled<word>({n}, tiles(n), 1);
  auto f = copying(rt, a, b, triple);
  EXPECT_EQ(a.read()(5), stirred(1, 3, 5));
  rt.spawn(on("sim:0"), stir, update(other), word{3}).get();
  f.get();
  EXPECT_EQ(b.read()(5), 3 * stirred(1, 3, 5));
}

TEST_F(gpu_peers_faults, a_kernel_that_may_run_once_only_is_not_run_again_for_a_source_that_failed) {
  configure({lost("LaunchKernel", 2, 0)}, 0.0005);
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1, "precious"), b = rt.array<word>({n}, tiles(n));
  auto other = rt.filled<word>({n}, tiles(n), 1);
  auto f = copying(rt, a, b, triple_once);
  rt.spawn(on("sim:0"), stir, update(other), word{3}).get();
  EXPECT_EQ(cause_of([&] { f.get(); }), errc::device_failed) << last_text;
  EXPECT_NE(last_text.find("precious"), std::string::npos) << last_text;
}

TEST_F(gpu_peers_faults, what_was_updated_in_place_with_the_bytes_of_a_source_that_failed_is_lost_too) {
  configure({lost("LaunchKernel", 2, 0)}, 0.0005);
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1), sum = rt.filled<word>({n}, tiles(n), 1, "sum");
  auto other = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:1"), stir, update(sum), word{3}).get();  // there alone
  rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
  auto f = rt.spawn(on("sim:1"), blend, read(a), update(sum));
  while (traffic(1).from_peers == 0) std::this_thread::yield();
  EXPECT_EQ(a.read()(5), stirred(1, 3, 5));  // comes home, so that blend itself could run again
  rt.spawn(on("sim:0"), stir, update(other), word{3}).get();
  EXPECT_EQ(cause_of([&] { f.get(); }), errc::data_lost) << last_text;
  EXPECT_NE(last_text.find("sum"), std::string::npos) << last_text;
}

TEST_F(gpu_peers_faults, what_another_device_has_copied_before_is_not_lost) {
  configure({lost("LaunchKernel", 2, 0)});
  runtime rt(with_sims(2));
  auto a = rt.filled<word>({n}, tiles(n), 1), b = rt.array<word>({n}, tiles(n)), c = rt.array<word>({n}, tiles(n));
  auto other = rt.filled<word>({n}, tiles(n), 1);
  rt.spawn(on("sim:0"), stir, update(a), word{3}).get();
  rt.spawn(on("sim:1"), triple, read(a), write(b)).get();
  rt.spawn(on("sim:0"), stir, update(other), word{3}).get();  // sim:0 fails, and a with it
  rt.spawn(on("sim:0"), triple, read(a), write(c)).get();
  EXPECT_EQ(traffic(1).to_host, bytes);
  EXPECT_EQ(c.read()(5), 3 * stirred(1, 3, 5));
  EXPECT_EQ(a.read()(5), stirred(1, 3, 5));
}

// ---- any fault at any time ------------------------------------------------------------------------------------------

class gpu_peers_chaos : public gpu_peers_faults, public testing::WithParamInterface<unsigned> {};

TEST_P(gpu_peers_chaos, gives_exact_results_or_says_what_is_lost) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  const int count = pick(2, 3);
  const char* calls[] = {"LaunchKernel", "MemcpyPeerAsync", "MemcpyPeerAsync",
                         "MemcpyAsync",  "MallocAsync",     "EventRecord"};
  soft_gpu::sim_options s;
  s.devices = count;
  s.peer = true;
  s.seed = GetParam();
  for (int i = pick(1, 3); i != 0; --i) {
    const char* call = calls[pick(0, 5)];
    s.faults.push_back(pick(0, 1) ? broken(call, pick(1, 40), pick(0, count - 1))
                                  : lost(call, pick(1, 40), pick(0, count - 1)));
  }
  std::string what = std::to_string(count) + " devices";
  for (const auto& f : s.faults)
    what += "; " + f.call + ' ' + std::to_string(f.nth) + " on " + std::to_string(f.device) +
            (f.lost ? " lost" : " broken");
  SCOPED_TRACE(what);
  gpu_peers::configure(s);
  options o = with_sims(count);
  for (auto& d : o.devices)
    if (pick(0, 1)) d.memory_bytes = static_cast<std::uint64_t>(pick(3, 5)) * 512;
  runtime rt(o);
  constexpr std::size_t arrays = 6;
  constexpr index_t size = 100;
  std::vector<array<word, 1>> a;
  std::vector<word> model;
  for (word i = 0; i < arrays; ++i) {
    a.push_back(rt.filled<word>({size}, tiles(size), i));
    model.push_back(i);
  }
  for (int step = 0; step < 120; ++step) {
    const auto i = static_cast<std::size_t>(pick(0, arrays - 1)), k = static_cast<std::size_t>(pick(0, arrays - 1));
    const int p = pick(0, count);
    const task_options where{.where = p < count ? scope::executor("sim:" + std::to_string(p)) : scope::any()};
    if (pick(0, 1) || i == k) {
      rt.spawn(where, stir, update(a[i]), word{3});
      model[i] = stirred(model[i], 3, 10);
    } else if (pick(0, 1)) {
      rt.spawn(where, triple, read(a[k]), write(a[i]));
      model[i] = model[k] * 3;
    } else {
      rt.spawn(where, blend, read(a[k]), update(a[i]));
      model[i] = model[i] * 5 + model[k];
    }
  }
  rt.wait_all();
  for (std::size_t i = 0; i < arrays; ++i) {
    try {
      EXPECT_EQ(contents(a[i])[10], model[i]) << i;
    } catch (const error&) {
      errc code = cause_of([&] { contents(a[i]); });
      EXPECT_TRUE(code == errc::data_lost || code == errc::device_failed || code == errc::device_lost ||
                  code == errc::dependency_failed || code == errc::task_failed)
          << last_text;
    }
  }
  auto fresh = rt.filled<word>({size}, tiles(size), 1);
  rt.spawn(on("cpu:0"), stir, update(fresh), word{2}).get();
  EXPECT_EQ(contents(fresh)[10], 12u);
}

INSTANTIATE_TEST_SUITE_P(seeds, gpu_peers_chaos, testing::Range(0u, 60u));

}  // namespace
