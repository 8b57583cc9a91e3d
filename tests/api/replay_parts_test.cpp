// What this file is for: runs of recorded graphs whose calls use parts of tiles depend on these parts and no more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::gate;
using troupe::index_t;

std::vector<std::int64_t> contents(const array<std::int64_t, 1>& a) {
  std::vector<std::int64_t> v;
  const auto seen = a.read();
  for (index_t i = 0; i < a.size(0); ++i) v.push_back(seen(i));
  return v;
}

// Chunks that do not follow the tiles: what a run writes by itself need not have been written before.
TEST(replay, of_calls_that_write_a_tile_in_parts_needs_nothing_that_was_there) {
  for (const index_t tile : {12, 8, 5}) {
    runtime rt(options{.threads = 2});
    auto u = rt.array<int>({12}, tiles(tile), "u");
    auto sum = rt.filled<int>({1}, tiles(1), 0);
    const auto fill = [](view<int, 1> v) {
      for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = static_cast<int>(i);
    };
    const auto g = rt.record([&](recorder& r) {
      r.for_each(grid(12).chunks(4), fill, write(u));
      r.spawn(
          [](view<const int, 1> in, view<int, 1> out) {
            for (index_t i = 0; i < 12; ++i) out(0) += in(i);
          },
          read(u), update(sum));
    });
    for (int n = 1; n <= 3; ++n) {
      rt.run(g).get();
      EXPECT_EQ(sum.read()(0), 66 * n) << tile;
    }
    // Data that is in error is overwritten in parts, too.
    EXPECT_ANY_THROW(rt.spawn([](view<int, 1>) { throw std::runtime_error("bad"); }, update(u)).get());
    rt.run(g).get();
    EXPECT_EQ(sum.read()(0), 66 * 4);
    EXPECT_EQ(u.read()(7), 7);
  }
}

TEST(replay, of_calls_that_write_parts_leaves_the_others_unwritten) {
  runtime rt(options{.threads = 1});
  auto u = rt.array<int>({12}, tiles(12), "u");
  const auto g = rt.record([&](recorder& r) {
    r.spawn([](view<int, 1> v) { v(0) = v(1) = 5; }, write(u.sub({{2}, {4}})));
    r.spawn([](view<int, 1> v) { v(0) += 1; }, update(u.sub({{2}, {4}})));
  });
  rt.run(g).get();
  rt.run(g).get();
  EXPECT_EQ(rt.spawn([](view<const int, 1> v) { return v(0) * 10 + v(1); }, read(u.sub({{2}, {4}}))).get(), 65);
  EXPECT_EQ(code_of([&] { rt.spawn([](view<const int, 1>) {}, read(u)).get(); }), errc::uninitialized_read);
  // Readers of what a run has left alone do not wait for it.
  rt.spawn([](view<int, 1> v) { v(0) = 1; }, write(u.sub({{0}, {1}})));
  EXPECT_EQ(rt.spawn([](view<const int, 1> v) { return v(0); }, read(u.sub({{0}, {1}}))).get(), 1);
}

// What a run does to an array of 16 elements, 7 each: it adds 1 to those of [9, 11), reads them, or writes them anew.
enum class use { updates, reads, writes };
graph changing_two(runtime& rt, const array<int, 1>& a, use how) {
  return rt.record([&](recorder& r) {
    const auto add = [](view<int, 1> v) {
      for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) += 1;
    };
    if (how == use::updates) r.spawn(add, update(a.sub({{9}, {11}})));
    if (how == use::reads)
      r.spawn([](view<const int, 1> in, view<int, 1> out) { out(0) = in(0) + in(1); }, read(a.sub({{9}, {11}})),
              write(a.sub({{2}, {3}})));
    if (how == use::writes) {
      r.spawn(
          [](view<int, 1> v) {
            for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = 7;
          },
          write(a.sub({{9}, {11}})));
      r.spawn(add, update(a.sub({{9}, {11}})));
    }
  });
}
// Returns for each element its value, or E if it is in error, or - if nobody has written it.
std::string elements_of(const array<int, 1>& a) {
  std::string text;
  for (index_t i = 0; i < a.size(0); ++i) try {
      text += std::to_string(a.sub({{i}, {i + 1}}).read()(0)) + " ";
    } catch (const error& e) {
      text += e.code() == errc::uninitialized_read ? "- " : "E ";
    }
  return text;
}

TEST(replay, of_a_part_of_a_tile_minds_no_error_in_another_part) {
  for (const index_t tile : {16, 4})
    for (const use how : {use::updates, use::reads, use::writes}) {
      runtime rt(options{.threads = 2});
      auto a = rt.filled<int>({16}, tiles(tile), 7, "a");
      const graph g = changing_two(rt, a, how);
      EXPECT_ANY_THROW(rt.spawn([](view<int, 1>) { throw std::runtime_error("x"); }, write(a.sub({{8}, {9}}))).get());
      rt.run(g).get();
      rt.run(g).get();
      EXPECT_EQ(elements_of(a), how == use::updates ? "7 7 7 7 7 7 7 7 E 9 9 7 7 7 7 7 "
                                : how == use::reads ? "7 7 14 7 7 7 7 7 E 7 7 7 7 7 7 7 "
                                                    : "7 7 7 7 7 7 7 7 E 8 8 7 7 7 7 7 ")
          << tile;
    }
}

