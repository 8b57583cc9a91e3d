// What this file is for: the order of tasks on overlapping data, and which tasks may run at the same time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::gate;
using test::meeting;
using troupe::index_t;

box<1> span_of(index_t lo, index_t hi) { return {{lo}, {hi}}; }

void set_all(view<int, 1> v, int value) {
  for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = value;
}

TEST(order, a_read_sees_the_write_before_it) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  auto a = rt.filled<int>({8}, tiles(8), 0, "a");
  rt.spawn([&](view<int, 1> v) { set_all(v, go.pass() ? 1 : -1); }, write(a));
  auto seen = rt.spawn([](view<const int, 1> v) { return v(7); }, read(a));
  EXPECT_FALSE(seen.is_ready());
  go.open();
  EXPECT_EQ(seen.get(), 1);
}

TEST(order, a_read_does_not_see_the_write_after_it) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  auto a = rt.filled<int>({8}, tiles(8), 5, "a");
  auto seen = rt.spawn([&](view<const int, 1> v) { return go.pass() ? v(3) : -1; }, read(a));
  auto written = rt.spawn([](view<int, 1> v) { set_all(v, 6); }, write(a));
  EXPECT_FALSE(written.is_ready());
  go.open();
  EXPECT_EQ(seen.get(), 5);
  EXPECT_EQ(a.read()(3), 6);
}

TEST(order, the_later_of_two_writes_wins) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  auto a = rt.array<int>({8}, tiles(8), "a");
  rt.spawn([&](view<int, 1> v) { set_all(v, go.pass() ? 1 : -1); }, write(a));
  auto second = rt.spawn([](view<int, 1> v) { set_all(v, 2); }, write(a));
  go.open();
  second.get();
  EXPECT_EQ(a.read()(0), 2);
}

TEST(order, updates_of_one_array_run_in_program_order) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  auto a = rt.filled<std::int64_t>({1}, tiles(1), 1, "a");
  std::int64_t expected = 1;
  for (int i = 0; i < 500; ++i) {
    rt.spawn([i](view<std::int64_t, 1> v) { v(0) = (v(0) * 31 + i) % 1'000'003; }, update(a));
    expected = (expected * 31 + i) % 1'000'003;
  }
  EXPECT_EQ(a.read()(0), expected);
}

TEST(order, boxes_that_share_elements_across_tiles_keep_program_order) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  auto a = rt.filled<int>({100}, tiles(10), 0, "a");
  rt.spawn([&](view<int, 1> v) { set_all(v, go.pass() ? 1 : -1); }, write(a.sub(span_of(5, 25))));
  auto before = rt.spawn([](view<const int, 1> v) { return v(0); }, read(a.sub(span_of(24, 40))));
  rt.spawn([](view<int, 1> v) { set_all(v, 2); }, write(a.sub(span_of(20, 30))));
  auto after = rt.spawn([](view<const int, 1> v) { return v(0) * 10 + v(1); }, read(a.sub(span_of(19, 21))));
  EXPECT_FALSE(before.is_ready());
  EXPECT_FALSE(after.is_ready());
  go.open();
  EXPECT_EQ(before.get(), 1);
  EXPECT_EQ(after.get(), 12);
  const auto seen = a.read();
  for (index_t i = 0; i < 100; ++i) ASSERT_EQ(seen(i), i < 5 ? 0 : i < 20 ? 1 : i < 30 ? 2 : 0) << i;
}

TEST(order, a_write_waits_for_every_reader_of_a_part) {
  runtime rt(options{.threads = 4});
  gate go;
  const test::opener always(go);
  auto a = rt.filled<int>({30}, tiles(10), 1, "a");
  std::atomic<int> readers_done{0};
  for (index_t i = 0; i < 3; ++i)
    rt.spawn(
        [&](view<const int, 1>) {
          if (go.pass()) ++readers_done;
        },
        read(a.sub(span_of(i * 9, i * 9 + 5))));
  auto written = rt.spawn(
      [&](view<int, 1> v) {
        set_all(v, 2);
        return readers_done.load();
      },
      write(a));
  go.open();
  EXPECT_EQ(written.get(), 3);
}

