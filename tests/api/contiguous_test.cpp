// What this file is for: boxes over several tiles are shown where the tiles are, where these lie one behind the other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "tests/api/nodes/several_nodes.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

using numbers = std::vector<std::int64_t>;

/// Where each tile of an array is, as tasks see it that read it alone.
template <class T>
std::vector<const T*> places(runtime& rt, const array<T, 1>& a, index_t tile) {
  std::vector<const T*> at;
  for (index_t i = 0; i < a.size()[0]; i += tile)
    at.push_back(rt.spawn([](view<const T, 1> v) { return v.data(); },
                          read(a.sub(box<1>{{i}, {std::min(i + tile, a.size()[0])}})))
                     .get());
  return at;
}

template <class T>
void count_up(runtime& rt, const array<T, 1>& a) {
  rt.for_each(
      grid(a.size()[0]),
      [](view<T, 1> v) {
        for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = static_cast<T>(i);
      },
      write(a, one_to_one{}));
}

TEST(contiguous, tiles_are_read_as_a_whole_where_they_are) {
  runtime rt(options{.threads = 2});
  const auto a = rt.array<float>({1000}, tiles(64), "a");  // the last tile has 40 elements
  count_up(rt, a);
  const std::vector<const float*> at = places(rt, a, 64);
  for (std::size_t t = 0; t < at.size(); ++t) EXPECT_EQ(at[t], at[0] + 64 * t);
  rt.for_each(
      grid(1000).chunks(100),
      [&](view<const float, 1> all_of_it, view<const float, 1>) {
        EXPECT_EQ(all_of_it.data(), at[0]);
        EXPECT_EQ(all_of_it.size(0), 1000);
        for (index_t i = 0; i < 1000; ++i) ASSERT_EQ(all_of_it(i), static_cast<float>(i));
      },
      read(a, all{}), read(a, one_to_one{}));
  rt.wait_all();
  EXPECT_EQ(a.read().data(), at[0]) << "a host view";
}

TEST(contiguous, parts_and_windows_over_several_tiles_are_where_the_tiles_are) {
  runtime rt(options{.threads = 2});
  const auto a = rt.array<std::int64_t, 2>({30, 16}, tiles(4, 16), "a"),
             b = rt.array<std::int64_t, 2>({30, 16}, tiles(4, 16));
  rt.for_each(
      grid(30, 16),
      [](view<std::int64_t, 2> v) {
        for (index_t y = v.lo(0); y < v.hi(0); ++y)
          for (index_t x = v.lo(1); x < v.hi(1); ++x) v(y, x) = 100 * y + x;
      },
      write(a, one_to_one{}));
  const std::int64_t* const begin = a.read().data();
  rt.spawn(
        [&](view<const std::int64_t, 2> v) {
          EXPECT_EQ(v.data(), begin + 3 * 16 + 5);
          for (index_t y = 0; y < 10; ++y)
            for (index_t x = 0; x < 8; ++x) EXPECT_EQ(v(y, x), 100 * (y + 3) + x + 5);
        },
        read(a.sub(box<2>{{3, 5}, {13, 13}})))
      .get();
  rt.for_each(
      grid(30, 16),
      [&](view<const std::int64_t, 2> seen, view<std::int64_t, 2> result) {
        EXPECT_EQ(seen.data(), begin + std::max<index_t>(result.lo(0) - 1, 0) * 16);
        for (index_t y = result.lo(0); y < result.hi(0); ++y)
          for (index_t x = 0; x < 16; ++x)
            result(y, x) = seen(std::max<index_t>(y - 1, 0), x) + seen(std::min<index_t>(y + 1, 29), x);
      },
      read(a, window(1, 0)), write(b, one_to_one{}));
  const auto sums = b.read();
  for (index_t y = 0; y < 30; ++y)
    for (index_t x = 0; x < 16; ++x)
      ASSERT_EQ(sums(y, x), 100 * (std::max<index_t>(y - 1, 0) + std::min<index_t>(y + 1, 29)) + 2 * x);
}

TEST(contiguous, rows_of_one_long_row_have_its_length) {
  runtime rt(options{.threads = 2});
  const auto a = rt.filled<double>({1, 1000}, tiles(1, 64), 1.0, "a");
  const auto seen = a.read();
  EXPECT_EQ(seen.stride(0), 1000);
  EXPECT_EQ(seen(0, 999), 1.0);
}

