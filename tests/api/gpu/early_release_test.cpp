// What this file is for: tasks for cores are released where a task before them has ended, beside a device: where data is
// stays known.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"
#include "tests/api/word_kernels.hpp"

namespace {

using namespace troupe;
using test::cwords;
using test::scale;
using test::stir;
using test::word;
using test::words;

options beside_a_device(int threads) {
  options o;
  o.threads = threads;
  o.cost_cache = "none";
  o.devices = {{"sim:0"}};
  o.eager_devices = true;
  return o;
}

const task_options on_the_device{.where = scope::executor("sim:0")};

// Bodies that say that they have begun and wait to go on, or do neither. One type, so that all calls have one predicted
// time.
struct stop {
  test::gate* begun = nullptr;
  test::gate* goes_on = nullptr;
  void operator()() const {
    if (begun) begun->open();
    if (goes_on) {
      EXPECT_TRUE(goes_on->pass());
    }
  }
};
struct adds {
  stop here;
  void operator()(words a) const {
    here();
    a(0) += 1;
  }
};
struct adds_to_two {
  stop here;
  void operator()(words a, words b) const {
    here();
    a(0) += 1;
    b(0) += 1;
  }
};

class early_beside_a_device : public testing::TestWithParam<int> {
 protected:
  static constexpr index_t n = 4;
  array<word, 1> filled() { return rt.filled<word>({n}, tiles(n), 0); }
  // Has the kernels' times known, as only such tasks are released early, and those for the device compiled.
  void SetUp() override {
    auto a = filled(), b = filled(), c = filled(), d = filled();
    rt.spawn(on_the_device, stir, update(c), word{1});
    rt.spawn(on_the_device, scale, read(c), write(d), word{1}, word{1});
    for (int i = 0; i < 64; ++i) {
      rt.spawn(adds{}, update(a));
      rt.spawn(adds_to_two{}, update(a), update(b));
    }
    rt.wait_all();
  }
  // Runs a task on `x` and `y` and, on the same thread, has the next one on `y` begin, which then waits: the end of the
  // first is known to its waiters, and may not have been reported.
  void leave_one_ended(array<word, 1>& x, array<word, 1>& y) {
    auto ended = rt.spawn(adds_to_two{{&first_begun, &first}}, update(x), update(y));
    after = rt.spawn(adds{{&begun, &second}}, update(y));
    ASSERT_TRUE(first_begun.pass());  // else this thread would run it
    (void)rt.report();                // both are in order now
    first.open();
    ended.get();
    ASSERT_TRUE(begun.pass());
  }
  void let_go_on() {
    second.open();
    after.get();
    rt.wait_all();
  }

