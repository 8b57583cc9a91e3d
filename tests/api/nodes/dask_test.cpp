// What this file is for: on several nodes, what Dask and Ray test of theirs, each behaviour by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Tests with processes that are killed, stopped and cut off are in tests/system; tests/README.md has the list, and what
// does not apply.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <thread>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"
#include "tests/api/gates.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe;
using namespace test;
using test::comes_true;
using troupe::index_t;

std::atomic<int> ran{0};
std::atomic<int> at_once{0}, at_once_max{0};
std::mutex order_lock;
std::vector<long> order;
gate* held = nullptr;

constexpr auto add = kernel<inout<long, 1>, long>("dask.add").on(cpu, [](view<long, 1> a, long v) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += v;
});
// Takes about so many microseconds of a core.
constexpr auto toil = kernel<inout<long, 1>, long>("dask.toil").on(cpu, [](view<long, 1> a, long us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ++ran;
  for (index_t i = a.lo(0); i < a.hi(0); ++i) ++a(i);
});
constexpr auto look =
    kernel<in<long, 1>, out<long, 1>, long>("dask.look").on(cpu, [](view<const long, 1> from, view<long, 1> a, long i) {
      a(a.lo(0)) = from(i);
    });
constexpr auto total =
    kernel<in<long, 1>, red<long, 1>>("dask.total").on(cpu, [](view<const long, 1> a, view<long, 1> t) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) t(0) += a(i);
    });
constexpr auto wait_at_gate = kernel<inout<long, 1>>("dask.wait_at_gate").on(cpu, [](view<long, 1> a) {
  ++ran;
  if (held->pass()) ++a(a.lo(0));
});
constexpr auto note = kernel<inout<long, 1>, long>("dask.note").on(cpu, [](view<long, 1>, long what) {
  const std::lock_guard hold(order_lock);
  order.push_back(what);
});
constexpr auto constrained = kernel<inout<long, 1>>("dask.constrained").on(cpu, [](view<long, 1> a) {
  const int now = ++at_once;
  for (int most = at_once_max; now > most && !at_once_max.compare_exchange_weak(most, now);) continue;
  std::this_thread::yield();
  --at_once;
  ++a(a.lo(0));
});
meeting* together = nullptr;
// Takes so many microseconds, the first six of them at the same time.
constexpr auto six_meet = kernel<inout<long, 1>, long>("dask.six_meet").on(cpu, [](view<long, 1> a, long us) {
  if (ran++ < 6 && !together->arrive_and_wait()) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ++a(a.lo(0));
});
const offer offered{six_meet, add, toil, look, total, wait_at_gate, note, constrained};

// ---- T1, T2, T3: which node gets work -------------------------------------------------------------------------------

