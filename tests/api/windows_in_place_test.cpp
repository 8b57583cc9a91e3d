// What this file is for: windows that are shown where their tile is: the same elements as ever, and little is copied.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "points.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

using test::at;
using test::for_points;
using test::point;

constexpr std::int64_t outside = -77, prime = 1'000'000'007;

// A window, and what it shows of values that lie row by row inside limits.
template <int N>
struct rule {
  point<N> radius{};
  border edge = border::clip;

  window_mapper<N> mapper() const {
    window_mapper<N> w;
    w.radius = radius;
    return edge == border::wrap    ? w.wrap()
           : edge == border::clamp ? w.clamp()
           : edge == border::fill  ? w.fill(outside)
                                   : w;
  }
  box<N> around(const point<N>& p) const {
    box<N> b;
    for (std::size_t d = 0; d < N; ++d) {
      b.lo[d] = p[d] - radius[d];
      b.hi[d] = p[d] + radius[d] + 1;
    }
    return b;
  }
  // What the kernel makes of an element.
  std::int64_t result(const view<const std::int64_t, N>& seen, const point<N>& p) const {
    std::int64_t sum = 1;
    for_points(intersect(around(p), seen.bounds()),
               [&](const point<N>& q) { sum = (sum * 31 + at(seen, q) + prime) % prime; });
    return sum;
  }
  // The same by the model.
  std::int64_t right(const std::vector<std::int64_t>& values, const extent<N>& size, const point<N>& p) const {
    std::int64_t sum = 1;
    for_points(around(p), [&](const point<N>& q) {
      index_t offset = 0;
      bool inside = true;
      for (std::size_t d = 0; d < N; ++d) {
        const index_t n = size[static_cast<int>(d)];
        index_t i = q[d];
        if (i < 0 || i >= n) {
          if (edge == border::wrap)
            i = (i % n + n) % n;
          else if (edge == border::clamp)
            i = std::clamp<index_t>(i, 0, n - 1);
          else
            inside = false;
        }
        offset = offset * n + i;
      }
      if (!inside && edge == border::clip) return;
      sum = (sum * 31 + (inside ? values[static_cast<std::size_t>(offset)] : outside) + prime) % prime;
    });
    return sum;
  }
};

// Steps from one array into another and back, as a stencil's loop has them.
template <int N>
class stepping {
 public:
  using values = std::vector<std::int64_t>;

  stepping(runtime& rt, std::mt19937& random, index_t size_max, index_t radius_max)
      : rt_(rt), random_(random), radius_max_(radius_max) {
    for (int d = 0; d < N; ++d) {
      size_[d] = pick(2, size_max);
      tile_[d] = pick(1, std::max<index_t>(1, size_[d] * 2 / 3));
    }
    all_ = whole(size_);
    now_ = rt.array<std::int64_t, N>(size_, tile_shape<N>{tile_}, "now");
    next_ = rt.array<std::int64_t, N>(size_, tile_shape<N>{tile_}, "next");
    beside_ = rt.array<std::int64_t, N>(size_, tile_shape<N>{tile_}, "beside");
    const auto first = now_.write();
    for_points(all_, [&](const point<N>& p) {
      model_.push_back(pick(0, 1000));
      at(first, p) = model_.back();
    });
  }

  std::string text() const {
    std::string s = "size, tile:";
    for (int d = 0; d < N; ++d) s += " " + std::to_string(size_[d]) + ", " + std::to_string(tile_[d]) + ";";
    return s;
  }
  rule<N> any_rule() {
    rule<N> r;
    for (std::size_t d = 0; d < N; ++d) r.radius[d] = pick(0, radius_max_);
    constexpr std::array edges{border::clip, border::clamp, border::wrap, border::fill};
    r.edge = edges[static_cast<std::size_t>(pick(0, 3))];
    return r;
  }
  // One step, and perhaps another window on the same array meanwhile.
  void step(const rule<N>& r) {
    const task_options how{.retries = pick(0, 3) == 0 ? 1 : 0};
    auto body = [r, fails = how.retries](task_context& c, view<const std::int64_t, N> seen,
                                         view<std::int64_t, N> result) {
      for_points(result.bounds(), [&](const point<N>& p) { at(result, p) = r.result(seen, p); });
      if (fails != 0 && c.attempt() == 1 && result.lo(0) == 0) throw std::runtime_error("again");
    };
    const bool two = pick(0, 1) == 0;
    const rule<N> other = any_rule();
    if (two)
      rt_.for_each(
          index_space<N>{size_, {}},
          [other](view<const std::int64_t, N> seen, view<std::int64_t, N> result) {
            for_points(result.bounds(), [&](const point<N>& p) { at(result, p) = other.result(seen, p); });
          },
          read(now_, other.mapper()), write(beside_, one_to_one{}));
    rt_.for_each(how, index_space<N>{size_, {}}, body, read(now_, r.mapper()), write(next_, one_to_one{}));
    const values before = model_;
    apply(r, before, model_);
    std::swap(now_, next_);
    if (two) {
      values right(before.size());
      apply(other, before, right);
      expect(beside_, right);
    }
  }
  // The host changes an element; a task changes a tile in place.
  void touch() {
    point<N> p;
    std::size_t offset = 0;
    for (int d = 0; d < N; ++d) {
      p[static_cast<std::size_t>(d)] = pick(0, size_[d] - 1);
      offset = offset * static_cast<std::size_t>(size_[d]) + static_cast<std::size_t>(p[static_cast<std::size_t>(d)]);
    }
    at(now_.update(), p) += 5;
    model_[offset] += 5;
    rt_.for_each(
        index_space<N>{size_, {}},
        [](view<std::int64_t, N> v) { for_points(v.bounds(), [&](const point<N>& q) { ++at(v, q); }); },
        update(now_, one_to_one{}));
    for (std::int64_t& x : model_) ++x;
  }
  void check() { expect(now_, model_); }

