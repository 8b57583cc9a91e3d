// What this file is for: each actor of a runtime is killed by a planted fault, and ends in its row of the supervision
// table and nowhere else.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "actors/placement/placement.hpp"
#include "devices/sim/sim.h"
#include "tests/runtime/open_runtime.hpp"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::stir;
using test::word;

void fill(view<word, 1> a, word x) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = x;
}
task_options on(const scope& where) {
  task_options o;
  o.where = where;
  o.executor_wait = 20s;  // an executor that is given up comes again
  return o;
}

std::exception_ptr fault() { return std::make_exception_ptr(std::runtime_error("planted")); }

using test::open_runtime;

std::string remarks_of(const open_runtime& rt) {
  std::string all;
  for (const std::string& r : rt.inside().report().remarks) all += r + "\n";
  return all;
}
// Waits until something was done about a failure of the actor, and returns all remarks.
std::string wait_for_verdict_on(const open_runtime& rt, const std::string& actor, int times = 1) {
  for (const auto until = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < until;) {
    const std::string all = remarks_of(rt);
    int seen = 0;
    for (std::size_t at = 0; (at = all.find(actor + " has failed", at)) != std::string::npos; ++at) ++seen;
    if (seen >= times) return all;
    std::this_thread::yield();
  }
  return "no verdict: " + remarks_of(rt);
}

options cores(int threads) {
  options o;
  o.threads = threads;
  return o;
}

constexpr errc no_error{-1};
errc code_of(const std::function<void()>& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const error& e) {
    if (text) *text = e.what();
    return e.code();
  }
  return no_error;
}

// ---- placement ------------------------------------------------------------------------------------------------------

TEST(supervision, of_placement_ends_the_runtime_and_everybody_is_told_why) {
  open_runtime rt(cores(2));
  std::mutex gate;
  gate.lock();
  auto runs = rt.spawn([&] {
    std::lock_guard wait(gate);
    return 7;
  });
  auto queued = rt.spawn([](int x) { return x + 1; }, runs);
  rt.inside().placement_actor().plant(fault());
  std::string text;
  EXPECT_EQ(code_of([&] { queued.get(); }, &text), errc::runtime_stopped);
  EXPECT_NE(text.find("placement: planted"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { rt.spawn([] {}); }, &text), errc::runtime_stopped);
  EXPECT_NE(text.find("placement: planted"), std::string::npos) << text;
  gate.unlock();
}

// The failure comes when a thread has just taken the task from its queue: its body begins and blocks, or does not
// begin.
TEST(supervision, of_placement_tells_those_who_come_after_a_task_that_is_about_to_begin) {
  constexpr int times = 400;
  for (int i = 0; i < times; ++i) {
    open_runtime rt(cores(2));
    std::mutex gate;
    gate.lock();
    auto runs = rt.spawn([&] {
      std::lock_guard wait(gate);
      return 7;
    });
    auto queued = rt.spawn([](int x) { return x + 1; }, runs);
    for (const auto until = std::chrono::steady_clock::now() + i * 100ns; std::chrono::steady_clock::now() < until;) {
    }
    rt.inside().placement_actor().plant(fault());
    EXPECT_EQ(code_of([&] { queued.get(); }), errc::runtime_stopped) << i;
    gate.unlock();
  }
}

TEST(supervision, of_placement_wakes_those_who_wait_for_all_tasks) {
  open_runtime rt(cores(2));
  std::mutex gate;
  gate.lock();
  std::promise<void> begun;
  auto runs = rt.spawn([&] {
    begun.set_value();
    std::lock_guard wait(gate);
  });
  begun.get_future().wait();
  std::thread waiter(
      [&] { EXPECT_FALSE(rt.inside().placement_actor().wait_quiet(std::chrono::steady_clock::time_point::max())); });
  rt.inside().placement_actor().plant(fault());
  waiter.join();
  EXPECT_NE(rt.inside().placement_actor().why_ended().find("placement: planted"), std::string::npos);
  gate.unlock();
}

// ---- core groups ----------------------------------------------------------------------------------------------------

TEST(supervision, of_a_core_group_puts_another_thread_in_the_place_of_each_that_fails) {
  open_runtime rt(cores(3));
  constexpr int times = 6;
  for (int i = 1; i <= times; ++i) {
    rt.inside().groups().front()->plant(fault());
    EXPECT_NE(wait_for_verdict_on(rt, "cpu:0", i)
                  .find("cpu:0 has failed (" + std::to_string(i) + "): planted; it is restarted"),
              std::string::npos);
  }
  // As many bodies run at once as before.
  std::mutex lock;
  std::condition_variable changed;
  int here = 0;
  std::vector<future<bool>> all;
  for (int i = 0; i < 3; ++i)
    all.push_back(rt.spawn([&] {
      std::unique_lock hold(lock);
      ++here;
      changed.notify_all();
      return changed.wait_for(hold, 20s, [&] { return here == 3; });
    }));
  for (auto& f : all) EXPECT_TRUE(f.get());
}

