// What this file is for: a task that asks for much of something scarce begins in time, and idles nothing meanwhile.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::gate;
using namespace std::chrono_literals;

// Busy for so long: what a body does is not what is tested.
void work(std::chrono::microseconds us) {
  const auto until = std::chrono::steady_clock::now() + us;
  while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

TEST(starvation, of_two_things_at_once_by_tasks_that_want_one_does_not_happen) {
  options o;
  o.threads = 4;
  o.resources = {{"thing", 2}};
  runtime rt(o);
  std::atomic<bool> enough{false};
  std::atomic<int> small{0};
  std::vector<std::thread> feeding;
  for (int i = 0; i < 4; ++i)
    feeding.emplace_back([&] {
      while (!enough) {
        rt.spawn(task_options{.resources = {{"thing", 1}}}, [&] {
            work(2ms);
            ++small;
          }).get();
      }
    });
  while (small < 50) std::this_thread::yield();
  int passed = -1;
  auto large = rt.spawn(task_options{.priority = 100, .resources = {{"thing", 2}}}, [&] { passed = small; });
  const int before = small;
  EXPECT_TRUE(large.wait_for(test::patience));
  enough = true;
  for (auto& t : feeding) t.join();
  EXPECT_LE(passed - before, 40);
}

TEST(starvation, of_a_child_by_who_waits_for_its_parent_does_not_happen) {
  options o;
  o.threads = 4;
  o.resources = {{"thing", 2}};
  runtime rt(o);
  for (int round = 0; round < 10; ++round) {
    gate begun, spawned;
    auto parent = rt.spawn(task_options{.resources = {{"thing", 1}}}, [&] {
      begun.open();
      EXPECT_TRUE(spawned.pass());
      return rt.spawn(task_options{.resources = {{"thing", 1}}}, [] { return 1; }).get();
    });
    EXPECT_TRUE(begun.pass());
    auto large = rt.spawn(task_options{.priority = 1, .resources = {{"thing", 2}}}, [] { return 2; });
    spawned.open();
    ASSERT_TRUE(parent.wait_for(test::patience));
    ASSERT_TRUE(large.wait_for(test::patience));
  }
}

// A body of which the runtime knows what it takes: nothing.
constexpr auto short_body = [] {};
void make_known(runtime& rt) {
  for (int i = 0; i < 20; ++i) rt.spawn(short_body).get();
}

TEST(starvation, of_short_tasks_by_one_that_waits_for_several_slots_does_not_happen) {
  for (const int threads : {2, 4}) {
    options o;
    o.threads = threads;
    runtime rt(o);
    make_known(rt);
    test::held_body holder(rt);
    ASSERT_TRUE(holder.has_begun());
    auto wide = rt.spawn(task_options{.resources = {{"cpu", static_cast<double>(threads)}}}, [] {});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(rt.spawn(short_body).wait_for(test::patience)) << i;
    std::vector<future<void>> many;
    for (int i = 0; i < 200; ++i) many.push_back(rt.spawn(short_body));
    for (auto& f : many) ASSERT_TRUE(f.wait_for(test::patience));
    EXPECT_FALSE(wide.is_ready());
    holder.let_go();
    EXPECT_TRUE(wide.wait_for(test::patience));
  }
}

TEST(starvation, of_what_a_body_waits_for_by_one_that_waits_for_several_slots_does_not_happen) {
  options o;
  o.threads = 2;
  runtime rt(o);
  make_known(rt);
  test::held_body holder(rt);
  ASSERT_TRUE(holder.has_begun());
  gate inside, go_on;
  const test::opener always(go_on);
  auto parent = rt.spawn([&] {
    inside.open();
    EXPECT_TRUE(go_on.pass());
    std::vector<future<void>> children;
    for (int i = 0; i < 5; ++i) children.push_back(rt.spawn(short_body));
    for (auto& c : children) c.get();
  });
  ASSERT_TRUE(inside.pass());
  auto wide = rt.spawn(task_options{.resources = {{"cpu", 2}}}, [] {});
  go_on.open();
  // Its slot is left to the line when it waits. The children end in time, and so does it when it has a slot again.
  holder.let_go();
  EXPECT_TRUE(parent.wait_for(test::patience));
  EXPECT_TRUE(wide.wait_for(test::patience));
}

TEST(starvation, of_who_waits_for_several_slots_by_a_stream_of_tasks_does_not_happen) {
  for (const int threads : {2, 4, 8}) {
    options o;
    o.threads = threads;
    runtime rt(o);
    std::atomic<bool> enough{false};
    std::atomic<int> small{0};
    std::vector<std::thread> feeding;
    for (int i = 0; i < threads + 1; ++i)
      feeding.emplace_back([&] {
        while (!enough) {
          rt.spawn([&] {
              work(1ms);
              ++small;
            }).get();
        }
      });
    while (small < 50) std::this_thread::yield();
    for (int round = 0; round < 5; ++round) {
      int passed = -1;
      auto wide = rt.spawn(task_options{.resources = {{"cpu", static_cast<double>(threads)}}}, [&] { passed = small; });
      const int before = small;
      ASSERT_TRUE(wide.wait_for(test::patience));
      EXPECT_LE(passed - before, 40 * threads);
    }
    enough = true;
    for (auto& t : feeding) t.join();
  }
}

TEST(starvation, of_an_urgent_task_by_one_that_waits_for_several_slots_does_not_happen) {
  options o;
  o.threads = 2;
  runtime rt(o);
  gate busy;
  const test::opener always(busy);
  test::held_body holder(rt);
  ASSERT_TRUE(holder.has_begun());
  auto wide = rt.spawn(task_options{.resources = {{"cpu", 2}}}, [] {});
  // Nobody knows what it takes, and it takes long: it passes because it is urgent.
  auto urgent = rt.spawn(task_options{.priority = 1}, [&] {
    EXPECT_TRUE(busy.pass());
    return 7;
  });
  holder.let_go();
  EXPECT_FALSE(wide.is_ready());
  busy.open();
  ASSERT_TRUE(urgent.wait_for(test::patience));
  EXPECT_EQ(urgent.get(), 7);
  EXPECT_TRUE(wide.wait_for(test::patience));
}

TEST(starvation, of_short_tasks_on_an_idle_device_by_a_pair_that_waits_does_not_happen) {
  options o;
  o.threads = 2;
  o.cost_cache = "none";
  o.devices = {{.name = "sim:0", .memory_bytes = 1 << 20}, {.name = "sim:1", .memory_bytes = 1 << 20}};
  runtime rt(o);
  const auto gpus = [](double n) { return task_options{.resources = {{"cpu", 0}, {"gpu", n}}}; };
  test::held_body holder(rt, gpus(1));
  ASSERT_TRUE(holder.has_begun());
  auto pair = rt.spawn(gpus(2), [] {});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rt.spawn(gpus(1), [] {}).wait_for(test::patience)) << i;
  EXPECT_FALSE(pair.is_ready());
  holder.let_go();
  EXPECT_TRUE(pair.wait_for(test::patience));
}