TEST(nodes_dask, t1_a_node_that_joins_while_tasks_wait_gets_some_of_them_and_none_runs_twice) {
  runtime a(node_options("a", {}, 1));
  constexpr int count = 60;
  const auto x = a.filled<long>({count}, tiles(1), 0), y = a.filled<long>({8}, tiles(1), 0);
  a.for_each(grid(8), toil, update(y), 20'000L);  // how long they take is known from here on
  a.wait_all();
  ran = 0;
  a.for_each(grid(count), toil, update(x), 20'000L);
  runtime b(node_options("b", a.addresses(), 1));
  a.wait_all();
  EXPECT_GE(tasks_of(a, "b"), 5u);
  EXPECT_LE(tasks_of(a, "b"), 55u);
  EXPECT_EQ(ran, count);
  const auto v = x.read();
  for (index_t i = 0; i < count; ++i) EXPECT_EQ(v(i), 1);
}

TEST(nodes_dask, t2_small_tasks_stay_with_a_large_input) {
  several_nodes n(2);
  // 8 MiB, which take longer to send than a thousand tasks that look at one number of them. Sanitizers make tasks ten
  // times as slow and copies hardly slower: then it would be worth it.
  const index_t numbers = sanitized ? 1 << 23 : 1 << 20;
  const auto root = n.a.filled<long>({numbers}, tiles(numbers), 3);
  const auto results = n.a.filled<long>({1200}, tiles(1), 0);
  const auto look_at = [&](index_t i, const task_options& o) {
    n.a.spawn(o, look, read(root), write(results.sub(box<1>{{i}, {i + 1}})), static_cast<long>(i));
  };
  for (index_t i = 0; i < 200; ++i) look_at(i, {.where = scope::here()});  // they are known to be small
  n.a.wait_all();
  for (index_t i = 200; i < 1200; ++i) {
    look_at(i, {});
    if (sanitized && i % 50 == 0) n.a.wait_all();  // one that was held up counts for all that wait
  }
  n.a.wait_all();
  EXPECT_EQ(tasks_of(n.a, "b") + tasks_of(n.a, "c"), 0u);
  const auto v = results.read();
  for (index_t i = 0; i < 1200; ++i) ASSERT_EQ(v(i), 3);
}

void leave_with_a_running_body() {
  several_nodes n(1, 1);
  gate g;
  held = &g;
  const opener open(g);
  ran = 0;
  const auto x = n.a.filled<long>({2}, tiles(1), 0);
  const auto running = n.a.spawn(on("b"), wait_at_gate, update(x.sub(box<1>{{0}, {1}})));
  ASSERT_TRUE(comes_true([] { return ran == 1; }));
  std::thread leaves([&] { n.b().shutdown(30s); });
  std::vector<future<void>> others;
  for (int i = 0; i < 20; ++i) others.push_back(n.a.spawn(add, update(x.sub(box<1>{{1}, {2}})), 1L));
  g.open();
  leaves.join();
  for (const auto& f : others) EXPECT_TRUE(f.wait_for(patience));
  EXPECT_TRUE(running.wait_for(patience));
  EXPECT_NO_THROW(running.get());
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(x.read()(0), 1);
  EXPECT_EQ(x.read()(1), 20);
}

TEST(nodes_dask, t3_what_a_node_runs_while_it_leaves_is_not_run_elsewhere_and_what_it_has_not_begun_is) {
  leave_with_a_running_body();
}

// A node that was released before placement here knew what only it had showed in one round of fifteen.
TEST(nodes_dask, t3_what_only_a_leaving_node_has_is_fetched_each_time) {
  for (int round = 0; round < (sanitized ? 10 : 60) && !HasFailure(); ++round) leave_with_a_running_body();
}

TEST(nodes_dask, t3_what_a_node_has_not_begun_when_it_gives_up_waiting_runs_elsewhere) {
  several_nodes n(1, 1);
  gate g;
  held = &g;
  const opener open(g);
  ran = 0;
  const auto x = n.a.filled<long>({2}, tiles(1), 0);
  const auto part = x.sub(box<1>{{1}, {2}});
  const auto here = n.a.spawn({.where = scope::here()}, wait_at_gate, update(x.sub(box<1>{{0}, {1}})));
  ASSERT_TRUE(comes_true([] { return ran == 1; })) << "the only thread here is busy";
  n.a.spawn(on("b"), add, update(part), 1L).get();
  const auto y = n.a.filled<long>({1}, tiles(1), 0);
  const auto there = n.a.spawn(on("b"), wait_at_gate, update(y));
  ASSERT_TRUE(comes_true([] { return ran == 2; })) << "so is the one there";
  const std::uint64_t before = n.b().report().spawned;
  std::vector<future<void>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(n.a.spawn({.where = scope::at("b") | scope::here()}, add, update(part), 1L));
  ASSERT_TRUE(comes_true([&] { return n.b().report().spawned > before; })) << "they go to where their data is";
  std::thread leaves([&] { EXPECT_FALSE(n.b().shutdown(0s).complete) << "a body has not returned"; });
  EXPECT_TRUE(comes_true([&] { return n.a.nodes().empty(); }));
  g.open();
  leaves.join();
  for (const auto& f : all) {
    ASSERT_TRUE(f.wait_for(patience));
    EXPECT_NO_THROW(f.get());
  }
  EXPECT_NO_THROW(here.get());
  EXPECT_THROW(there.get(), error) << "it was to run on that node only";
  EXPECT_EQ(x.read()(1), 21);
}

// ---- T4, T5: quantities and priorities ------------------------------------------------------------------------------

TEST(nodes_dask, t4_tasks_that_hold_a_quantity_never_exceed_it_beside_nodes_and_it_is_given_back) {
  options o = node_options("a");
  o.resources = {{"A", 2}};
  runtime a(o), b(node_options("b", a.addresses()));
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  at_once = at_once_max = 0;
  const auto x = a.filled<long>({100}, tiles(1), 0);
  for (index_t i = 0; i < 100; ++i)
    a.spawn({.resources = {{"A", 1}}}, constrained, update(x.sub(box<1>{{i}, {i + 1}})));
  a.wait_all();
  EXPECT_LE(at_once_max, 2);
  const auto v = x.read();
  for (index_t i = 0; i < 100; ++i) EXPECT_EQ(v(i), 1);
  ASSERT_EQ(a.report().resources_free.size(), 1u);
  EXPECT_EQ(a.report().resources_free[0].amount, 2);
}

TEST(nodes_dask, t4_a_node_that_joins_with_more_of_a_quantity_gets_its_part_of_those_that_wait_for_it) {
  options few = node_options("a", {}, 8);
  few.resources = {{"A", 2}};
  runtime a(few);
  ran = 0;
  meeting six(6);
  together = &six;
  constexpr index_t count = 100;
  const auto x = a.filled<long>({count}, tiles(1), 0);
  for (index_t i = 0; i < count; ++i)
    a.spawn({.resources = {{"A", 1}}}, six_meet, update(x.sub(box<1>{{i}, {i + 1}})), 5000L);
  options more = node_options("b", a.addresses(), 8);
  more.resources = {{"A", 4}};
  runtime b(more);
  a.wait_all();  // six met: two here and four there
  EXPECT_GE(tasks_of(a, "b"), 20u);
  EXPECT_LE(tasks_of(a, "b"), 80u);
  EXPECT_EQ(ran, count);
  const auto v = x.read();
  for (index_t i = 0; i < count; ++i) EXPECT_EQ(v(i), 1);
  EXPECT_EQ(a.report().resources_free.at(0).amount, 2);
  EXPECT_EQ(b.report().resources_free.at(0).amount, 4);
}

TEST(nodes_dask, t4_what_only_a_node_has_is_held_there_and_refused_once_that_is_gone) {
  options o = node_options("b");
  o.resources = {{"A", 1}};
  auto b = std::make_unique<runtime>(o);
  runtime a(node_options("a", b->addresses()));
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  const auto x = a.filled<long>({2}, tiles(1), 0);
  const auto ask = [&](index_t i, double amount) {
    return a.spawn({.resources = {{"A", amount}}}, wait_at_gate, update(x.sub(box<1>{{i}, {i + 1}})));
  };
  try {
    ask(0, 2);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::no_resource);
  }
  gate g;
  held = &g;
  const opener open(g);
  ran = 0;
  const auto first = ask(0, 1), second = ask(1, 1);
  const auto after = a.spawn({.where = scope::here()}, add, update(x.sub(box<1>{{1}, {2}})), 1L);
  ASSERT_TRUE(comes_true([] { return ran == 1; }));
  EXPECT_EQ(b->report().resources_free.at(0).amount, 0);
  EXPECT_FALSE(b->shutdown(0s).complete) << "a body has not returned";
  for (const auto& f : {first, second}) try {
      ASSERT_TRUE(f.wait_for(patience));
      f.get();
      FAIL();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::no_resource) << e.what();
    }
  EXPECT_EQ(ran, 1) << "the second had to wait for what the first one held";
  EXPECT_TRUE(a.wait_all_for(patience)) << "what depends on a task that is refused has ended, too";
  ASSERT_TRUE(after.is_ready());
  EXPECT_THROW(after.get(), task_failed);
}