TEST(supervision, of_a_core_group_that_fails_again_and_again_ends_the_runtime) {
  open_runtime rt(cores(2));
  const int allowed = detail::row_of(detail::actor_kind::core_group).restarts;
  for (int i = 1; i <= allowed + 1; ++i) {
    rt.inside().groups().front()->plant(fault());
    wait_for_verdict_on(rt, "cpu:0", i);
  }
  EXPECT_NE(remarks_of(rt).find("planted; the runtime ends"), std::string::npos) << remarks_of(rt);
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       code_of([&] { rt.spawn([] {}); }) == no_error && std::chrono::steady_clock::now() < until;)
    std::this_thread::yield();
  EXPECT_EQ(code_of([&] { rt.spawn([] {}); }), errc::runtime_stopped);
}

// ---- devices --------------------------------------------------------------------------------------------------------

class supervision_of_a_gpu : public testing::Test {
 protected:
  supervision_of_a_gpu() { soft_gpu::simConfigure({}); }
  static options with_sim() {
    options o = cores(2);
    o.cost_cache = "none";
    o.devices = {{"sim:0"}};
    o.eager_devices = true;
    return o;
  }
};

TEST_F(supervision_of_a_gpu, opens_it_anew_and_gives_it_up_after_three_times) {
  open_runtime rt(with_sim());
  const scope on_device = scope::executor("sim:0");
  auto base = rt.filled<word>({64}, tiles(64), 1);
  rt.spawn(on(scope::cpu()), stir, update(base), 3u);
  const word right = base.read()(0);
  const int allowed = detail::row_of(detail::actor_kind::gpu).restarts;
  for (int i = 1; i <= allowed; ++i) {
    rt.inside().gpus().front()->plant(fault());
    EXPECT_NE(wait_for_verdict_on(rt, "sim:0", i)
                  .find("sim:0 has failed (" + std::to_string(i) + "): planted; it is restarted"),
              std::string::npos);
    auto a = rt.filled<word>({64}, tiles(64), 1);
    rt.spawn(on(on_device), stir, update(a), 3u);
    EXPECT_EQ(a.read()(0), right) << "after " << i;
  }
  rt.inside().gpus().front()->plant(fault());
  EXPECT_NE(wait_for_verdict_on(rt, "sim:0", allowed + 1).find("sim:0 has failed (4): planted; it is given up"),
            std::string::npos);
  auto a = rt.filled<word>({64}, tiles(64), 1);
  rt.spawn(stir, update(a), 3u);
  EXPECT_EQ(a.read()(0), right);  // by the cores
}

TEST_F(supervision_of_a_gpu, keeps_the_tasks_that_it_has_when_it_fails) {
  open_runtime rt(with_sim());
  const scope on_device = scope::executor("sim:0");
  std::vector<array<word, 1>> all;
  for (int i = 0; i < 50; ++i) {
    all.push_back(rt.filled<word>({64}, tiles(64), 1));
    rt.spawn(on(on_device), stir, update(all.back()), 3u);
    if (i == 25) rt.inside().gpus().front()->plant(fault());
  }
  auto base = rt.filled<word>({64}, tiles(64), 1);
  rt.spawn(on(scope::cpu()), stir, update(base), 3u);
  const word right = base.read()(0);
  for (auto& a : all) {
    try {
      EXPECT_EQ(a.read()(0), right);
    } catch (const error& e) {  // its only copy was on the device
      EXPECT_EQ(e.code(), errc::data_lost) << e.what();
    }
  }
  wait_for_verdict_on(rt, "sim:0");
}

// ---- the disk -------------------------------------------------------------------------------------------------------

TEST(supervision, of_the_disk_starts_it_again_and_nothing_is_lost) {
  options o = cores(2);
  o.memory_bytes = 8u << 20;
  o.spill_directory = testing::TempDir();
  open_runtime rt(o);
  constexpr index_t count = 1 << 17;  // of 512 KiB
  std::vector<array<word, 1>> all;
  for (word i = 0; i < 64; ++i) {
    all.push_back(rt.array<word>({count}, tiles(count)));
    rt.spawn(fill, write(all.back()), i);
    if (i == 20) rt.inside().disk()->plant(fault());
  }
  EXPECT_NE(wait_for_verdict_on(rt, "disk").find("disk has failed (1): planted; it is restarted"), std::string::npos);
  for (word i = 0; i < 64; ++i) {
    const auto v = all[i].read();
    ASSERT_EQ(v(0), i);
    ASSERT_EQ(v(count - 1), i);
  }
  EXPECT_GT(rt.inside().report().bytes_spilled, 0u);
}

