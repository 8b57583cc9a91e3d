// What this file is for: waits of a thread that holds a host view: those that can never end are told, others are not.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::code_of;
using test::error_of;

using ints = view<int, 1>;
using cints = view<const int, 1>;

struct open_view : testing::Test {
  runtime rt{options{.threads = 2}};
  array<int, 1> a = rt.filled<int>({8}, tiles(4), 1, "a");
  array<int, 1> b = rt.filled<int>({8}, tiles(4), 1, "b");
  future<void> change_a() {
    return rt.spawn([](ints v) { ++v(0); }, update(a));
  }
};

TEST_F(open_view, makes_waiting_for_a_task_that_conflicts_an_error_that_names_both) {
  auto v = a.update();
  const auto f = rt.spawn(
      {.name = "change"}, [](ints x) { ++x(0); }, update(a));
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::would_deadlock);
  EXPECT_TRUE(e->says("'change'")) << e->text;
  EXPECT_TRUE(e->says("'a'")) << e->text;
  EXPECT_EQ(code_of([&] { f.wait(); }), errc::would_deadlock);
  v.close();
  EXPECT_NO_THROW(f.get());
}

TEST_F(open_view, makes_waiting_for_what_comes_after_such_a_task_an_error) {
  auto v = a.read();
  change_a();
  const auto last = rt.spawn([](cints x, ints y) { y(0) = x(0); }, read(a), update(b));
  const auto all = rt.for_each(
      grid(8), [](ints y) { ++y(y.lo(0)); }, update(b));
  EXPECT_EQ(code_of([&] { last.get(); }), errc::would_deadlock);
  EXPECT_EQ(code_of([&] { all.get(); }), errc::would_deadlock);
  EXPECT_EQ(code_of([&] { last.then([] { return 1; }).get(); }), errc::would_deadlock);
  EXPECT_EQ(code_of([&] { (void)b.read(); }), errc::would_deadlock);
  v.close();
  EXPECT_EQ(b.read()(0), 3);
}

TEST_F(open_view, makes_waiting_for_everything_an_error_if_a_task_waits_for_it) {
  auto v = a.update();
  rt.spawn([](ints x) { ++x(0); }, update(b));
  EXPECT_NO_THROW(rt.wait_all());
  const auto f = change_a();
  EXPECT_EQ(code_of([&] { rt.wait_all(); }), errc::would_deadlock);
  EXPECT_FALSE(rt.wait_all_for(1ms));
  v.close();
  EXPECT_NO_THROW(rt.wait_all());
  EXPECT_TRUE(f.is_ready());
}

TEST_F(open_view, makes_waiting_for_everything_an_error_if_a_task_comes_later_that_waits_for_it) {
  auto v = a.update();
  test::gate go_on;
  const test::opener at_end(go_on);
  rt.spawn([&] {
    EXPECT_TRUE(go_on.pass());
    change_a();
  });
  std::thread later([&] { go_on.open(); });
  EXPECT_EQ(code_of([&] { rt.wait_all(); }), errc::would_deadlock);
  later.join();
}

TEST_F(open_view, makes_a_second_access_that_conflicts_an_error) {
  auto v = a.update();
  EXPECT_EQ(code_of([&] { (void)a.read(); }), errc::would_deadlock);
  EXPECT_EQ(code_of([&] { (void)a.sub({{4}, {8}}).update(); }), errc::would_deadlock);
  v.close();
  EXPECT_EQ(a.read()(0), 1);
  EXPECT_EQ(a.read()(7), 1);  // what it was refused to change is as before
  auto w = a.read();
  EXPECT_EQ(code_of([&] { (void)a.write(); }), errc::would_deadlock);
}

TEST_F(open_view, leaves_what_a_refused_access_was_to_write_as_it_was) {
  for (const bool whole : {true, false}) {
    const array<int, 1> to = whole ? a : a.sub({{2}, {7}});
    auto v = a.read();
    EXPECT_EQ(code_of([&] { (void)to.write(); }), errc::would_deadlock);
    v.close();
    EXPECT_EQ(a.read()(2), 1);
    EXPECT_EQ(rt.spawn([](cints x) { return x(6); }, read(a)).get(), 1);
  }
}

TEST_F(open_view, leaves_what_a_task_before_a_refused_access_writes) {
  auto v = a.read();
  const auto f = change_a();
  EXPECT_EQ(code_of([&] { (void)a.write(); }), errc::would_deadlock);
  v.close();
  EXPECT_NO_THROW(f.get());
  EXPECT_EQ(a.read()(0), 2);
}

TEST_F(open_view, leaves_what_a_task_that_failed_before_a_refused_access_has_read) {
  auto v = a.read();
  const auto f = rt.spawn([](cints, ints) { throw std::runtime_error("no"); }, read(a), update(b));
  EXPECT_EQ(code_of([&] { (void)a.write(); }), errc::would_deadlock);
  v.close();
  f.wait();
  EXPECT_EQ(a.read()(0), 1);
}

