// What this file is for: the algorithms across nodes: the same results as on one, and every node has had a part.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Two or three runtimes in this process, each a node with one thread, joined over loopback sockets; one worker process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "algorithms/histogram.hpp"
#include "algorithms/linear_algebra.hpp"
#include "algorithms/stencil.hpp"
#include "tests/api/nodes/several_nodes.hpp"
#include "tests/support/processes.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

constexpr index_t side = 480, tile = 96;  // 25 tiles, large enough that a kernel takes longer than a message

std::size_t at(index_t i, index_t j) { return static_cast<std::size_t>(i * side + j); }

std::vector<double> random_numbers(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::vector<double> v(static_cast<std::size_t>(side * side));
  for (double& x : v) x = value(random);
  return v;
}

array<double, 2> packed(runtime& rt, const std::vector<double>& values, const std::string& name) {
  auto a = rt.array<double>({side, side}, tiles(tile, tile), name);
  auto seen = a.write();
  for (index_t i = 0; i < side; ++i)
    for (index_t j = 0; j < side; ++j) seen(i, j) = values[at(i, j)];
  return a;
}

// As a loop of its own has it: each element of the next grid is `f(now, y, x)`.
template <class T, class F>
std::vector<T> in_steps(int steps, std::vector<T> now, F&& f) {
  std::vector<T> next(now.size());
  for (int s = 0; s < steps; ++s, now.swap(next))
    for (index_t y = 0; y < side; ++y)
      for (index_t x = 0; x < side; ++x) next[at(y, x)] = f(now, y, x);
  return now;
}
template <class T>
void expect_same(const array<T, 2>& result, const std::vector<T>& right) {
  const auto seen = result.read();
  for (index_t y = 0; y < side; ++y)
    for (index_t x = 0; x < side; ++x) ASSERT_EQ(seen(y, x), right[at(y, x)]) << y << "," << x;
}

// Every node has run some of the tasks that have ended since the counts were taken, and none ran twice.
class counted_tasks {
 public:
  explicit counted_tasks(const runtime& rt) : rt_(rt), before_(counts()) {}
  void expect_all_took_part(std::uint64_t all) const {
    std::uint64_t sum = 0;
    std::string each;
    const auto now = counts();
    ASSERT_EQ(now.size(), before_.size());
    for (std::size_t i = 0; i < now.size(); ++i) {
      EXPECT_GT(now[i], before_[i]) << rt_.executors()[i].name << " had no part in it";
      sum += now[i] - before_[i];
      each += " " + std::to_string(now[i] - before_[i]) + " (" + std::to_string(rt_.executors()[i].failed) + " threw)";
    }
    EXPECT_EQ(sum, all) << each;
  }

 private:
  std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> c;
    for (const auto& e : rt_.executors()) c.push_back(e.tasks);
    return c;
  }
  const runtime& rt_;
  const std::vector<std::uint64_t> before_;
};

// With so many others.
class algorithms_on_nodes : public testing::TestWithParam<int> {
 protected:
  test::several_nodes nodes_{GetParam(), 1};
};

#if defined(TROUPE_HAVE_BLAS)

constexpr index_t blocks = side / tile;

std::vector<double> positive_definite(unsigned seed) {
  auto a = random_numbers(seed);
  for (index_t i = 0; i < side; ++i) {
    for (index_t j = 0; j < i; ++j) a[at(j, i)] = a[at(i, j)];
    a[at(i, i)] = static_cast<double>(side) + 1;
  }
  return a;
}

// The largest element of A - L L^T, by plain loops on the lower triangle of what the array holds.
double error_of(const std::vector<double>& a, const array<double, 2>& factor) {
  const auto l = factor.read();
  double worst = 0;
  for (index_t i = 0; i < side; ++i)
    for (index_t j = 0; j <= i; ++j) {
      double sum = a[at(i, j)];
      const double *x = &l(i, 0), *y = &l(j, 0);
      for (index_t k = 0; k <= j; ++k) sum -= x[k] * y[k];
      worst = std::max(worst, std::abs(sum));
    }
  return worst;
}

TEST_P(algorithms_on_nodes, factor_a_matrix) {
  const auto values = positive_definite(1);
  auto a = packed(nodes_.a, values, "A");
  const counted_tasks tasks(nodes_.a);
  algorithms::cholesky(nodes_.a, a).get();
  nodes_.a.wait_all();
  // The task list, a look at each diagonal tile, and the end.
  tasks.expect_all_took_part(blocks * (blocks + 1) * (blocks + 2) / 6 + blocks + 1);
  EXPECT_LT(error_of(values, a), 1e-9);
}