TEST(nodes_dask, t5_a_late_task_of_higher_priority_starts_first_on_a_node_too) {
  several_nodes n(1, 1);
  gate g;
  held = &g;
  const opener open(g);
  ran = 0;
  order.clear();
  const auto x = n.a.filled<long>({6}, tiles(1), 0);
  const auto one = [&](index_t i) { return x.sub(box<1>{{i}, {i + 1}}); };
  n.a.spawn(on("b"), wait_at_gate, update(one(0)));
  ASSERT_TRUE(comes_true([] { return ran == 1; }));
  for (long i = 1; i < 5; ++i) n.a.spawn(on("b"), note, update(one(i)), i);
  n.a.spawn({.where = scope::at("b"), .priority = 5}, note, update(one(5)), 5L);
  ASSERT_TRUE(comes_true([&] { return n.b().executors()[0].queued == 5; })) << "all are there, with what they read";
  g.open();
  n.a.wait_all();
  ASSERT_EQ(order.size(), 5u);
  EXPECT_EQ(order[0], 5);
}

// ---- T6, T10: nodes that go and come --------------------------------------------------------------------------------

TEST(nodes_dask, t6_ten_results_whose_node_is_gone_still_add_up_to_55_three_times_in_a_row) {
  nodes_apart n;
  runtime& a = n.a;
  const auto results = a.filled<long>({10}, tiles(1), 0);
  for (long i = 0; i < 10; ++i)
    a.spawn({.where = scope::here()}, add, update(results.sub(box<1>{{i}, {i + 1}})), i + 1);
  for (int round = 0; round < 3; ++round) {
    if (round != 0) n.meet();
    a.for_each(on("b"), grid(10), add, update(results), 1L);  // from now on they are there only
    a.wait_all();
    n.part();
    const auto sum = a.filled<long>({1}, tiles(1), 0L);
    a.for_each(grid(10), total, read(results), reduce(sum, std::plus<>(), 0L));
    EXPECT_EQ(sum.read()(0), 55 + 10 * (round + 1));
    EXPECT_TRUE(comes_true([&] { return a.nodes().empty(); }));
  }
}