TEST(replay, of_a_part_of_a_tile_needs_nothing_else_of_it) {
  for (const index_t tile : {16, 4})
    for (const use how : {use::updates, use::reads}) {
      runtime rt(options{.threads = 2});
      auto a = rt.array<int>({16}, tiles(tile), "a");
      const graph g = changing_two(rt, a, how);
      EXPECT_EQ(code_of([&] { rt.run(g).get(); }), errc::uninitialized_read);
      rt.spawn([](view<int, 1> v) { v(0) = v(1) = 5; }, write(a.sub({{9}, {11}})));
      rt.run(g).get();
      EXPECT_EQ(elements_of(a),
                how == use::updates ? "- - - - - - - - - 6 6 - - - - - " : "- - 10 - - - - - - 5 5 - - - - - ")
          << tile;
    }
}

TEST(replay, that_fails_spoils_what_it_writes_and_no_more) {
  for (const index_t tile : {16, 4}) {
    runtime rt(options{.threads = 2});
    auto a = rt.filled<int>({16}, tiles(tile), 7, "a");
    const graph g = rt.record([&](recorder& r) {
      r.spawn([](view<const int, 1>, view<int, 1>) { throw std::runtime_error("x"); }, read(a.sub({{0}, {5}})),
              update(a.sub({{9}, {11}})));
    });
    EXPECT_ANY_THROW(rt.run(g).get());
    EXPECT_EQ(elements_of(a), "7 7 7 7 7 7 7 7 7 E E 7 7 7 7 7 ") << tile;
  }
}

TEST(replay, of_parts_of_a_tile_is_ordered_with_tasks_on_the_same_elements_and_on_others) {
  for (const index_t tile : {16, 4}) {
    runtime rt(options{.threads = 2});
    auto a = rt.filled<int>({16}, tiles(tile), 7, "a");
    const graph g = changing_two(rt, a, use::updates);
    gate open;
    auto held = rt.spawn(
        [&](view<int, 1> v) {
          EXPECT_TRUE(open.pass());
          v(0) = 20;
        },
        update(a.sub({{9}, {10}})));
    const auto run = rt.run(g);
    rt.spawn([](view<int, 1> v) { v(0) = 1; }, update(a.sub({{3}, {4}}))).get();  // waits for neither
    auto after = rt.spawn([](view<const int, 1> v) { return v(0) * 100 + v(1); }, read(a.sub({{9}, {11}})));
    EXPECT_FALSE(run.is_ready());
    EXPECT_FALSE(after.is_ready());
    open.open();
    EXPECT_EQ(after.get(), 2108);
  }
}

// Steps of a stencil whose border nobody writes: it is read by each run, and may be written between two of them.
TEST(replay, of_steps_inside_a_border_sees_what_others_have_written_to_it) {
  for (const index_t tile : {34, 10}) {
    runtime rt(options{.threads = 2});
    auto a = rt.filled<std::int64_t>({34}, tiles(tile), 0), b = rt.filled<std::int64_t>({34}, tiles(tile), 0);
    std::vector<std::int64_t> want(34, 0);
    const auto step = [](view<const std::int64_t, 1> from, view<std::int64_t, 1> to) {
      for (index_t i = to.lo(0); i < to.hi(0); ++i) to(i) = from(i) + from(i + 1) + from(i + 2);
    };
    const graph g = rt.record([&](recorder& r) {
      for (int n = 0; n < 2; ++n) {
        const auto &from = n == 0 ? a : b, &to = n == 0 ? b : a;
        for (index_t i = 1; i < 33; i += 8)
          r.spawn(step, read(from.sub({{i - 1}, {i + 9}})), write(to.sub({{i}, {i + 8}})));
      }
    });
    for (std::int64_t run = 1; run <= 5; ++run) {
      rt.spawn([run](view<std::int64_t, 1> v) { v(0) = run; }, write(a.sub({{0}, {1}})));
      rt.spawn([run](view<std::int64_t, 1> v) { v(0) = 3 * run; }, write(b.sub({{33}, {34}})));
      rt.run(g).get();
      std::vector<std::int64_t> x = want, y(34, 0);
      x[0] = run;
      for (std::size_t i = 1; i < 33; ++i) y[i] = x[i - 1] + x[i] + x[i + 1];
      y[33] = 3 * run;
      for (std::size_t i = 1; i < 33; ++i) x[i] = y[i - 1] + y[i] + y[i + 1];
      want = x;
      ASSERT_EQ(contents(a), want) << "run " << run << ", tiles of " << tile;
    }
  }
}

}  // namespace