TEST_F(open_view, leaves_the_error_of_a_task_before_a_refused_access) {
  auto v = a.read();
  rt.spawn([](ints) { throw std::runtime_error("no"); }, update(a));
  rt.spawn([](cints) {}, read(a));
  EXPECT_EQ(code_of([&] { (void)a.write(); }), errc::would_deadlock);
  v.close();
  EXPECT_TRUE(code_of([&] { (void)a.read(); })) << "what the failed task was to write";
  {
    auto w = a.write();
    for (index_t i = 0; i < 8; ++i) w(i) = 3;
  }
  EXPECT_EQ(a.read()(7), 3);
}

TEST_F(open_view, gives_nothing_a_value_that_had_none_before_a_refused_access) {
  auto fresh = rt.array<int>({8}, tiles(4), "fresh");
  auto v = fresh.write();
  EXPECT_EQ(code_of([&] { (void)fresh.sub({{4}, {8}}).write(); }), errc::would_deadlock);
  for (index_t i = 0; i < 8; ++i) v(i) = 5;
  v.close();
  EXPECT_EQ(fresh.read()(7), 5) << "it has one now";
  auto never = rt.array<int>({8}, tiles(4), "never");
  {
    rt.spawn([](ints x) { x(0) = 1; }, write(never.sub({{0}, {4}}))).get();
    auto w = never.sub({{0}, {4}}).read();
    EXPECT_EQ(code_of([&] { (void)never.write(); }), errc::would_deadlock);
  }
  EXPECT_TRUE(code_of([&] { (void)never.sub({{4}, {8}}).read(); })) << "nobody has written it";
}

TEST_F(open_view, does_not_forbid_to_wait_for_others) {
  auto v = a.sub({{0}, {4}}).update();
  auto w = b.read();
  EXPECT_NO_THROW(rt.spawn([](ints x) { ++x(0); }, update(a.sub({{4}, {8}}))).get());
  EXPECT_EQ(rt.spawn([](cints x) { return x(0); }, read(b)).get(), 1);
  EXPECT_EQ(b.read()(0), 1);
  EXPECT_NO_THROW(rt.wait_all());
}

TEST_F(open_view, does_not_forbid_to_wait_for_a_time) {
  auto v = a.update();
  const auto f = change_a();
  EXPECT_FALSE(f.wait_for(1ms));
  EXPECT_FALSE(a.try_read_for(1ms));
  v.close();
  EXPECT_NO_THROW(f.get());
}

TEST_F(open_view, that_another_thread_is_to_close_is_waited_for) {
  auto v = a.update();
  const auto f = change_a();
  test::gate go_on;
  std::thread closer([mine = std::move(v), &go_on]() mutable {
    EXPECT_TRUE(go_on.pass());
    mine.close();
  });
  std::thread opener([&] { go_on.open(); });
  EXPECT_NO_THROW(f.get());
  closer.join();
  opener.join();
}

TEST_F(open_view, of_another_thread_is_waited_for) {
  test::gate opened, go_on;
  std::thread other([&] {
    auto v = a.update();
    opened.open();
    EXPECT_TRUE(go_on.pass());
  });
  ASSERT_TRUE(opened.pass());
  const auto f = change_a();
  std::thread opener([&] { go_on.open(); });
  EXPECT_NO_THROW(f.get());
  EXPECT_NO_THROW(rt.wait_all());
  other.join();
  opener.join();
}

TEST_F(open_view, that_was_moved_within_the_thread_is_still_its_own) {
  auto first = a.update();
  auto second = std::move(first);
  std::optional<host_view<int, 1>> third;
  third = std::move(second);
  const auto f = change_a();
  EXPECT_EQ(code_of([&] { f.get(); }), errc::would_deadlock);
  auto shared = std::make_unique<host_view<int, 1>>(*std::move(third));  // anybody may close this one
  std::thread closer([&] { shared->close(); });
  EXPECT_NO_THROW(f.get());
  closer.join();
}

TEST_F(open_view, in_a_task_makes_waiting_for_a_task_that_conflicts_an_error) {
  const auto outer = rt.spawn([&] {
    auto v = a.update();
    const auto f = change_a();
    const auto code = code_of([&] { f.get(); });
    v.close();
    f.get();
    return code;
  });
  EXPECT_EQ(outer.get(), errc::would_deadlock);
}

TEST_F(open_view, of_a_thread_that_spawns_more_than_the_bound_behind_it_holds_nobody_up) {
  runtime few(options{.threads = 1, .tasks_in_flight_max = 8});
  auto x = few.filled<int>({1}, tiles(1), 0, "x");
  auto v = x.update();
  for (int i = 0; i < 100; ++i) few.spawn([](ints e) { ++e(0); }, update(x));
  v.close();
  EXPECT_EQ(x.read()(0), 100);
}

}  // namespace