TEST(nodes_dask, t6_what_lost_results_were_made_of_may_be_of_tasks_that_were_released_early) {
  nodes_apart n;
  runtime& a = n.a;
  const auto known = a.filled<long>({1}, tiles(1), 0);
  for (int i = 0; i < 64; ++i) a.spawn({.where = scope::here()}, add, update(known), 1L);  // its time is known then
  a.wait_all();
  const auto results = a.filled<long>({10}, tiles(1), 0);
  for (long i = 0; i < 30; ++i)
    a.spawn({.where = scope::here()}, add, update(results.sub(box<1>{{i % 10}, {i % 10 + 1}})), i % 10 + 1);
  a.for_each(on("b"), grid(10), add, update(results), 1L);
  a.wait_all();
  n.part();
  const auto sum = a.filled<long>({1}, tiles(1), 0L);
  a.for_each(grid(10), total, read(results), reduce(sum, std::plus<>(), 0L));
  EXPECT_EQ(sum.read()(0), 3 * 55 + 10);
}

TEST(nodes_dask, t10_nodes_that_are_made_and_ended_all_the_while_change_no_result_of_an_array_job) {
  runtime a(node_options("a"));
  const index_t size = 200, tile = 25;
  const auto x = a.filled<long>({size * size}, tiles(tile * size), 0);
  std::atomic<bool> stop{false};
  std::atomic<int> made{0};
  std::vector<std::thread> makers;
  for (int k = 0; k < 3; ++k)
    makers.emplace_back([&, k] {
      while (!stop) {
        runtime other(node_options("w" + std::to_string(k), a.addresses(), 1));
        other.wait_for_nodes(1, 20s);
        ++made;
        std::atomic<int> before{ran.load()};
        static_cast<void>(comes_true([&] { return stop || ran > before + 20; }, 2s));
      }
    });
  long steps = 0;
  ran = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < 4s) {
    for (int i = 0; i < 5; ++i, ++steps) a.for_each(grid(size * size), toil, update(x), 100L);
    ASSERT_TRUE(a.wait_all_for(patience));
  }
  stop = true;
  for (auto& t : makers) t.join();
  EXPECT_GT(made, 3);
  const auto v = x.read();
  for (index_t i = 0; i < size * size; ++i) ASSERT_EQ(v(i), steps);
  EXPECT_TRUE(comes_true([&] { return a.nodes().empty(); }));
}

// ---- T12, T14: memory -----------------------------------------------------------------------------------------------

TEST(nodes_dask, t12_a_node_that_has_more_than_fits_spills_what_was_used_longest_ago_and_reads_it_back) {
  const scratch_folder folder;
  runtime a(node_options("a"));
  options o = node_options("b", a.addresses());
  o.memory_bytes = 1 << 20;
  o.spill_directory = folder.path().string();
  runtime b(o);
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  const auto x = a.filled<long>({64 * 8192}, tiles(8192), 0);  // four times that
  for (long i = 0; i < 4; ++i) a.for_each(on("b"), grid(64 * 8192), add, update(x), i);
  a.wait_all();
  const runtime_report there = b.report();
  EXPECT_LE(there.bytes_allocated_max, 1u << 20);
  EXPECT_GE(there.bytes_on_disk, 3u << 20);
  EXPECT_GT(there.bytes_read_back, 0u);
  const auto v = x.read();
  for (index_t i = 0; i < 64 * 8192; ++i) ASSERT_EQ(v(i), 0 + 1 + 2 + 3);
  EXPECT_EQ(tasks_of(a, "b"), 4u * 64);
}