TEST_P(algorithms_on_nodes, factor_a_matrix_where_this_one_has_no_part_in_it) {
  const auto values = positive_definite(2);
  auto a = packed(nodes_.a, values, "A");
  algorithms::cholesky(nodes_.a, a, scope::kind(device_kind::node)).get();
  nodes_.a.wait_all();
  // How they divide it is placement's affair: such small tiles may be done sooner by the one that has them.
  const std::uint64_t all = blocks * (blocks + 1) * (blocks + 2) / 6;
  std::uint64_t sum = 0;
  for (const auto& n : nodes_.a.nodes()) sum += n.tasks;
  EXPECT_EQ(sum, all);
  EXPECT_LT(error_of(values, a), 1e-9);
}

TEST_P(algorithms_on_nodes, say_which_row_has_no_factor) {
  auto values = positive_definite(3);
  values[at(tile + 7, tile + 7)] = -1;
  auto a = packed(nodes_.a, values, "A");
  try {
    algorithms::cholesky(nodes_.a, a, scope::kind(device_kind::node)).get();
    FAIL() << "a matrix that is not positive definite was factored";
  } catch (const task_failed& failure) {
    EXPECT_THROW(
        try { failure.rethrow_cause(); } catch (const algorithms::not_positive_definite& cause) {
          EXPECT_EQ(cause.block(), 1);
          EXPECT_EQ(cause.row(), tile + 7);
          throw;
        },
        algorithms::not_positive_definite);
  }
}

TEST_P(algorithms_on_nodes, multiply_matrices) {
  const auto a = random_numbers(4), b = random_numbers(5), c = random_numbers(6);
  auto at_ = packed(nodes_.a, a, "A"), bt = packed(nodes_.a, b, "B"), ct = packed(nodes_.a, c, "C");
  const counted_tasks tasks(nodes_.a);
  algorithms::gemm(nodes_.a, 0.5, at_, bt, -2.0, ct).get();
  nodes_.a.wait_all();
  tasks.expect_all_took_part(blocks * blocks * blocks + blocks * blocks + 1);
  const auto result = ct.read();
  std::vector<double> row(static_cast<std::size_t>(side));
  for (index_t i = 0; i < side; ++i) {
    for (index_t j = 0; j < side; ++j) row[static_cast<std::size_t>(j)] = -2 * c[at(i, j)];
    for (index_t k = 0; k < side; ++k)
      for (index_t j = 0; j < side; ++j) row[static_cast<std::size_t>(j)] += 0.5 * a[at(i, k)] * b[at(k, j)];
    for (index_t j = 0; j < side; ++j)
      ASSERT_NEAR(result(i, j), row[static_cast<std::size_t>(j)], 1e-9) << i << "," << j;
  }
}

#endif

TEST_P(algorithms_on_nodes, relax) {
  const auto start = random_numbers(7);
  auto a = packed(nodes_.a, start, "heat");
  const counted_tasks tasks(nodes_.a);
  const int steps = 6;
  const auto relaxed = algorithms::jacobi(nodes_.a, a, steps, border::wrap);
  nodes_.a.wait_all();
  tasks.expect_all_took_part(steps * (side / tile) * (side / tile));
  const auto round = [](index_t i) { return (i + side) % side; };
  expect_same(relaxed, in_steps(steps, start, [&](const std::vector<double>& now, index_t y, index_t x) {
                return 0.25 * ((now[at(round(y - 1), x)] + now[at(round(y + 1), x)]) +
                               (now[at(y, round(x - 1))] + now[at(y, round(x + 1))]));
              }));
}

// A cell of the next generation, where nobody lives beyond the edge.
std::uint8_t next_cell(const std::vector<std::uint8_t>& now, index_t y, index_t x) {
  const auto alive = [&](index_t v, index_t u) {
    return v >= 0 && u >= 0 && v < side && u < side && now[at(v, u)] != 0 ? 1 : 0;
  };
  int around = -alive(y, x);
  for (index_t v = -1; v <= 1; ++v)
    for (index_t u = -1; u <= 1; ++u) around += alive(y + v, x + u);
  return static_cast<std::uint8_t>(around == 3 || (around == 2 && alive(y, x) != 0));
}