TEST(order, of_a_two_dimensional_halo_exchange_is_that_of_the_program) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  auto a = rt.filled<int>({9, 9}, tiles(3, 3), 1, "a");
  auto b = rt.array<int>({9, 9}, tiles(3, 3), "b");
  const auto sum = [](view<const int, 2> from, view<int, 2> to) {
    for (index_t y = to.lo(0); y < to.hi(0); ++y)
      for (index_t x = to.lo(1); x < to.hi(1); ++x)
        to(y, x) = (from(y - 1, x) + from(y, x + 1) + from(y + 1, x - 1)) % 97;
  };
  for (int step = 0; step < 10; ++step) {
    rt.for_each(grid(9, 9), sum, read(a, window(1, 1).wrap()), write(b));
    rt.for_each(grid(9, 9), sum, read(b, window(1, 1).wrap()), write(a));
  }
  int expected = 1;
  for (int step = 0; step < 20; ++step) expected = expected * 3 % 97;
  const auto seen = a.read();
  for (index_t y = 0; y < 9; ++y)
    for (index_t x = 0; x < 9; ++x) ASSERT_EQ(seen(y, x), expected);
}

TEST(order, a_host_view_holds_conflicting_tasks_back_until_it_is_dropped) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({4}, tiles(4), 1, "a");
  future<int> reader;
  future<void> writer;
  {
    auto held = a.update();
    reader = rt.spawn([](view<const int, 1> v) { return v(0); }, read(a));
    writer = rt.spawn([](view<int, 1> v) { set_all(v, 3); }, write(a));
    rt.spawn([] {}).get();  // others are not held back
    EXPECT_FALSE(reader.is_ready());
    held(0) = 2;
  }
  EXPECT_EQ(reader.get(), 2);
  writer.get();
  EXPECT_EQ(a.read()(0), 3);
}

TEST(order, a_host_read_that_is_not_granted_in_time_gives_nothing) {
  runtime rt(options{.threads = 1});
  gate go;
  const test::opener always(go);
  auto a = rt.filled<int>({4}, tiles(4), 1, "a");
  rt.spawn([&](view<int, 1> v) { v(0) = go.pass() ? 2 : -1; }, update(a));
  EXPECT_FALSE(a.try_read_for(std::chrono::milliseconds(1)).has_value());
  go.open();
  const auto granted = a.try_read_for(test::patience);
  ASSERT_TRUE(granted.has_value());
  EXPECT_EQ((*granted)(0), 2);
}

// ---- what runs at the same time -------------------------------------------------------------------------------------

TEST(concurrency, tasks_on_different_arrays_run_together) {
  runtime rt(options{.threads = 2});
  meeting both(2);
  auto a = rt.array<int>({4}, tiles(4), "a");
  auto b = rt.array<int>({4}, tiles(4), "b");
  const auto body = [&](view<int, 1> v) {
    set_all(v, 0);
    return both.arrive_and_wait();
  };
  auto first = rt.spawn(body, write(a));
  auto second = rt.spawn(body, write(b));
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
}

TEST(concurrency, tasks_without_arguments_run_together_on_two_core_groups) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  meeting both(2);
  auto first = rt.spawn([&] { return both.arrive_and_wait(); });
  auto second = rt.spawn([&] { return both.arrive_and_wait(); });
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
}

TEST(concurrency, readers_of_one_array_run_together) {
  runtime rt(options{.threads = 3});
  meeting all_three(3);
  auto a = rt.filled<int>({4}, tiles(4), 1, "a");
  std::vector<future<bool>> readers;
  for (int i = 0; i < 3; ++i)
    readers.push_back(rt.spawn([&](view<const int, 1>) { return all_three.arrive_and_wait(); }, read(a)));
  for (auto& r : readers) EXPECT_TRUE(r.get());
}

TEST(concurrency, writers_of_different_tiles_run_together) {
  runtime rt(options{.threads = 2});
  meeting both(2);
  auto a = rt.array<int>({8}, tiles(4), "a");
  auto done = rt.for_each(
      grid(8),
      [&](view<int, 1> v) {
        set_all(v, 1);
        if (!both.arrive_and_wait()) throw std::runtime_error("alone");
      },
      write(a));
  EXPECT_NO_THROW(done.get());
}