 private:
  index_t pick(index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random_); }
  void apply(const rule<N>& r, const values& from, values& to) const {
    std::size_t i = 0;
    for_points(all_, [&](const point<N>& p) { to[i++] = r.right(from, size_, p); });
  }
  void expect(const array<std::int64_t, N>& a, const values& right) const {
    const auto seen = a.read();
    std::size_t i = 0, wrong = 0;
    for_points(all_, [&](const point<N>& p) { wrong += at(seen, p) != right[i++]; });
    EXPECT_EQ(wrong, 0u) << text();
  }

  runtime& rt_;
  std::mt19937& random_;
  const index_t radius_max_;
  extent<N> size_{}, tile_{};
  box<N> all_;
  array<std::int64_t, N> now_, next_, beside_;
  values model_;
};

template <int N>
void steps_like_the_model(index_t size_max, index_t radius_max, std::uint32_t first_seed, std::uint32_t count) {
  runtime two(options{.threads = 2}), many(options{.threads = 5, .core_groups = 2});
  for (std::uint32_t seed = first_seed; seed < first_seed + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    stepping<N> s(seed % 2 ? two : many, random, size_max, radius_max);
    rule<N> r = s.any_rule();
    for (int i = 0; i < 6; ++i) {
      if (random() % 4 == 0) r = s.any_rule();
      s.step(r);
      if (random() % 4 == 0) s.touch();
    }
    s.check();
    if (testing::Test::HasFailure()) break;
  }
}

TEST(windows_in_place, of_one_dimension_show_what_the_model_shows) { steps_like_the_model<1>(600, 20, 1, 120); }
TEST(windows_in_place, of_two_dimensions_show_what_the_model_shows) { steps_like_the_model<2>(40, 3, 1001, 80); }
TEST(windows_in_place, of_three_dimensions_show_what_the_model_shows) { steps_like_the_model<3>(16, 2, 2001, 40); }
TEST(windows_in_place, of_four_dimensions_show_what_the_model_shows) { steps_like_the_model<4>(8, 1, 3001, 20); }

// ---- what is copied -------------------------------------------------------------------------------------------------

constexpr index_t side = 256;
using grid_of_bytes = array<std::uint8_t, 2>;

std::uint64_t bytes_moved(const runtime& rt) {
  std::uint64_t n = 0;
  for (const auto& e : rt.executors()) n += e.bytes_moved;
  return n;
}

// The sum of the nine elements around each.
inline constexpr auto blur = [](view<const std::uint8_t, 2> from, view<std::uint8_t, 2> to) {
  for (index_t y = to.lo(0); y < to.hi(0); ++y)
    for (index_t x = to.lo(1); x < to.hi(1); ++x) {
      int sum = 0;
      for (index_t v = y - 1; v <= y + 1; ++v)
        for (index_t u = x - 1; u <= x + 1; ++u) sum += from.at(v, u);
      to.at(y, x) = static_cast<std::uint8_t>(sum);
    }
};
std::vector<std::uint8_t> blurred(std::vector<std::uint8_t> now, int steps) {
  std::vector<std::uint8_t> next(now.size());
  const auto at = [](index_t y, index_t x) {
    return static_cast<std::size_t>((y + side) % side * side + (x + side) % side);
  };
  for (int s = 0; s < steps; ++s, now.swap(next))
    for (index_t y = 0; y < side; ++y)
      for (index_t x = 0; x < side; ++x) {
        int sum = 0;
        for (index_t v = y - 1; v <= y + 1; ++v)
          for (index_t u = x - 1; u <= x + 1; ++u) sum += now[at(v, u)];
        next[at(y, x)] = static_cast<std::uint8_t>(sum);
      }
  return now;
}