TEST_P(algorithms_on_nodes, live) {
  std::mt19937 random(8);
  std::vector<std::uint8_t> start(static_cast<std::size_t>(side * side));
  for (auto& cell : start) cell = random() % 3 == 0;
  auto a = nodes_.a.adopt(start, {side, side}, tiles(tile, tile), "world");
  const counted_tasks tasks(nodes_.a);
  const int generations = 5;
  const auto lived = algorithms::life(nodes_.a, a, generations, border::fill);
  nodes_.a.wait_all();
  tasks.expect_all_took_part(generations * (side / tile) * (side / tile));
  expect_same(lived, in_steps(generations, start, next_cell));
}

// Tiles that the owner's cores have given room to go to others and come back.
TEST_P(algorithms_on_nodes, live_here_and_there_by_turns) {
  std::mt19937 random(8);
  std::vector<std::uint8_t> now(static_cast<std::size_t>(side * side));
  for (auto& cell : now) cell = random() % 3 == 0;
  auto a = nodes_.a.array<std::uint8_t>({side, side}, tiles(tile, tile), "world");
  {
    const auto cells = a.write();
    for (index_t y = 0; y < side; ++y)
      for (index_t x = 0; x < side; ++x) cells(y, x) = now[at(y, x)];
  }
  for (const scope& where : {scope::cpu(), scope::kind(device_kind::node), scope::cpu(), scope::any()}) {
    a = algorithms::life(nodes_.a, a, 4, border::fill, 0, where);  // even: in the same array
    now = in_steps(4, now, next_cell);
  }
  expect_same(a, now);
}

TEST_P(algorithms_on_nodes, count) {
  std::mt19937 random(9);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(side * side));
  std::vector<std::uint64_t> expected(256);
  for (auto& b : bytes) ++expected[b = static_cast<std::uint8_t>(random())];
  auto image = nodes_.a.adopt(bytes, {side, side}, tiles(tile, tile), "image");
  auto bins = nodes_.a.filled<std::uint64_t>({256}, tiles(256), 0, "bins");
  const counted_tasks tasks(nodes_.a);
  algorithms::histogram(nodes_.a, image, bins).get();
  nodes_.a.wait_all();
  tasks.expect_all_took_part((side / tile) * (side / tile));
  const auto seen = bins.read();
  for (index_t i = 0; i < 256; ++i) EXPECT_EQ(seen(i), expected[static_cast<std::size_t>(i)]) << i;
}

INSTANTIATE_TEST_SUITE_P(beside, algorithms_on_nodes, testing::Values(1, 2), [](const auto& others) {
  return others.param == 1 ? std::string("one_other") : std::to_string(others.param) + "_others";
});

TEST(algorithms_on_nodes_that_only_link_them, are_offered) {
  options o = test::node_options("owner", {}, 1);
  o.cluster.cluster_name = "system-test";  // as tests/support/nodes.hpp has it
  runtime rt(o);
  test::child worker({ONLY_LINKS, "worker", "worker", "-", "127.0.0.1:0", rt.addresses().front()});
  ASSERT_TRUE(rt.wait_for_nodes(1, std::chrono::seconds(20))) << worker.err();
  const auto there = scope::at("worker");
  auto world = rt.filled<std::uint8_t>({8, 8}, tiles(4, 4), 1, "world");
  const auto lived = algorithms::life(rt, world, 1, border::fill, 0, there);
  EXPECT_EQ(lived.read()(0, 0), 1);
  EXPECT_EQ(lived.read()(4, 4), 0);
  auto heat = rt.filled<double>({8, 8}, tiles(4, 4), 2.0, "heat");
  EXPECT_EQ(algorithms::jacobi(rt, heat, 1, border::wrap, 0, there).read()(3, 3), 2.0);
  auto bins = rt.filled<std::uint64_t>({256}, tiles(256), 0, "bins");
  algorithms::histogram(rt, world, bins, there);
  EXPECT_EQ(bins.read()(1), 64U);
#if defined(TROUPE_HAVE_BLAS)
  auto matrix = rt.filled<double>({8, 8}, tiles(8, 8), 0.0, "A");
  {
    auto seen = matrix.update();  // zero elsewhere
    for (index_t i = 0; i < 8; ++i) seen(i, i) = 4;
  }
  algorithms::cholesky(rt, matrix, there).get();
  EXPECT_EQ(matrix.read()(5, 5), 2.0);
#endif
}

}  // namespace
