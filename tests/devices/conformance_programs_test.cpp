// What this file is for: the kernels of the runtime, the algorithms and the examples on every device, against loops.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "algorithms/histogram_text.hpp"
#include "algorithms/linear_algebra_text.hpp"
#include "algorithms/stencil_text.hpp"
#include "conformance.hpp"
#include "examples/convolve/correlate.hpp"

namespace conformance_suite {

namespace {

namespace texts = troupe::algorithms::texts;
using troupe::source;

// Memory is written by copies here, as in conformance_kernels_test.cpp.

std::mt19937 random_bits(11);

// Rows that are `pitch` apart, with 9e99 between them.
template <class T>
struct matrix {
  index_t rows, columns, pitch;
  std::vector<T> all;

  matrix(index_t r, index_t c, index_t p) : rows(r), columns(c), pitch(p) {
    all.assign(static_cast<std::size_t>(r * p), static_cast<T>(99));
  }
  T& operator()(index_t i, index_t j) { return all[static_cast<std::size_t>(i * pitch + j)]; }
  T operator()(index_t i, index_t j) const { return all[static_cast<std::size_t>(i * pitch + j)]; }
  shape box() const { return matrix_shape(rows, columns, pitch); }
};

matrix<double> noise(index_t rows, index_t columns, index_t pitch) {
  matrix<double> m(rows, columns, pitch);
  std::uniform_real_distribution<double> value(-1, 1);
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) m(i, j) = value(random_bits);
  return m;
}

// The elements above the diagonal must stay as they are.
matrix<double> positive_definite(index_t n, index_t pitch) {
  auto m = noise(n, n, pitch);
  for (index_t i = 0; i < n; ++i) m(i, i) = static_cast<double>(n) + 1;
  return m;
}

matrix<double> factor_of(matrix<double> a) {
  for (index_t j = 0; j < a.columns; ++j)
    for (index_t i = j; i < a.rows; ++i) {
      double sum = a(i, j);
      for (index_t k = 0; k < j; ++k) sum -= a(i, k) * a(j, k);
      a(i, j) = i == j ? std::sqrt(sum) : sum / a(j, j);
    }
  return a;
}

// The inverses of the diagonal blocks of 32.
matrix<double> inverses_of(const matrix<double>& l) {
  matrix<double> v(l.rows, 32, 32);
  for (index_t i = 0; i < l.rows; ++i)
    for (index_t j = 0; j < 32; ++j) {
      const index_t first = i / 32 * 32;
      double sum = i - first == j ? 1 : 0;
      for (index_t k = first + j; k < i; ++k) sum -= l(i, k) * v(k, j);
      v(i, j) = first + j <= i ? sum / l(i, i) : 0;
    }
  return v;
}

template <class T>
void expect_near(const std::vector<T>& seen, const std::vector<T>& expected) {
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_NEAR(seen[i], expected[i], 1e-13) << i;
}

// An array in device memory, for as long as it is needed.
template <class T>
class array {
 public:
  array(accelerator& a, const std::vector<T>& all, const shape& s)
      : in_(&a), all_(all), shape_(s), memory_(a, all.size() * sizeof(T)) {
    put(a, 0, memory_.at(), all_);
  }
  array(accelerator& a, const matrix<T>& m) : array(a, m.all, m.box()) {}
  std::vector<T> content() const { return conformance_suite::content<T>(*in_, memory_.at(), all_.size()); }
  void add_to(std::vector<kernel_argument>& list) const {
    list.push_back(memory(memory_.at()));
    list.push_back(value(shape_));
  }