class bytes_of_windows : public ::testing::TestWithParam<std::pair<index_t, index_t>> {
 protected:
  static std::vector<std::uint8_t> pattern() {
    std::vector<std::uint8_t> v(static_cast<std::size_t>(side * side));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::uint8_t>(i * 7 + i / 91);
    return v;
  }
  grid_of_bytes make(const char* name) {
    return rt_.array<std::uint8_t>({side, side}, tiles(GetParam().first, GetParam().second), name);
  }
  static void fill(const grid_of_bytes& a) {
    const auto values = pattern();
    const auto to = a.write();
    for (index_t y = 0; y < side; ++y)
      for (index_t x = 0; x < side; ++x) to(y, x) = values[static_cast<std::size_t>(y * side + x)];
  }
  static void expect(const grid_of_bytes& a, int steps) {
    const auto right = blurred(pattern(), steps);
    const auto seen = a.read();
    std::size_t wrong = 0;
    for (index_t y = 0; y < side; ++y)
      for (index_t x = 0; x < side; ++x) wrong += seen(y, x) != right[static_cast<std::size_t>(y * side + x)];
    EXPECT_EQ(wrong, 0u);
  }
  // Bytes of all rims: what lies around each tile.
  static std::uint64_t rims() {
    const auto [h, w] = GetParam();
    return static_cast<std::uint64_t>((side / h) * (side / w) * ((h + 2) * (w + 2) - h * w));
  }
  runtime rt_{options{.threads = 2}};
};
INSTANTIATE_TEST_SUITE_P(tilings, bytes_of_windows,
                         ::testing::Values(std::pair<index_t, index_t>{32, side}, std::pair<index_t, index_t>{64, 64},
                                           std::pair<index_t, index_t>{128, 32}));

TEST_P(bytes_of_windows, are_those_of_rims_once_tiles_have_been_written_anew) {
  auto a = make("a"), b = make("b");
  fill(a);
  const auto steps = [&](int n) {
    for (int i = 0; i < n; ++i, std::swap(a, b))
      rt_.for_each(grid(side, side), blur, read(a, window(1, 1).wrap()), write(b));
    rt_.wait_all();
  };
  steps(3);
  const std::uint64_t before = bytes_moved(rt_);
  steps(10);
  EXPECT_EQ(bytes_moved(rt_) - before, 10 * rims());
  expect(a, 13);
}

TEST_P(bytes_of_windows, are_those_of_rims_in_recorded_graphs_too) {
  auto a = make("a"), b = make("b");
  fill(a);
  const graph two = rt_.record([&](recorder& rec) {
    rec.for_each(grid(side, side), blur, read(a, window(1, 1).wrap()), write(b));
    rec.for_each(grid(side, side), blur, read(b, window(1, 1).wrap()), write(a));
  });
  rt_.run(two).wait();
  rt_.run(two).wait();
  const std::uint64_t before = bytes_moved(rt_);
  for (int i = 0; i < 5; ++i) rt_.run(two).wait();
  EXPECT_EQ(bytes_moved(rt_) - before, 10 * rims());
  expect(a, 14);
}

// A task that is under way shows its window until it ends; another window on the same tile is copied, and is right.
TEST_P(bytes_of_windows, that_differ_are_both_shown_at_the_same_time) {
  auto a = make("a"), b = make("b"), c = make("c"), d = make("d");
  fill(a);
  const auto step = [&](const grid_of_bytes& from, const grid_of_bytes& to) {
    rt_.for_each(grid(side, side), blur, read(from, window(1, 1).wrap()), write(to));
  };
  step(a, b);
  step(b, a);
  step(a, b);  // b has room now, and what three steps have made
  std::latch both(2);
  const auto meets = [&](view<const std::uint8_t, 2> from, view<std::uint8_t, 2> to) {
    yield_core([&] { both.arrive_and_wait(); });
    blur(from, to);
  };
  const auto [h, w] = GetParam();
  const auto one_tile = grid(h, w).chunks(h, w);
  rt_.for_each(one_tile, meets, read(b, window(1, 1).wrap()), write(c, fixed<2>{{{0, 0}, {h, w}}}));
  rt_.for_each(one_tile, meets, read(b, window(1, 1).clamp()), write(d, fixed<2>{{{0, 0}, {h, w}}}));
  rt_.wait_all();
  const auto right = blurred(pattern(), 3);
  const auto wrapped = c.sub({{0, 0}, {1, 1}}).read(), clamped = d.sub({{0, 0}, {1, 1}}).read();
  int with_wrap = 0, with_clamp = 0;
  for (index_t y = -1; y <= 1; ++y)
    for (index_t x = -1; x <= 1; ++x) {
      with_wrap += right[static_cast<std::size_t>((y + side) % side * side + (x + side) % side)];
      with_clamp += right[static_cast<std::size_t>(std::max<index_t>(y, 0) * side + std::max<index_t>(x, 0))];
    }
  EXPECT_EQ(wrapped(0, 0), static_cast<std::uint8_t>(with_wrap));
  EXPECT_EQ(clamped(0, 0), static_cast<std::uint8_t>(with_clamp));
}

}  // namespace