TEST(contiguous, an_update_with_two_names_shows_both_the_same) {
  runtime rt(options{.threads = 2});
  const auto a = rt.array<std::int64_t>({64}, tiles(16), "a");
  count_up(rt, a);
  rt.spawn(
        [](view<const std::int64_t, 1> r, view<std::int64_t, 1> u) {
          EXPECT_EQ(r.data(), u.data());
          for (index_t i = 0; i < 64; ++i) u(i) = r(i) + 1;
        },
        read(a), update(a))
      .get();
  EXPECT_EQ(a.read()(63), 64);
}

TEST(contiguous, tiles_are_changed_where_they_are) {
  runtime rt(options{.threads = 2});
  const auto a = rt.array<std::int64_t>({640}, tiles(64), "a");
  {
    const auto all_of_it = a.write();
    for (index_t i = 0; i < 640; ++i) all_of_it(i) = i;
  }
  const std::int64_t* const begin = places(rt, a, 64).at(0);
  EXPECT_EQ(a.update().data(), begin);
  rt.spawn(
        [&](view<std::int64_t, 1> v) {
          EXPECT_EQ(v.data(), begin + 100);
          for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = -v(i);
        },
        update(a.sub(box<1>{{100}, {300}})))
      .get();
  const auto now = a.read();
  for (index_t i = 0; i < 640; ++i) ASSERT_EQ(now(i), i < 100 || i >= 300 ? i : -i);
}

TEST(contiguous, a_call_that_is_tried_again_finds_what_was_there) {
  runtime rt(options{.threads = 2});
  const auto a = rt.array<std::int64_t>({640}, tiles(64), "a");
  count_up(rt, a);
  rt.spawn(
        task_options{.retries = 1},
        [](task_context& c, view<std::int64_t, 1> v) {
          for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) += 1000;
          if (c.attempt() == 1) throw std::runtime_error("again");
        },
        update(a.sub(box<1>{{70}, {500}})))
      .get();
  const auto now = a.read();
  for (index_t i = 0; i < 640; ++i) ASSERT_EQ(now(i), i < 70 || i >= 500 ? i : i + 1000);
}

TEST(contiguous, tiles_whose_size_is_not_whole_cache_lines_begin_on_lines_as_ever) {
  runtime rt(options{.threads = 2});
  const auto a = rt.array<float>({1000}, tiles(50), "a");
  count_up(rt, a);
  for (const float* const at : places(rt, a, 50))
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % element_align_max, 0u);
  const auto now = a.read();
  for (index_t i = 0; i < 1000; ++i) ASSERT_EQ(now(i), static_cast<float>(i));
}

TEST(contiguous, filled_tiles_are_filled_when_many_first_look_at_all_of_them) {
  runtime rt(options{.threads = 6});
  for (int round = 0; round < 50; ++round) {
    const auto a = rt.filled<std::int64_t>({1024}, tiles(64), 7, "a");
    std::vector<future<std::int64_t>> sums;
    for (int i = 0; i < 6; ++i)
      sums.push_back(rt.spawn(
          [](view<const std::int64_t, 1> v) {
            return std::accumulate(v.data(), v.data() + v.size(0), std::int64_t{0});
          },
          read(a)));
    for (auto& s : sums) ASSERT_EQ(s.get(), 7 * 1024);
  }
}

constexpr auto negate = kernel<inout<std::int64_t, 1>>("contiguous.negate").on(cpu, [](view<std::int64_t, 1> v) {
  for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = -v(i);
});
const troupe::offer offered{negate};

/// Random calls on arrays in rows of tiles, and the same on plain vectors: whole reads, parts, windows that make room
/// around tiles, failures that are tried again, host views.
class random_program {
 public:
  random_program(runtime& rt, unsigned seed)
      : rt_(rt), random_(seed), tile_(8 * pick(1, 6)), size_(pick(tile_, 12 * tile_)) {
    for (auto* a : {&now_, &next_}) *a = rt.array<std::int64_t>({size_}, tiles(tile_));
    model_.resize(static_cast<std::size_t>(size_));
    const auto v = now_.write();
    for (index_t i = 0; i < size_; ++i) v(i) = model_[static_cast<std::size_t>(i)] = pick(0, 1000);
  }
  void step() {
    switch (pick(0, 5)) {
      case 0:
        return add_mean();
      case 1:
        return smooth(false);
      case 2:
        return smooth(true);
      case 3:
        return change_part();
      case 4:
        return overwrite_part();
      default:
        return check();
    }
  }
  void check() {
    const auto seen = now_.read();
    ASSERT_EQ(numbers(seen.data(), seen.data() + size_), model_) << "tile " << tile_ << ", size " << size_;
  }