 private:
  accelerator* in_;
  std::vector<T> all_;  // the copy is enqueued only
  shape shape_;
  block memory_;
};

template <class T>
void add(std::vector<kernel_argument>& list, const array<T>& a) {
  a.add_to(list);
}
template <class T>
void add(std::vector<kernel_argument>& list, const T& scalar) {
  list.push_back(value(scalar));
}

// With a work-item for each of `items`, dimension 0 first.
template <class... A>
void run(accelerator& a, const source& s, std::array<index_t, 3> items, const A&... arguments) {
  std::vector<kernel_argument> list;
  (add(list, arguments), ...);
  launch_shape how;
  for (std::size_t d = 0; d < 3; ++d) {
    how.items[d] = static_cast<std::uint32_t>(items[d]);
    how.group[d] = s.group[0] ? s.group[d] : (d < 2 ? 16u : 1u);
  }
  a.launch(0, a.load({s.entry, s.text, s.entry}), how, list);
  finish(a);
}

TEST_P(conformance, potrf_and_trsm_agree_with_the_host) {
  const auto a = open();
  for (const index_t n : {1, 7, 33, 40}) {
    const index_t m = 11;
    SCOPED_TRACE(n);
    const auto given = positive_definite(n, n + 3);
    const auto l = factor_of(given);
    const auto v = inverses_of(l);
    const array<double> da(*a, given), dv(*a, matrix<double>(n, 32, 32));
    const std::int64_t zero = 0;
    run(*a, texts::potrf, {n, n, 1}, da, dv, zero, zero, zero);
    expect_near(da.content(), l.all);
    expect_near(dv.content(), v.all);

    const auto b = noise(m, n, n + 1);
    auto x = b;
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        for (index_t k = 0; k < j; ++k) x(i, j) -= x(i, k) * l(j, k);
        x(i, j) /= l(j, j);
      }
    const array<double> dl(*a, l), dw(*a, v), db(*a, b);
    run(*a, texts::trsm, {n, m, 1}, dl, dw, db);
    expect_near(db.content(), x.all);
  }
}

TEST_P(conformance, potrf_leaves_its_mark_where_there_is_no_factor) {
  const auto a = open();
  for (const index_t bad : {0, 36}) {
    auto given = positive_definite(40, 40);
    given(bad, bad) = -1;
    const array<double> da(*a, given), dv(*a, matrix<double>(40, 32, 32));
    const std::int64_t zero = 0;
    run(*a, texts::potrf, {40, 40, 1}, da, dv, zero, zero, zero);
    const auto seen = da.content();
    index_t first = 0;
    while (first < 40 && seen[static_cast<std::size_t>(first * 41)] > 0) ++first;
    EXPECT_EQ(first, bad);
  }
}

TEST_P(conformance, the_products_agree_with_the_host) {
  const auto a = open();
  for (const auto& [m, n, depth] : {std::tuple<index_t, index_t, index_t>{1, 1, 1}, {19, 33, 5}, {17, 16, 35}}) {
    const auto left = noise(m, depth, depth + 2), across = noise(n, depth, depth), right = noise(depth, n, n + 1);
    const auto given = noise(m, n, n + 4), square = noise(m, m, m);
    auto nt = given, nn = given, first = given, lower = square;
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        double sum = 0;
        for (index_t k = 0; k < depth; ++k) nt(i, j) -= left(i, k) * across(j, k);
        for (index_t k = 0; k < depth; ++k) sum += left(i, k) * right(k, j);
        nn(i, j) = 1.5 * sum - 0.5 * given(i, j);
        first(i, j) = 1.5 * sum;
      }
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j <= i; ++j)
        for (index_t k = 0; k < depth; ++k) lower(i, j) -= left(i, k) * left(j, k);
    const array<double> dl(*a, left), da(*a, across), dr(*a, right);
    const array<double> c(*a, given), d(*a, given), e(*a, given), f(*a, square);
    run(*a, texts::gemm_nt, {n, m, 1}, dl, da, c);
    run(*a, texts::gemm, {n, m, 1}, dl, dr, 1.5, -0.5, d);
    run(*a, texts::gemm_first, {n, m, 1}, dl, dr, 1.5, e);
    run(*a, texts::syrk, {m, m, 1}, dl, f);
    run(*a, texts::touch, {1, 1, 1}, f);
    expect_near(c.content(), nt.all);
    expect_near(d.content(), nn.all);
    expect_near(e.content(), first.all);
    expect_near(f.content(), lower.all);
  }
}

