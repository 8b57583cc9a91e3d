// What this file is for: tasks that give their slot up, and tasks that need several (dask/distributed #1226).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using test::gate;

options cores(int threads, int groups = 1) {
  options o;
  o.threads = threads;
  o.core_groups = groups;
  return o;
}

task_options wide(double slots) { return {.resources = {{"cpu", slots}}}; }

/// How many slots bodies hold, by their own account, and whether ever more than there are.
class gauge {
 public:
  explicit gauge(int slots) : slots_(slots) {}
  void in(int n) {
    if (held_.fetch_add(n) + n > slots_) over_ = true;
  }
  void out(int n) { held_.fetch_sub(n); }
  bool was_exceeded() const { return over_; }
  int held() const { return held_; }

 private:
  const int slots_;
  std::atomic<int> held_{0};
  std::atomic<bool> over_{false};
};

// Every slot can be had at once, one body each.
void expect_all_back(runtime& rt, int slots) {
  test::meeting all(slots);
  std::vector<future<bool>> bodies;
  for (int i = 0; i < slots; ++i) bodies.push_back(rt.spawn([&] { return all.arrive_and_wait(); }));
  for (auto& b : bodies) EXPECT_TRUE(b.get());
  EXPECT_EQ(rt.spawn(wide(slots), [] { return 7; }).get(), 7);
}

TEST(gpu_resources, R5_bodies_that_give_their_slot_up_all_run_at_once_and_once) {
  runtime rt(cores(1));
  gate held;
  const test::opener always(held);
  test::meeting seceded(6);
  std::atomic<int> runs{0};
  std::vector<future<void>> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(rt.spawn([&] {
      ++runs;
      yield_core([&] {
        EXPECT_TRUE(seceded.arrive_and_wait());
        EXPECT_TRUE(held.pass());
      });
    }));
  EXPECT_TRUE(seceded.arrive_and_wait());          // five, on one slot
  EXPECT_EQ(rt.spawn([] { return 3; }).get(), 3);  // which is free
  for (const auto& f : all) EXPECT_FALSE(f.is_ready());
  held.open();
  for (auto& f : all) f.get();
  EXPECT_EQ(runs, 5);
}

TEST(gpu_resources, R5_bodies_that_gave_their_slot_up_are_not_taken_over_by_an_idle_group) {
  runtime rt(cores(2, 2));
  gate held;
  const test::opener always(held);
  test::meeting seceded(6);
  std::atomic<int> runs{0};
  std::vector<future<void>> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(
        rt.spawn(task_options{.where = scope::executor("cpu:0") | scope::executor("cpu:1")}, [&](task_context& c) {
          ++runs;
          const std::string before = c.executor();
          yield_core([&] {
            EXPECT_TRUE(seceded.arrive_and_wait());
            EXPECT_TRUE(held.pass());
          });
          EXPECT_EQ(before, c.executor());
          EXPECT_EQ(c.attempt(), 1);
        }));
  EXPECT_TRUE(seceded.arrive_and_wait());
  for (int i = 0; i < 200; ++i) rt.spawn([] {});  // both groups have run dry more than once
  held.open();
  rt.wait_all();
  EXPECT_EQ(runs, 5);
}

TEST(gpu_resources, R13_a_function_with_threads_of_its_own_has_its_slots_to_itself) {
  runtime rt(cores(4));
  gauge slots(4);
  const auto legacy = [&slots] {
    slots.in(4);
    std::atomic<int> sum{0};
    std::vector<std::thread> own;
    for (int i = 0; i < 4; ++i) own.emplace_back([&sum, i] { sum += i; });
    for (auto& t : own) t.join();
    slots.out(4);
    return sum.load();
  };
  std::vector<future<int>> results;
  for (int i = 0; i < 300; ++i) {
    for (int k = 0; k < 5; ++k)
      rt.spawn([&slots] {
        slots.in(1);
        std::this_thread::yield();
        slots.out(1);
      });
    if (i % 10 == 0) results.push_back(rt.spawn(wide(4), legacy));
    if (i % 10 == 5)
      rt.spawn(wide(2), [&slots] {
        slots.in(2);
        std::this_thread::yield();
        slots.out(2);
      });
  }
  for (auto& r : results) EXPECT_EQ(r.get(), 6);
  rt.wait_all();
  EXPECT_FALSE(slots.was_exceeded());
  EXPECT_EQ(slots.held(), 0);
  expect_all_back(rt, 4);
}