TEST(starvation, of_the_card_that_has_the_data_does_not_happen) {
  using word = unsigned;
  constexpr auto text = R"(GPU_KERNEL void stir(GPU_INOUT(unsigned, a)) {
    const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
    if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = GPU_AT1(a, i) + 1u;
  })";
  static const auto stir = kernel<inout<word, 1>>("stir_there").on(gpu, source{text, "stir"});
  options o;
  o.threads = 2;
  o.cost_cache = "none";
  o.devices = {{"sim:0"}, {"sim:1"}};
  runtime rt(o);
  for (const char* const card : {"sim:1", "sim:0"}) {
    auto a = rt.filled<word>({1 << 14}, tiles(1 << 14), 1);
    rt.spawn(task_options{.where = scope::executor(card)}, stir, update(a)).get();
    for (int i = 0; i < 10; ++i) {
      rt.wait_all();  // a result may be there a moment before its task has given the card back
      EXPECT_EQ(rt.spawn(
                      task_options{.resources = {{"gpu", 1}}},
                      [](task_context& c, view<const word, 1>) { return c.devices()[0].name; }, read(a))
                    .get(),
                card);
    }
  }
}

// A run of calls of 100 us in four chains. None ends before it may; those that have ended are counted.
struct long_run {
  static constexpr int calls = 2000;
  array<int, 1> x;
  std::atomic<int> ended{0};
  std::atomic<bool> has_begun{false}, may{false};
  graph g;