TEST_P(conformance, the_stencils_agree_with_the_host) {
  const auto a = open();
  const index_t h = 19, w = 23;  // with a frame of one
  const auto heat = noise(h + 2, w + 2, w + 2);
  matrix<unsigned char> cells(h + 2, w + 2, w + 2), lives(h, w, w);
  for (auto& c : cells.all) c = static_cast<unsigned char>(random_bits() % 3 == 0 ? 7 : 0);
  matrix<double> cool(h, w, w);
  const matrix<double> before = cool;
  const matrix<unsigned char> empty = lives;
  for (index_t y = 0; y < h; ++y)
    for (index_t x = 0; x < w; ++x) {
      cool(y, x) = 0.25 * ((heat(y, x + 1) + heat(y + 2, x + 1)) + (heat(y + 1, x) + heat(y + 1, x + 2)));
      int alive = 0;
      for (index_t dy = 0; dy < 3; ++dy)
        for (index_t dx = 0; dx < 3; ++dx) alive += cells(y + dy, x + dx) != 0;
      lives(y, x) = alive == 3 || (alive == 4 && cells(y + 1, x + 1) != 0);
    }
  // Coordinates are those of the whole array: the frame begins at -1.
  auto around = heat.box();
  around.lo = {-1, -1, 0, 0};
  around.hi = {h + 1, w + 1, 0, 0};
  const array<double> from(*a, heat.all, around), to(*a, before);
  run(*a, texts::jacobi_step, {w, h, 1}, from, to);
  EXPECT_EQ(to.content(), cool.all);
  const array<unsigned char> world(*a, cells.all, around), next(*a, empty);
  run(*a, texts::life_step, {w, h, 1}, world, next);
  EXPECT_EQ(next.content(), lives.all);
}

TEST_P(conformance, the_histograms_agree_with_the_host) {
  const auto a = open();
  const index_t h = 70, w = 190;  // more than a group takes
  matrix<unsigned char> bytes(h, w, w + 3);
  for (auto& b : bytes.all) b = static_cast<unsigned char>(random_bits());
  std::vector<std::uint64_t> before(256, 0xfffffff0u), expected = before;
  for (index_t y = 0; y < h; ++y)
    for (index_t x = 0; x < w; ++x) ++expected[bytes(y, x)];
  const array<unsigned char> image(*a, bytes);
  const array<std::uint64_t> counts(*a, before, vector_shape(256));
  run(*a, texts::of_rank(texts::count_bytes, 2), {w, h, 1}, image, counts);
  EXPECT_EQ(counts.content(), expected);

  for (const index_t n : {1, 100, 257, 300, 4097}) {  // parts of groups
    before.assign(256, 0);
    expected = before;
    std::vector<unsigned char> some(static_cast<std::size_t>(n));
    for (auto& b : some) ++expected[b = static_cast<unsigned char>(random_bits())];
    const array<unsigned char> line(*a, some, vector_shape(n));
    const array<std::uint64_t> found(*a, before, vector_shape(256));
    run(*a, texts::count_bytes, {static_cast<std::uint32_t>(n), 1, 1}, line, found);
    EXPECT_EQ(found.content(), expected) << n;
  }

  const auto numbers = noise(1, 6000, 6000);
  for (const std::size_t bins : {std::size_t{5}, std::size_t{2100}}) {
    before.assign(bins, 1);
    expected = before;
    for (const double v : numbers.all)
      if (v >= -0.5 && v < 0.75)
        ++expected[std::min(static_cast<std::size_t>((v + 0.5) * (static_cast<double>(bins) / 1.25)), bins - 1)];
    const array<double> line(*a, numbers.all, vector_shape(6000));
    const array<std::uint64_t> found(*a, before, vector_shape(static_cast<index_t>(bins)));
    run(*a, texts::count_numbers, {6000, 1, 1}, line, -0.5, 0.75, found);
    EXPECT_EQ(found.content(), expected) << bins;
  }
}

