// What this file is for: what a program meets that has the library inside: names of errors, room, memory, destructors.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"
#include "tests/support/sanitizers.hpp"

namespace {

using namespace std::chrono_literals;
using test::code_of;
using test::error_of;
using test::gate;
using troupe::errc;

// ---- codes ----------------------------------------------------------------------------------------------------------

TEST(error_codes, each_has_a_name_of_its_own) {
  std::set<std::string> names;
  const int last = static_cast<int>(errc::overrun);
  for (int i = 0; i <= last; ++i) names.insert(to_string(static_cast<errc>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_STREQ(to_string(errc::no_executor), "no_executor");
  EXPECT_STREQ(to_string(static_cast<errc>(last + 1)), "unknown");
}

// ---- room -----------------------------------------------------------------------------------------------------------

TEST(try_spawn, gives_nothing_where_there_is_no_room) {
  troupe::runtime rt({.threads = 1, .tasks_in_flight_max = 2});
  gate go;
  const test::opener at_the_end(go);
  auto first = rt.try_spawn([&] { return go.pass(); });
  auto second = rt.try_spawn(
      {.priority = 1}, [](bool b) { return b ? 3 : 4; }, *first);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(rt.try_spawn([] {}));
  EXPECT_FALSE(rt.try_spawn({.name = "urgent"}, [] {}));
  EXPECT_FALSE(rt.try_spawn_for(1ms, [] {}));
  EXPECT_FALSE(rt.try_spawn_for(1ms, {.name = "urgent"}, [] {}));
  go.open();
  EXPECT_EQ(second->get(), 3);
  rt.wait_all();
  EXPECT_TRUE(rt.try_spawn([] {}));
}

TEST(try_spawn, waits_for_room_as_long_as_it_is_told) {
  troupe::runtime rt({.threads = 1, .tasks_in_flight_max = 1});
  gate go;
  const test::opener at_the_end(go);
  rt.spawn([&] { return go.pass(); });
  std::optional<troupe::future<int>> urgent;
  std::thread spawns([&] { urgent = rt.try_spawn_for(std::chrono::hours::max(), [] { return 8; }); });
  go.open();
  spawns.join();
  ASSERT_TRUE(urgent);
  EXPECT_EQ(urgent->get(), 8);
}

TEST(try_spawn, takes_kernels_and_is_never_refused_inside_a_task) {
  static constexpr auto twice =
      troupe::kernel<troupe::inout<int, 1>>("twice").on(troupe::cpu, [](troupe::view<int, 1> v) {
        for (auto i = v.lo(0); i < v.hi(0); ++i) v(i) *= 2;
      });
  troupe::runtime rt({.threads = 1, .tasks_in_flight_max = 1});
  auto a = rt.filled<int>({4}, troupe::tiles(4), 3);
  ASSERT_TRUE(rt.try_spawn(twice, update(a)));
  rt.wait_all();
  EXPECT_TRUE(rt.try_spawn_for(test::patience, {.name = "again"}, twice, update(a)));
  EXPECT_EQ(a.read()(3), 12);
  rt.wait_all();
  EXPECT_EQ(rt.spawn([&] {
                int n = 0;
                for (int i = 0; i < 10; ++i) n += rt.try_spawn([] {}).has_value();
                return n;
              }).get(),
            10);
}

TEST(try_spawn, says_that_the_runtime_was_shut_down) {
  troupe::runtime rt({.threads = 1});
  rt.shutdown(1s);
  EXPECT_EQ(code_of([&] { rt.try_spawn([] {}); }), errc::runtime_stopped);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST(no_memory, more_chunks_than_the_machine_has_room_for_are_refused_at_once) {
  troupe::runtime rt({.threads = 1});
  for (const troupe::index_t chunks : {100'000'000'000, 4'000'000'000'000}) {
    const auto e = error_of([&] { rt.for_each(troupe::index_space<1>{{chunks}, {1}}, [] {}); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code, errc::out_of_memory);
    EXPECT_TRUE(e->says("choose larger chunks")) << e->text;
  }
  rt.for_each(troupe::index_space<1>{{4}, {1}}, [] {}).get();
}

// With little address space left, tasks are spawned until there is none for the next one.
[[noreturn]] void spawn_until_none_is_left(bool for_each) {
  const auto fail = [](const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::_Exit(1);
  };
  gate go;
  troupe::options o{.threads = 1};
  o.tasks_in_flight_max = 1u << 30;
  troupe::runtime rt(o);
  rt.spawn([] {}).get();
  auto blocked = rt.spawn([&] { return go.pass(); });
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  std::size_t pages = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%zu", &pages) != 1) fail("statm");
    std::fclose(f);
  }
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = pages * 4096 + (24u << 20);
  if (::setrlimit(RLIMIT_AS, &limit) != 0) fail("the limit cannot be set");
  std::size_t spawned = 0;
  std::string code;
  try {
    if (for_each)
      rt.for_each(
          troupe::index_space<1>{{2'000'000}, {1}}, [](bool) {}, blocked);
    for (; spawned < 10'000'000; ++spawned) rt.spawn([](bool) {}, blocked);
  } catch (const troupe::error& e) {
    code = to_string(e.code());
  } catch (const std::exception& e) {
    code = e.what();
  }
  limit.rlim_cur = before;
  ::setrlimit(RLIMIT_AS, &limit);
  if (code != "out_of_memory") fail(code.c_str());
  go.open();
  rt.wait_all();
  if (rt.report().finished != spawned + 2) fail("tasks were lost");
  if (rt.spawn([] { return 4; }).get() != 4) fail("it goes on wrongly");
  std::_Exit(0);
}

TEST(no_memory, a_task_for_which_there_is_no_room_is_an_error_with_a_code) {
  if (test::needs_address_space) GTEST_SKIP() << "shadow memory needs all of the address space";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(spawn_until_none_is_left(false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(spawn_until_none_is_left(true), testing::ExitedWithCode(0), "");
}

// ---- destructors ----------------------------------------------------------------------------------------------------

struct thrower {
  bool armed = false;
  explicit thrower(bool a) : armed(a) {}
  thrower(thrower&& o) noexcept : armed(std::exchange(o.armed, false)) {}
  thrower(const thrower&) = delete;
  ~thrower() noexcept(false) {
    if (armed) throw std::runtime_error("thrown by a destructor");
  }
};

struct large_thrower {
  thrower one;
  std::array<char, 300> more;
};

TEST(destructors, what_that_of_a_capture_throws_is_the_tasks_error) {
  troupe::runtime rt({.threads = 1});
  const auto e = error_of([&] { rt.spawn({.name = "careless"}, [t = thrower(true)] {}).get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::task_failed);
  EXPECT_EQ(e->task, "careless");
  EXPECT_EQ(e->cause_text(), "thrown by a destructor");
  EXPECT_EQ(error_of([&] {
              rt.spawn([t = thrower(true)] { throw std::runtime_error("thrown by the body"); }).get();
            })->cause_text(),
            "thrown by the body");
}

TEST(destructors, what_those_of_results_and_of_bodies_that_never_ran_throw_goes_nowhere) {
  troupe::runtime rt({.threads = 1});
  {
    auto small = rt.spawn([] { return thrower(true); });
    auto large = rt.spawn([] { return large_thrower{thrower(true), {}}; });
    small.wait();
    large.wait();
  }
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] { rt.spawn({.stop = stop.get_token()}, [t = thrower(true)] {}).get(); }), errc::cancelled);
  rt.wait_all();
  EXPECT_EQ(rt.spawn([] { return 2; }).get(), 2);
}

// Such destructors are inside the task: while they wait others have the slot, of a worker or of a thread that helps.
TEST(destructors, those_of_captures_may_wait_as_bodies_may) {
  for (const int threads : {1, 2, 4})
    for (const bool helps : {false, true}) {
      troupe::runtime rt({.threads = threads, .waiting_thread_helps = helps});
      std::atomic<int> sum{0};
      const auto waits_at_its_end = [&](int i) {
        return std::shared_ptr<int>(new int(i), [&](const int* p) {
          sum += rt.spawn([i = *p] { return i; }).get();
          delete p;
        });
      };
      std::vector<troupe::future<void>> all;
      for (int i = 1; i <= 100; ++i) {
        all.push_back(rt.spawn([captured = waits_at_its_end(i)] {}));
        all.push_back(
            rt.spawn({.retries = 1}, [captured = waits_at_its_end(i)] { throw std::runtime_error("fails"); }));
      }
      for (auto& f : all) f.wait();
      EXPECT_EQ(sum, 2 * 5050) << threads << " threads, " << helps;
      rt.wait_all();
      EXPECT_EQ(rt.report().executors[0].queued, 0u);
    }
}

// Such destructors are called by a thread that decides; all would stop for good.
TEST(destructors, those_of_captures_that_never_ran_are_told_that_they_cannot_wait) {
  troupe::runtime rt({.threads = 2});
  auto a = rt.filled<int>({1}, troupe::tiles(1), 0);
  std::atomic<int> told{0};
  for (int i = 0; i < 20; ++i) {
    rt.spawn([](troupe::view<int, 1>) { throw std::runtime_error("fails"); }, update(a));
    rt.spawn([captured = std::shared_ptr<int>(new int(i),
                                              [&](const int* p) {
                                                told += code_of([&] { rt.spawn([] {}).get(); }) == errc::would_deadlock;
                                                delete p;
                                              })](troupe::view<const int, 1>) {},
             read(a));
  }
  rt.wait_all();
  EXPECT_EQ(told, 20);
  // Other questions that need a turn are refused as well; tasks of another runtime are none of this one's business.
  troupe::runtime other({.threads = 1});
  std::atomic<int> refused{0}, seen{0};
  rt.spawn([](troupe::view<int, 1>) { throw std::runtime_error("fails"); }, update(a));
  rt.spawn([captured = std::shared_ptr<int>(new int(0),
                                            [&](const int* p) {
                                              refused += code_of([&] { rt.wait_all(); }) == errc::would_deadlock;
                                              refused += code_of([&] { (void)rt.report(); }) == errc::would_deadlock;
                                              seen = other.spawn([] { return 7; }).get();
                                              delete p;
                                            })](troupe::view<const int, 1>) {},
           read(a));
  rt.wait_all();
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(seen, 7);
  rt.spawn([](troupe::view<int, 1> v) { v(0) = 3; }, write(a));
  EXPECT_EQ(a.read()(0), 3);
}

// ---- bodies that end their thread -----------------------------------------------------------------------------------

TEST(thread_exit, a_body_that_ends_its_thread_fails_and_another_thread_takes_over) {
  troupe::runtime rt({.threads = 1, .waiting_thread_helps = false});
  for (int round = 0; round < 20; ++round) {
    auto quits = rt.spawn({.name = "quits"}, [] { ::pthread_exit(nullptr); });
    auto after = rt.spawn([](auto&&) {}, quits);
    std::vector<troupe::future<int>> others;
    for (int i = 0; i < 40; ++i) others.push_back(rt.spawn([i] { return i; }));
    const auto e = error_of([&] { quits.get(); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code, errc::task_failed);
    EXPECT_EQ(e->task, "quits");
    EXPECT_TRUE(e->says("ended its thread")) << e->text;
    EXPECT_EQ(code_of([&] { after.get(); }), errc::dependency_failed);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(others[static_cast<std::size_t>(i)].get(), i);
  }
  rt.wait_all();
  EXPECT_TRUE(rt.shutdown(test::patience).complete);
}

TEST(thread_exit, bodies_that_wait_below_it_fail_too) {
  troupe::runtime rt({.threads = 1, .waiting_thread_helps = false});
  auto outer = rt.spawn([&] { rt.spawn([] { ::pthread_exit(nullptr); }).get(); });
  EXPECT_EQ(code_of([&] { outer.get(); }), errc::task_failed);
  EXPECT_EQ(rt.spawn([] { return 6; }).get(), 6);
}

TEST(thread_exit, tasks_of_no_and_of_several_slots_give_back_what_they_hold) {
  troupe::runtime rt({.threads = 2, .waiting_thread_helps = false});
  for (const double slots : {0.0, 2.0})
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(code_of([&] {
                  rt.spawn({.resources = {{"cpu", slots}}}, [] { ::pthread_exit(nullptr); }).get();
                }),
                errc::task_failed);
  EXPECT_EQ(rt.spawn({.resources = {{"cpu", 2}}}, [] { return 2; }).get(), 2);
  EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
}

TEST(thread_exit, a_recorded_graph_fails_and_runs_again) {
  troupe::runtime rt({.threads = 2, .waiting_thread_helps = false});
  std::atomic<bool> quits{true};
  std::atomic<int> ran{0};
  auto g = rt.record([&](troupe::recorder& r) {
    for (int i = 0; i < 20; ++i)
      r.spawn([&, i] {
        if (i == 7 && quits) ::pthread_exit(nullptr);
        ++ran;
      });
  });
  EXPECT_EQ(code_of([&] { rt.run(g).get(); }), errc::task_failed);
  quits = false;
  ran = 0;
  rt.run(g).get();
  EXPECT_EQ(ran, 20);
}

// ---- explanations ---------------------------------------------------------------------------------------------------

TEST(explanations, the_future_of_a_for_each_says_where_its_chunks_ran) {
  troupe::runtime rt({.threads = 2, .core_groups = 2});
  auto f = rt.for_each({.name = "fill"}, troupe::index_space<1>{{12}, {1}}, [] {});
  f.get();
  rt.wait_all();
  const troupe::explanation e = rt.explain(f);
  EXPECT_EQ(e.task, "fill");
  EXPECT_EQ(e.chunks, 12u);
  std::uint64_t there = 0;
  for (const auto& at : e.chunks_at) {
    EXPECT_TRUE(at.executor.starts_with("cpu:"));
    there += at.chunks;
  }
  EXPECT_EQ(there, 12u);
  EXPECT_NE(e.text().find("task 'fill' of 12 chunks: "), std::string::npos) << e.text();
  EXPECT_NE(e.text().find(" on cpu:"), std::string::npos) << e.text();
}

TEST(explanations, of_chunks_that_have_not_run_there_is_their_number) {
  troupe::runtime rt({.threads = 1});
  gate go;
  const test::opener at_the_end(go);
  auto f = rt.for_each(
      troupe::index_space<1>{{3}, {1}}, [](bool) {}, rt.spawn([&] { return go.pass(); }));
  EXPECT_NE(rt.explain(f).text().find("of 3 chunks: 3 that have not run"), std::string::npos) << rt.explain(f).text();
}

}  // namespace