  runtime rt{beside_a_device(GetParam())};
  test::gate first_begun, first, begun, second;
  const test::opener always_first{first}, always_second{second};
  future<void> after;
};

TEST_P(early_beside_a_device, a_tile_that_the_device_changes_next_is_what_the_device_has_made_of_it) {
  auto x = filled(), y = filled();
  leave_one_ended(x, y);
  rt.spawn(on_the_device, stir, update(x), word{3}).get();
  let_go_on();
  const auto v = x.read();
  EXPECT_EQ(v(0), 3u);
  EXPECT_EQ(v(3), 3u);
}

TEST_P(early_beside_a_device, a_tile_that_the_device_has_had_before_is_read_there_as_it_is_now) {
  auto x = filled(), y = filled(), z = filled();
  rt.spawn(on_the_device, scale, read(x), write(z), word{1}, word{0}).get();
  leave_one_ended(x, y);
  auto copied = rt.spawn(on_the_device, scale, read(x), write(z), word{10}, word{5});
  let_go_on();
  copied.get();
  const auto v = z.read();
  EXPECT_EQ(v(0), 15u);
  EXPECT_EQ(v(1), 5u);
}

TEST_P(early_beside_a_device, the_cores_see_what_the_device_has_written_since_an_early_task_was_ordered) {
  auto x = filled(), y = filled();
  auto held = rt.spawn(adds_to_two{{nullptr, &first}}, update(x), update(y));
  auto behind = rt.spawn(adds_to_two{}, update(x), update(y));
  auto there = rt.spawn(on_the_device, stir, update(x), word{7});
  auto here = rt.spawn(adds_to_two{}, update(x), update(y));
  (void)rt.report();
  first.open();
  held.get();
  here.get();
  EXPECT_EQ(x.read()(0), 15u);
  EXPECT_EQ(y.read()(0), 3u);
}

TEST_P(early_beside_a_device, a_part_that_the_cores_change_is_not_copied_to_the_device_with_the_rest_of_its_tile) {
  const auto adds_seven = [](words a, stop here) {
    here();
    for (int k = 0; k < 3000; ++k) asm volatile("");  // long enough to be released early, were it for whole tiles
    a(a.lo(0)) += 7;
  };
  auto x = rt.filled<word>({8}, tiles(8), 0), copy = rt.filled<word>({8}, tiles(8), 0);
  auto z = filled(), other = filled();
  for (int i = 0; i < 64; ++i) rt.spawn(adds_seven, update(copy.sub({{0}, {4}})), stop{});
  rt.wait_all();
  auto before = rt.spawn(adds_seven, update(x.sub({{0}, {4}})), stop{&first_begun, &first});
  ASSERT_TRUE(first_begun.pass());
  auto held = rt.spawn(adds_seven, update(x.sub({{0}, {4}})), stop{&begun, &second});
  (void)rt.report();
  first.open();
  ASSERT_TRUE(begun.pass());
  auto rest = rt.spawn(on_the_device, scale, read(x.sub({{4}, {8}})), write(z), word{1}, word{0});
  for (int i = 0; i < 3; ++i)
    rt.spawn(on_the_device, stir, update(other), word{1}).get();  // the device has had its time
  second.open();
  held.get();
  rest.get();
  rt.spawn(on_the_device, scale, read(x), write(copy), word{1}, word{0}).get();
  EXPECT_EQ(copy.read()(0), 14u);
}

// Tasks that change parts of tiles have an account of copies kept, which is not to be taken for a use by the device.
TEST_P(early_beside_a_device, an_array_that_the_device_does_not_use_is_shown_where_it_is) {
  auto x = rt.array<word>({1024}, tiles(64));
  const auto fills = [](words a) {
    for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = 1;
  };
  const auto reads = [](cwords a) { return a(0) + a(1023); };
  rt.spawn(fills, write(x, all{})).get();
  rt.spawn(fills, update(x.sub({{10}, {500}}))).get();
  const auto moved = [&] { return rt.report().executors.front().bytes_moved; };
  const auto before = moved();
  for (int i = 0; i < 10; ++i) {
    rt.spawn(fills, update(x, all{})).get();
    EXPECT_EQ(rt.spawn(reads, read(x, all{})).get(), 2u);
  }
  EXPECT_EQ(moved(), before);
}

// The task takes a moment on either executor, so that what decides is what the two have to do before it.
TEST_P(early_beside_a_device, a_task_that_both_can_run_goes_to_the_device_while_early_ones_keep_the_cores) {
  auto x = filled();
  for (const char* where : {"sim:0", "cpu:0"})
    for (int i = 0; i < 16; ++i) rt.spawn({.where = scope::executor(where)}, stir, update(x), word{1}).get();
  const auto takes_long = [](words a) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    while (std::chrono::steady_clock::now() < until) a(0) += 1;
  };
  std::vector<array<word, 1>> all;
  for (int i = 0; i < 4 * GetParam(); ++i) all.push_back(filled());
  for (int i = 0; i < 4; ++i) rt.spawn(takes_long, update(all[0])).get();  // how long is known now
  for (auto& a : all) rt.spawn(takes_long, update(a));
  auto either = rt.spawn(stir, update(x), word{1});
  either.get();
  EXPECT_EQ(rt.explain(either).executor, "sim:0");
  rt.wait_all();
  rt.spawn({.where = scope::executor("cpu:0")}, stir, update(x), word{1}).get();
  either = rt.spawn(stir, update(x), word{1});
  either.get();
  EXPECT_EQ(rt.explain(either).executor, "cpu:0") << "its data is here, and nothing else is";
}

INSTANTIATE_TEST_SUITE_P(threads, early_beside_a_device, testing::Values(1, 2, 4));

// ---- all together ---------------------------------------------------------------------------------------------------