TEST(supervision, of_a_disk_that_is_given_up_leaves_what_fits_into_memory) {
  options o = cores(2);
  o.memory_bytes = 8u << 20;
  o.spill_directory = testing::TempDir();
  open_runtime rt(o);
  const int allowed = detail::row_of(detail::actor_kind::disk).restarts;
  for (int i = 1; i <= allowed + 1; ++i) {
    rt.inside().disk()->plant(fault());
    wait_for_verdict_on(rt, "disk", i);
  }
  EXPECT_NE(remarks_of(rt).find("planted; it is given up"), std::string::npos) << remarks_of(rt);
  constexpr index_t count = 1 << 17;
  std::vector<array<word, 1>> all;
  for (word i = 0; i < 64; ++i) {
    all.push_back(rt.array<word>({count}, tiles(count)));
    rt.spawn(fill, write(all.back()), i);
  }
  int right = 0, told = 0;
  for (word i = 0; i < 64; ++i) {
    std::string text;
    const errc e = code_of([&] { right += all[i].read()(count - 1) == i; }, &text);
    told += e == errc::dependency_failed && text.find("the disk is given up: planted") != std::string::npos;
  }
  EXPECT_EQ(right + told, 64);
  EXPECT_GE(right, 8);
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

options node(const std::string& name, const std::vector<std::string>& join = {}) {
  options o = cores(2);
  o.cluster.cluster_name = "supervision";
  o.cluster.node_name = name;
  o.cluster.insecure_loopback = true;
  o.cluster.listen = {"127.0.0.1:0"};
  o.cluster.join = join;
  return o;
}

constexpr auto twice =
    kernel<in<word, 1>, out<word, 1>>("supervision_twice").on(cpu, [](view<const word, 1> a, view<word, 1> b) {
      for (index_t i = b.lo(0); i < b.hi(0); ++i) b(i) = 2 * a(i);
    });
const offer offered{twice};

class supervision_of_nodes : public testing::Test {
 protected:
  // Tasks for the other node, whose results are looked at.
  static void run_some(open_runtime& rt, const scope& where = {}) {
    const auto in = rt.filled<word>({100}, tiles(100), 21);
    std::vector<array<word, 1>> all;
    for (int i = 0; i < 10; ++i) {
      all.push_back(rt.array<word>({100}, tiles(100)));
      rt.spawn(on(where), twice, read(in), write(all.back()));
    }
    for (const auto& out : all) {
      const auto v = out.read();
      for (index_t i = 0; i < 100; ++i) ASSERT_EQ(v(i), 42u);
    }
  }
  static bool meet(open_runtime& a, std::uint64_t before) {
    return a.inside().others()->wait_for_another(before, std::chrono::steady_clock::now() + 20s);
  }
  open_runtime a{node("a")};
  open_runtime b{node("b", a.inside().others()->addresses())};
};

TEST_F(supervision_of_nodes, gives_up_the_link_of_a_remote_node_that_fails_and_it_joins_anew) {
  ASSERT_TRUE(meet(a, 0));
  run_some(a);
  const std::uint64_t before = a.inside().others()->came();
  a.inside().others()->node_actors().at(0)->plant(fault());
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       a.inside().others()->came() == before && std::chrono::steady_clock::now() < until;)
    run_some(a, scope::at("b"));
  EXPECT_GT(a.inside().others()->came(), before);
  run_some(a);
}

TEST_F(supervision_of_nodes, gives_up_the_link_of_a_node_service_that_fails_and_it_joins_anew) {
  ASSERT_TRUE(meet(a, 0));
  ASSERT_TRUE(meet(b, 0));
  const std::uint64_t before = a.inside().others()->came();
  b.inside().others()->service_actors().at(0)->plant(fault());
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       a.inside().others()->came() == before && std::chrono::steady_clock::now() < until;)
    run_some(a, scope::at("b"));
  EXPECT_GT(a.inside().others()->came(), before);
  run_some(a);
}

TEST_F(supervision_of_nodes, of_the_cluster_leaves_it_and_the_runtime_goes_on_alone) {
  ASSERT_TRUE(meet(a, 0));
  ASSERT_TRUE(meet(b, 0));
  a.inside().others()->membership_actor().plant(fault());
  EXPECT_NE(wait_for_verdict_on(a, "cluster").find("cluster has failed (1): planted; it is given up"),
            std::string::npos);
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       !a.inside().others()->report().empty() && std::chrono::steady_clock::now() < until;)
    std::this_thread::yield();
  EXPECT_TRUE(a.inside().others()->report().empty());
  run_some(a);
  run_some(b);
}

}  // namespace