TEST(gpu_resources, R13_what_the_kernel_declares_holds_at_every_call) {
  static const resource three[] = {{"cpu", 3}};
  static const auto solver = kernel<inout<int, 1>>("solver").on(cpu, [](view<int, 1> v) { v(0) += 1; }).needs(three);
  runtime rt(cores(3)), small(cores(2));
  auto a = rt.filled<int>({1}, tiles(1), 0);
  for (int i = 0; i < 100; ++i) rt.spawn(solver, update(a));
  EXPECT_EQ(a.read()(0), 100);
  auto b = small.filled<int>({1}, tiles(1), 0);
  const auto e = error_of([&] { small.spawn(solver, update(b)); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::no_resource);
}

TEST(gpu_resources, R13_more_slots_than_any_group_has_are_refused_with_their_number) {
  runtime rt(cores(5, 2));  // three and two
  const auto e = error_of([&] { rt.spawn(wide(4), [] {}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::no_resource);
  EXPECT_TRUE(e->says("4") && e->says("3 is the maximum")) << e->text;
  EXPECT_EQ(rt.spawn(wide(3), [](task_context& c) { return std::string(c.executor()); }).get(), "cpu:0");
  EXPECT_EQ(code_of([&] {
              rt.spawn(task_options{.where = scope::executor("cpu:1"), .resources = {{"cpu", 3}}}, [] {});
            }),
            errc::no_resource);
  EXPECT_EQ(code_of([&] { rt.spawn(wide(2.5), [] {}); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { rt.spawn(wide(1e9), [] {}); }), errc::bad_argument);
}

TEST(gpu_resources, R13_slots_come_back_after_failure_cancel_and_retries) {
  runtime rt(cores(3));
  std::atomic<int> tries{0};
  for (int i = 0; i < 200; ++i) {
    task_options o = wide(2 + i % 2);
    std::stop_source stop;
    o.stop = stop.get_token();
    if (i % 5 == 0) o.retries = 2;
    auto f = rt.spawn(o, [&tries, i] {
      ++tries;
      if (i % 2 == 0) throw std::runtime_error("no");
    });
    if (i % 3 == 0) stop.request_stop();
    rt.spawn([] {});
    if (i % 20 == 0) (void)error_of([&] { f.get(); });
  }
  rt.wait_all();
  expect_all_back(rt, 3);
}

TEST(gpu_resources, R13_a_cancelled_one_keeps_its_slots_until_it_stops) {
  runtime rt(cores(2));
  gate held;
  const test::opener always(held);
  gate begun;
  std::stop_source stop;
  task_options o = wide(2);
  o.stop = stop.get_token();
  auto f = rt.spawn(o, [&](task_context& c) {
    begun.open();
    EXPECT_TRUE(held.pass());
    return c.stop_requested();
  });
  EXPECT_TRUE(begun.pass());
  stop.request_stop();
  auto next = rt.spawn([] {});
  EXPECT_FALSE(next.is_ready());  // no slot is free
  held.open();
  EXPECT_TRUE(f.get());
  next.get();
  expect_all_back(rt, 2);
}

TEST(gpu_resources, R13_parents_and_children_of_many_slots_do_not_block_each_other) {
  runtime rt(cores(4));
  std::vector<future<int>> parents;
  for (int i = 0; i < 20; ++i)
    parents.push_back(rt.spawn(wide(1 + i % 4), [&rt, i] {
      auto child = rt.spawn(wide(4 - i % 4), [&rt] {
        auto inner = rt.spawn([] { return 1; });
        auto all = rt.spawn(wide(4), [] { return 2; });
        return inner.get() + all.get();
      });
      return child.get() + yield_core([] { return 4; });
    }));
  for (auto& p : parents) EXPECT_EQ(p.get(), 7);
  expect_all_back(rt, 4);
}

TEST(gpu_resources, R13_it_gets_its_slots_under_a_flood_of_small_tasks) {
  runtime rt(cores(4));
  std::atomic<bool> enough{false};
  std::atomic<int> flooding{0};
  // Every small task makes its successor: there is never a moment without one.
  struct endless {
    runtime& rt;
    std::atomic<bool>& enough;
    std::atomic<int>& flooding;
    void operator()() const {
      if (enough)
        --flooding;
      else
        rt.spawn(endless(*this));
    }
  };
  flooding = 64;
  for (int i = 0; i < 64; ++i) rt.spawn(endless{rt, enough, flooding});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(rt.spawn(wide(4), [] {}).wait_for(test::patience)) << i;
  enough = true;
  rt.wait_all();
  EXPECT_EQ(flooding, 0);
}

TEST(gpu_resources, R13_small_tasks_run_under_a_flood_of_large_ones) {
  runtime rt(cores(2));
  std::atomic<bool> enough{false};
  struct endless {
    runtime& rt;
    std::atomic<bool>& enough;
    void operator()() const {
      if (!enough) rt.spawn(wide(2), endless(*this));
    }
  };
  for (int i = 0; i < 8; ++i) rt.spawn(wide(2), endless{rt, enough});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(rt.spawn([] {}).wait_for(test::patience)) << i;
  enough = true;
  rt.wait_all();
}

TEST(gpu_resources, R13_those_that_did_not_start_are_abandoned_at_shutdown) {
  options o = cores(2);
  o.shutdown_timeout = std::chrono::milliseconds(0);
  runtime rt(o);
  gate held, begun;
  const test::opener always(held);
  rt.spawn(wide(2), [&] {
    begun.open();
    EXPECT_TRUE(held.pass());
  });
  EXPECT_TRUE(begun.pass());
  auto left = rt.spawn(wide(2), [] {});
  std::thread later([&] { held.open(); });
  const shutdown_report r = rt.shutdown(std::chrono::milliseconds(0));
  later.join();
  EXPECT_EQ(code_of([&] { left.get(); }).has_value(), r.queued_abandoned == 1);
}

}  // namespace