TEST(nodes_dask, t14_what_is_larger_than_a_node_runs_where_there_is_room) {
  runtime a(node_options("a"));
  options o = node_options("b", a.addresses());
  o.memory_bytes = 1 << 16;
  runtime b(o);
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  const auto x = a.filled<long>({1 << 16}, tiles(1 << 16), 1);  // eight times that
  const auto only = a.spawn(on("b"), add, update(x), 1L);
  ASSERT_TRUE(only.wait_for(patience));
  const auto why = error_of([&] { only.get(); });
  ASSERT_TRUE(why);
  EXPECT_TRUE(why->says("memory")) << why->text;
  const auto y = a.filled<long>({1 << 16}, tiles(1 << 16), 1);
  for (int i = 0; i < 10; ++i) a.spawn({.where = scope::at("b") | scope::here()}, add, update(y), 1L);
  ASSERT_TRUE(a.wait_all_for(patience));
  EXPECT_EQ(y.read()(77), 11);
}

// ---- T11, T15, T17: nothing is left ---------------------------------------------------------------------------------

TEST(nodes_dask, t15_copies_that_are_dropped_are_never_the_last_ones) {
  several_nodes n(2);
  const auto x = n.a.filled<long>({64}, tiles(8), 0);
  for (long i = 0; i < 30; ++i) {
    n.a.for_each(on(i % 2 == 0 ? "b" : "c"), grid(64), add, update(x), 1L);
    const auto y = n.a.filled<long>({64}, tiles(8), i);  // which goes at once, everywhere
    n.a.for_each(on(i % 2 == 0 ? "c" : "b"), grid(64), add, update(y), 1L);
  }
  n.a.wait_all();
  EXPECT_TRUE(comes_true([&] { return n.rest[0]->report().arrays == 1 && n.rest[1]->report().arrays == 1; }));
  const auto v = x.read();
  for (index_t i = 0; i < 64; ++i) EXPECT_EQ(v(i), 30);
}

TEST(nodes_dask, t17_after_failures_cancellations_and_resets_every_slot_and_every_byte_is_free) {
  nodes_apart n;
  runtime& a = n.a;
  {
    std::vector<array<long, 1>> all;
    std::stop_source stop;
    for (int i = 0; i < 200; ++i) {
      all.push_back(a.filled<long>({1024}, tiles(256), 0));
      a.for_each({.where = scope::at("b"), .stop = i % 5 == 0 ? stop.get_token() : std::stop_token()}, grid(1024), toil,
                 update(all.back()), 50L);
      if (i % 50 == 49) {
        stop.request_stop();
        stop = std::stop_source();
        n.way->cut();
      }
    }
    ASSERT_TRUE(a.wait_all_for(patience));
    for (std::size_t i = 1; i < all.size(); i += i % 5 == 4 ? 2 : 1) EXPECT_EQ(all[i].read()(1023), 1) << i;
  }
  EXPECT_TRUE(comes_true([&] { return n.b().report().arrays == 0 && a.report().arrays == 0; }));
  EXPECT_EQ(n.b().report().bytes_allocated + a.report().bytes_allocated, 0u);
  EXPECT_EQ(n.b().report().spawned, n.b().report().finished);
  // Every thread there takes part again: two bodies that wait for each other.
  gate g;
  held = &g;
  const opener open(g);
  ran = 0;
  const auto x = a.filled<long>({2}, tiles(1), 0);
  a.spawn(on("b"), wait_at_gate, update(x.sub(box<1>{{0}, {1}})));
  a.spawn(on("b"), wait_at_gate, update(x.sub(box<1>{{1}, {2}})));
  EXPECT_TRUE(comes_true([] { return ran == 2; }));
  g.open();
  EXPECT_EQ(x.read()(1), 1);
}

}  // namespace