TEST(concurrency, writers_of_different_boxes_of_one_tile_run_together) {
  runtime rt(options{.threads = 2});
  meeting both(2);
  auto a = rt.filled<int>({10}, tiles(10), 0, "a");
  const auto body = [&](view<int, 1> v, int value) {
    set_all(v, value);
    return both.arrive_and_wait();
  };
  auto first = rt.spawn(body, write(a.sub(span_of(0, 5))), 1);
  auto second = rt.spawn(body, write(a.sub(span_of(5, 10))), 2);
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
  const auto seen = a.read();
  EXPECT_EQ(seen(4), 1);
  EXPECT_EQ(seen(5), 2);
}

TEST(concurrency, reductions_with_one_operator_run_together) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  meeting both(2);
  auto sum = rt.filled<int>({1}, tiles(1), 10, "sum");
  std::vector<future<bool>> parts;
  for (int i = 1; i <= 2; ++i)
    parts.push_back(rt.spawn(
        [&, i](view<int, 1> v) {
          v(0) += i;
          return both.arrive_and_wait();
        },
        reduce(sum)));
  for (auto& p : parts) EXPECT_TRUE(p.get());
  EXPECT_EQ(sum.read()(0), 13);
}

// ---- handles and bytes ----------------------------------------------------------------------------------------------

TEST(handles, the_last_one_to_go_frees_the_bytes_at_once) {
  runtime rt(options{.threads = 2});
  const auto before = rt.report().bytes_allocated;
  {
    auto a = rt.array<double>({1000}, tiles(100), "a");
    rt.spawn([](view<double, 1> v) { v(0) = 1; }, write(a)).get();
    rt.wait_all();
    EXPECT_GE(rt.report().bytes_allocated, before + 8000);
    EXPECT_EQ(rt.report().arrays, 1u);
    auto copy = a;
    auto part = a.sub(span_of(10, 20));
    a = {};
    copy = {};
    EXPECT_GE(rt.report().bytes_allocated, before + 8000) << "a handle of a part keeps the whole";
  }
  EXPECT_EQ(rt.report().bytes_allocated, before);
  EXPECT_EQ(rt.report().arrays, 0u);
}

TEST(handles, dropped_before_the_tasks_ran_leave_the_data_to_them) {
  runtime rt(options{.threads = 1});
  gate go;
  const test::opener always(go);
  const auto before = rt.report().bytes_allocated;
  future<int> result;
  {
    auto a = rt.array<int>({100}, tiles(10), "a");
    rt.spawn([&](view<int, 1> v) { set_all(v, go.pass() ? 7 : -1); }, write(a));
    result = rt.spawn([](view<const int, 1> v) { return v(99); }, read(a));
  }
  go.open();
  EXPECT_EQ(result.get(), 7);
  rt.wait_all();
  EXPECT_EQ(rt.report().bytes_allocated, before);
}

TEST(handles, of_adopted_data_keep_it_without_copying) {
  runtime rt(options{.threads = 1});
  std::vector<int> data{1, 2, 3, 4, 5, 6};
  const int* address = data.data();
  auto a = rt.adopt(std::move(data), {2, 3}, tiles(2, 3), "a");
  const auto seen = a.read();
  EXPECT_EQ(seen.data(), address);
  EXPECT_EQ(seen(1, 2), 6);
}

TEST(handles, of_borrowed_memory_write_to_it) {
  std::vector<int> mine(12, 1);
  {
    runtime rt(options{.threads = 2});
    auto a = rt.borrow(std::span<int>(mine), {3, 4}, tiles(2, 2), "mine");
    rt.for_each(
        grid(3, 4),
        [](view<int, 2> v) {
          for (index_t y = v.lo(0); y < v.hi(0); ++y)
            for (index_t x = v.lo(1); x < v.hi(1); ++x) v(y, x) += static_cast<int>(y * 4 + x);
        },
        update(a));
    a.read();  // done, and visible to the host
  }
  for (int i = 0; i < 12; ++i) EXPECT_EQ(mine[static_cast<std::size_t>(i)], 1 + i);
}

TEST(handles, are_needed_in_calls) {
  runtime rt(options{.threads = 1});
  array<int, 1> none;
  EXPECT_EQ(test::code_of([&] { rt.spawn([](view<const int, 1>) {}, read(none)); }), errc::bad_argument);
  EXPECT_EQ(test::code_of([&] { none.read(); }), errc::bad_argument);
}

}  // namespace