  explicit long_run(runtime& rt) : x(rt.filled<int>({4}, tiles(1), 0)) {
    g = rt.record([this](recorder& r) {
      for (index_t i = 0; i < calls; ++i)
        r.spawn(
            [this](view<int, 1> v) {
              has_begun = true;
              while (!may) std::this_thread::yield();
              work(100us);
              ++v(v.lo(0));
              ++ended;
            },
            update(x.sub(box<1>{{i % 4}, {i % 4 + 1}})));
    });
  }
  // Begins a run, none of whose calls may end yet.
  future<void> begin(runtime& rt) {
    ended = 0;
    has_begun = may = false;
    auto run = rt.run({.priority = -5}, g);
    while (!has_begun) std::this_thread::yield();
    return run;
  }
};

TEST(starvation, of_a_task_of_a_higher_priority_by_a_run_of_a_graph_does_not_happen) {
  for (const int threads : {1, 2, 4})
    for (const int groups : {1, 2}) {
      if (groups > threads) continue;
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(groups) + " groups");
      options o;
      o.threads = threads;
      o.core_groups = groups;
      runtime rt(o);
      long_run all(rt);
      for (const int priority : {0, 10}) {
        auto run = all.begin(rt);
        auto seen = rt.spawn(task_options{.priority = priority}, [&] { return all.ended.load(); });
        all.may = true;
        EXPECT_LT(seen.get(), all.calls * 3 / 4) << "it began when threads had nothing else, priority " << priority;
        run.get();
      }
      const auto v = all.x.read();
      for (index_t i = 0; i < 4; ++i) EXPECT_EQ(v(i), 2 * all.calls / 4);
    }
}

// The thread that owns the run has lent it its slot.
TEST(starvation, of_a_run_by_a_task_of_a_higher_priority_that_waits_for_it_does_not_happen) {
  for (const int threads : {1, 2}) {
    options o;
    o.threads = threads;
    runtime rt(o);
    long_run all(rt);
    auto run = all.begin(rt);
    auto waits = rt.spawn(task_options{.priority = 1}, [&] {
      const int before = all.ended;
      run.get();
      return std::pair(before, all.ended.load());
    });
    all.may = true;
    ASSERT_TRUE(waits.wait_for(test::patience));
    EXPECT_LT(waits.get().first, all.calls * 3 / 4);
    EXPECT_EQ(waits.get().second, all.calls);
  }
}

// Tasks of the usual priority that come all the while, as long as the run is in progress.
TEST(starvation, of_a_run_by_tasks_of_a_higher_priority_ends_with_them) {
  options o;
  o.threads = 2;
  runtime rt(o);
  long_run all(rt);
  auto run = all.begin(rt);
  std::atomic<int> ran{0};
  for (int i = 0; i < 5000; ++i)
    rt.spawn([&] {
      work(10us);
      ++ran;
    });
  all.may = true;
  ASSERT_TRUE(run.wait_for(test::patience));
  EXPECT_EQ(all.ended, all.calls);
  rt.wait_all();
  EXPECT_EQ(ran, 5000);
}

}  // namespace