 private:
  index_t pick(index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random_); }
  task_options some_options() { return {.retries = pick(0, 3) == 0 ? 1 : 0}; }
  box<1> some_part() {
    const index_t lo = pick(0, size_ - 1);
    return {{lo}, {pick(lo + 1, size_)}};
  }
  // All elements are read by each chunk.
  void add_mean() {
    rt_.for_each(
        grid(size_).chunks(pick(1, size_)),
        [n = size_](view<const std::int64_t, 1> seen, view<std::int64_t, 1> result) {
          const std::int64_t sum = std::accumulate(seen.data(), seen.data() + n, std::int64_t{0});
          for (index_t i = result.lo(0); i < result.hi(0); ++i) result(i) = seen(i) + sum / n;
        },
        read(now_, all{}), write(next_, one_to_one{}));
    std::swap(now_, next_);
    const std::int64_t mean = std::accumulate(model_.begin(), model_.end(), std::int64_t{0}) / size_;
    for (std::int64_t& x : model_) x += mean;
  }
  void smooth(bool wraps) {
    const index_t r = pick(1, 3);
    auto w = window(r);
    if (wraps) w = w.wrap();
    const task_options how = some_options();
    rt_.for_each(
        how, grid(size_),
        [r, fails = how.retries](task_context& c, view<const std::int64_t, 1> seen, view<std::int64_t, 1> result) {
          for (index_t i = result.lo(0); i < result.hi(0); ++i) {
            result(i) = 0;
            for (index_t k = std::max(i - r, seen.lo(0)); k < std::min(i + r + 1, seen.hi(0)); ++k)
              result(i) += seen(k) % 1000;
          }
          if (fails != 0 && c.attempt() == 1 && result.lo(0) == 0) throw std::runtime_error("again");
        },
        read(now_, w), write(next_, one_to_one{}));
    std::swap(now_, next_);
    const numbers old = model_;
    for (index_t i = 0; i < size_; ++i) {
      std::int64_t& x = model_[static_cast<std::size_t>(i)];
      x = 0;
      for (index_t k = i - r; k < i + r + 1; ++k)
        if (wraps || (k >= 0 && k < size_)) x += old[static_cast<std::size_t>((k % size_ + size_) % size_)] % 1000;
    }
  }
  void change_part() {
    const box<1> b = some_part();
    const task_options how = some_options();
    rt_.spawn(
        how,
        [fails = how.retries](task_context& c, view<std::int64_t, 1> v) {
          for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = v(i) * 3 % 1001;
          if (fails != 0 && c.attempt() == 1) throw std::runtime_error("again");
        },
        update(now_.sub(b)));
    for (index_t i = b.lo[0]; i < b.hi[0]; ++i) {
      std::int64_t& x = model_[static_cast<std::size_t>(i)];
      x = x * 3 % 1001;
    }
  }
  void overwrite_part() {
    const box<1> b = some_part();
    rt_.spawn(
        [](view<std::int64_t, 1> v) {
          for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = i;
        },
        write(now_.sub(b)));
    for (index_t i = b.lo[0]; i < b.hi[0]; ++i) model_[static_cast<std::size_t>(i)] = i - b.lo[0];
  }

  runtime& rt_;
  std::mt19937 random_;
  index_t tile_, size_;
  array<std::int64_t, 1> now_, next_;
  numbers model_;
};

TEST(contiguous, random_programs_do_what_the_same_on_vectors_does) {
  runtime two(options{.threads = 2}), five(options{.threads = 5, .core_groups = 2});
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_program p(seed % 2 ? two : five, seed);
    for (int i = 0; i < 20; ++i) p.step();
    p.check();
  }
}

TEST(contiguous, what_other_nodes_have_written_is_read_as_a_whole) {
  test::several_nodes nodes(1);
  const auto a = nodes.a.array<std::int64_t>({1024}, tiles(64), "a");
  count_up(nodes.a, a);
  const std::int64_t* const begin = a.read().data();
  const auto negate_half = [&] {
    for (index_t lo = 0; lo < 1024; lo += 256)
      nodes.a.spawn(test::on("b"), negate, update(a.sub(box<1>{{lo}, {lo + 128}})));
  };
  negate_half();
  {
    const auto now = a.read();  // a copy: tiles that have come from there lie elsewhere
    for (index_t i = 0; i < 1024; ++i) ASSERT_EQ(now(i), i % 256 < 128 ? -i : i);
  }
  negate_half();
  const auto now = a.read();
  EXPECT_EQ(now.data(), begin) << "they come into their places since that was missed";
  for (index_t i = 0; i < 1024; ++i) ASSERT_EQ(now(i), i);
}

}  // namespace