// A box that reaches beyond the tile on all sides, with elements of several words.
template <class T>
void expect_gathers(accelerator& a, const char* entry, index_t words) {
  SCOPED_TRACE(entry);
  const index_t h = 5, w = 7;
  std::vector<T> tile(static_cast<std::size_t>(h * w * words)), expected;
  for (auto& x : tile) x = static_cast<T>(random_bits());
  shape from, to;
  from.hi = {1, 1, h, w};
  from.stride = {h * w, h * w, w, 1};
  to.lo = {0, 0, -2, -1};
  to.hi = {1, 1, h + 1, w + 3};
  to.stride = {(h + 3) * (w + 4), (h + 3) * (w + 4), w + 4, 1};
  for (index_t y = -2; y < h + 1; ++y)
    for (index_t x = -1; x < w + 3; ++x)
      for (index_t k = 0; k < words; ++k)
        expected.push_back(tile[static_cast<std::size_t>(
            (std::clamp<index_t>(y, 0, h - 1) * w + std::clamp<index_t>(x, 0, w - 1)) * words + k)]);
  const array<T> source_array(a, tile, from), target(a, std::vector<T>(expected.size(), T{9}), to);
  const std::string text(kernels::gather);
  // A block of 2048 words, 64 wide.
  run(a, source{text.c_str(), entry, {256, 1, 1}}, {256, 1, 1}, source_array, target, words, index_t{0}, index_t{1}, 6);
  EXPECT_EQ(target.content(), expected);
}

TEST_P(conformance, gather_agrees_with_the_host) {
  const auto a = open();
  expect_gathers<std::uint8_t>(*a, "gather_1", 3);
  expect_gathers<std::uint16_t>(*a, "gather_2", 1);
  expect_gathers<std::uint32_t>(*a, "gather_4", 1);
  expect_gathers<std::uint64_t>(*a, "gather_8", 2);
}

TEST_P(conformance, the_kernel_that_fills_agrees_with_the_host) {
  const auto a = open();
  const std::int64_t words = 50, step = 32;
  const block to(*a, 60 * 4);
  std::vector<std::uint32_t> expected(60, 1);
  const std::vector<std::uint32_t> before = expected;  // stays as it is until the copy has run
  put(*a, 0, to.at(), before);
  for (std::size_t i = 0; i < 50; ++i) expected[i] = static_cast<std::uint32_t>(10 + i % 3);
  const std::uint32_t pattern[] = {10, 11, 12, 13};
  a->launch(0, a->load({"fill", kernels::fill, "fill"}), {{32, 1, 1}, {32, 1, 1}},
            std::vector{memory(to.at()), value(words), value(step), value(3), value(pattern[0]), value(pattern[1]),
                        value(pattern[2]), value(pattern[3])});
  EXPECT_EQ(content<std::uint32_t>(*a, to.at(), 60), expected);
}

TEST_P(conformance, the_filter_of_pictures_agrees_with_the_host) {
  const auto a = open();
  const index_t h = 9, w = 10, c = 4;
  std::vector<unsigned char> pixels(static_cast<std::size_t>((h + 2) * (w + 4) * c)), before(360), expected(360);
  for (auto& p : pixels) p = static_cast<unsigned char>(random_bits());
  matrix<float> weights(3, 5, 5);
  for (auto& x : weights.all) x = static_cast<float>(random_bits() % 16) / 64;  // all sums are exact
  for (index_t y = 0; y < h; ++y)
    for (index_t x = 0; x < w; ++x)
      for (index_t k = 0; k < c; ++k) {
        const auto at = [&](index_t dy, index_t dx) {
          return pixels[static_cast<std::size_t>(((y + dy) * (w + 4) + x + dx) * c + k)];
        };
        float sum = 0;
        for (index_t dy = 0; dy < 3; ++dy)
          for (index_t dx = 0; dx < 5; ++dx) sum += weights(dy, dx) * static_cast<float>(at(dy, dx));
        expected[static_cast<std::size_t>((y * w + x) * c + k)] =
            k == 3 ? at(1, 2) : static_cast<unsigned char>(std::min(sum, 255.0f) + 0.5f);
      }
  shape framed, tile;
  framed.lo = {-1, -2, 0, 0};
  framed.hi = {h + 1, w + 2, c, 0};
  framed.stride = {(w + 4) * c, c, 1, 0};
  tile.hi = {h, w, c, 0};
  tile.stride = {w * c, c, 1, 0};
  const array<unsigned char> from(*a, pixels, framed), to(*a, before, tile);
  const array<float> filter(*a, weights);
  run(*a, source{convolution::correlate_text, "correlate", {16, 8, 1}}, {c, w, h}, from, filter, to);
  EXPECT_EQ(to.content(), expected);
}

}  // namespace

}  // namespace conformance_suite