class programs_beside_a_device : public testing::TestWithParam<unsigned> {};

// Calls for cores only, in chains and crosswise, on whole tiles, parts and windows; some arrays are never used on the
// device, some now and then.
TEST_P(programs_beside_a_device, are_the_serial_program) {
  std::mt19937 random(GetParam());
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  runtime rt(beside_a_device(pick(1, 6)));
  constexpr std::size_t count = 6;
  constexpr index_t tile = 8, in_a_row = 3, n = tile * in_a_row;
  const int spin = pick(0, 2) * 200;
  std::array<array<word, 1>, count> arrays;
  std::array<std::vector<word>, count> model;
  for (std::size_t i = 0; i < count; ++i) {
    arrays[i] = rt.filled<word>({n}, tiles(tile), static_cast<word>(i));
    model[i].assign(static_cast<std::size_t>(n), static_cast<word>(i));
  }
  const auto part = [](array<word, 1>& a, index_t lo, index_t hi) { return a.sub({{lo}, {hi}}); };
  const auto compute = [spin] {
    for (int i = 0; i < spin; ++i) asm volatile("");
  };
  for (int step = 0; step < 1500; ++step) {
    const auto from = static_cast<std::size_t>(pick(0, count - 1)), to = static_cast<std::size_t>(pick(0, count - 1));
    const index_t f = pick(0, in_a_row - 1) * tile, t = pick(0, in_a_row - 1) * tile;
    const auto x = static_cast<word>(pick(1, 1000));
    auto* const read_of = model[from].data() + f;
    auto* const written = model[to].data() + t;
    switch (pick(0, step % 300 < 250 ? 5 : 9)) {
      case 0:
      case 1:
      case 2:
        rt.spawn(
            [compute](words a, word by) {
              compute();
              for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = a(i) * by + 1;
            },
            update(part(arrays[to], t, t + tile)), x);
        for (index_t i = 0; i < tile; ++i) written[i] = written[i] * x + 1;
        break;
      case 3:
      case 4:
        if (from == to) break;
        rt.spawn(
            [compute](cwords a, words b, word by) {
              compute();
              for (index_t i = 0; i < tile; ++i) b(b.lo(0) + i) += a(a.lo(0) + i) * by;
            },
            read(part(arrays[from], f, f + tile)), update(part(arrays[to], t, t + tile)), x);
        for (index_t i = 0; i < tile; ++i) written[i] += read_of[i] * x;
        break;
      case 5: {
        const index_t lo = pick(0, n - 1), hi = pick(static_cast<int>(lo) + 1, n);
        rt.spawn(
            [compute](words a, word by) {
              compute();
              for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) ^= by;
            },
            update(part(arrays[to], lo, hi)), x);
        for (index_t i = lo; i < hi; ++i) model[to][static_cast<std::size_t>(i)] ^= x;
        break;
      }
      case 6:
        if (to < 2) break;  // two arrays never leave host memory
        rt.spawn(on_the_device, stir, update(part(arrays[to], t, t + tile)), x);
        for (index_t i = 0; i < tile; ++i) written[i] = written[i] * x + static_cast<word>(i);
        break;
      case 7:
        if (from == to || from < 2 || to < 2) break;
        rt.for_each(grid(n).chunks(pick(5, n)), scale, read(arrays[from], one_to_one{}),
                    write(arrays[to], one_to_one{}), x, word{9});
        for (index_t i = 0; i < n; ++i)
          model[to][static_cast<std::size_t>(i)] = model[from][static_cast<std::size_t>(i)] * x + 9;
        break;
      case 8: {
        const auto v = arrays[from].read();
        for (index_t i = 0; i < n; ++i) ASSERT_EQ(v(i), model[from][static_cast<std::size_t>(i)]) << "step " << step;
        break;
      }
      default:
        arrays[to] = rt.filled<word>({n}, tiles(tile), x);  // which has not left host memory
        model[to].assign(static_cast<std::size_t>(n), x);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto v = arrays[i].read();
    for (index_t k = 0; k < n; ++k)
      ASSERT_EQ(v(k), model[i][static_cast<std::size_t>(k)]) << "array " << i << " at " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, programs_beside_a_device, testing::Range(0u, 24u));

}  // namespace
