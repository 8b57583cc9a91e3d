// What this file is for: what one node has made and another one reads: it passes between the two, whichever owns it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several runtimes in this process, each a node, joined over loopback sockets. The owner is "a".
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

namespace {

using troupe::index_t;
using troupe::scope;
using namespace std::chrono_literals;

constexpr std::uint64_t mixed(std::uint64_t x, std::uint64_t by) {
  x = (x ^ by) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 29);
}

constexpr auto make = troupe::kernel<troupe::out<std::uint64_t, 1>, std::uint64_t>("pull.make")
                          .on(troupe::cpu, [](troupe::view<std::uint64_t, 1> a, std::uint64_t seed) {
                            std::uint64_t n = 0;
                            for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = mixed(n++, seed);
                          });
constexpr auto weigh =
    troupe::kernel<troupe::in<std::uint64_t, 1>, troupe::red<std::uint64_t, 1>>("pull.weigh")
        .on(troupe::cpu, [](troupe::view<const std::uint64_t, 1> a, troupe::view<std::uint64_t, 1> t) {
          for (index_t i = a.lo(0); i < a.hi(0); ++i) t(0) += mixed(a(i), 3);
        });
// The neighbours' values, mixed; what is outside counts as zero. `begin`: where in `from` that is which belongs to
// `to`.
constexpr auto lean = troupe::kernel<troupe::in<std::uint64_t, 1>, troupe::out<std::uint64_t, 1>, index_t>("pull.lean")
                          .on(troupe::cpu, [](troupe::view<const std::uint64_t, 1> from,
                                              troupe::view<std::uint64_t, 1> to, index_t begin) {
                            const index_t shift = from.lo(0) + begin - to.lo(0);
                            const auto at = [&](index_t i) { return i < from.lo(0) || i >= from.hi(0) ? 0 : from(i); };
                            for (index_t i = to.lo(0); i < to.hi(0); ++i)
                              to(i) = mixed(at(i + shift - 2), at(i + shift)) + at(i + shift + 2);
                          });
constexpr auto blend =
    troupe::kernel<troupe::in<std::uint64_t, 1>, troupe::inout<std::uint64_t, 1>>("pull.blend")
        .on(troupe::cpu, [](troupe::view<const std::uint64_t, 1> a, troupe::view<std::uint64_t, 1> b) {
          const index_t n = b.hi(0) - b.lo(0);
          for (index_t i = 0; i < n; ++i) b(b.lo(0) + i) = mixed(b(b.lo(0) + i), a(a.lo(0) + i));
        });

constexpr auto join =
    troupe::kernel<troupe::in<std::uint64_t, 1>, troupe::in<std::uint64_t, 1>, troupe::out<std::uint64_t, 1>>(
        "pull.join")
        .on(troupe::cpu, [](troupe::view<const std::uint64_t, 1> a, troupe::view<const std::uint64_t, 1> b,
                            troupe::view<std::uint64_t, 1> to) {
          for (index_t i = to.lo(0); i < to.hi(0); ++i) to(i) = mixed(a(i), b(i));
        });

const troupe::offer offered{make, weigh, lean, blend, join};

/// The owner "a", and workers "b", "c", ...
struct crowd {
  troupe::runtime a{test::node_options("a", {}, 1)};
  std::vector<std::unique_ptr<troupe::runtime>> workers;
  explicit crowd(int count, bool workers_listen = true) {
    for (int i = 0; i < count; ++i) {
      troupe::options o = test::node_options(name(i), a.addresses(), 1);
      if (!workers_listen) o.cluster.listen.clear();
      workers.push_back(std::make_unique<troupe::runtime>(o));
    }
    const auto n = static_cast<std::size_t>(count);
    EXPECT_TRUE(a.wait_for_nodes(n, 10s));
    for (const auto& w : workers) EXPECT_TRUE(!workers_listen || w->wait_for_nodes(n, 10s));
  }
  static std::string name(int i) { return std::string(1, static_cast<char>('b' + i)); }
  static troupe::task_options on(int i) { return {.where = scope::at(name(i))}; }
  /// Over all of the owner's connections, both ways.
  std::uint64_t owner_bytes() const {
    std::uint64_t n = 0;
    for (const auto& r : a.nodes()) n += r.bytes_out + r.bytes_in;
    return n;
  }
  std::uint64_t bytes_to(int from, const std::string& to) const {
    for (const auto& r : workers[static_cast<std::size_t>(from)]->nodes())
      if (r.name == to) return r.bytes_out;
    return 0;
  }
};

std::uint64_t weight_of(index_t size, std::uint64_t seed) {
  std::uint64_t n = 0;
  for (index_t i = 0; i < size; ++i) n += mixed(mixed(static_cast<std::uint64_t>(i), seed), 3);
  return n;
}

constexpr index_t large = 1 << 18;  // 2 MiB
constexpr std::uint64_t large_bytes = 8u * large;

TEST(nodes_pull, what_one_has_another_reads_without_its_owner_and_once) {
  crowd n(2);
  const auto x = n.a.array<std::uint64_t, 1>({large}, troupe::tiles(large));
  const auto total = n.a.filled<std::uint64_t>({1}, troupe::tiles(1), 0);
  n.a.spawn(crowd::on(0), make, troupe::write(x), std::uint64_t{9});
  n.a.spawn(crowd::on(1), weigh, troupe::read(x), troupe::reduce(total)).get();
  const std::uint64_t moved = n.bytes_to(0, "c");
  EXPECT_GT(moved, large_bytes);
  EXPECT_LT(n.owner_bytes(), large_bytes / 4);
  for (int i = 0; i < 3; ++i) n.a.spawn(crowd::on(1), weigh, troupe::read(x), troupe::reduce(total)).get();
  EXPECT_LT(n.bytes_to(0, "c"), moved + large_bytes / 4);
  EXPECT_EQ(total.read()(0), 4 * weight_of(large, 9));
}

TEST(nodes_pull, halos_pass_between_neighbours_and_only_they) {
  crowd n(2);
  const index_t size = 1 << 18, tile = size / 8;
  const auto x = n.a.array<std::uint64_t, 1>({size}, troupe::tiles(tile));
  const auto y = n.a.array<std::uint64_t, 1>({size}, troupe::tiles(tile));
  std::vector<std::uint64_t> sx(size), sy(size);
  const auto block = [&](index_t t) { return troupe::box<1>{{t * tile}, {(t + 1) * tile}}; };
  for (index_t t = 0; t < 8; ++t) n.a.spawn(crowd::on(t % 2), make, troupe::write(x.sub(block(t))), std::uint64_t{4});
  for (index_t i = 0; i < size; ++i) sx[static_cast<std::size_t>(i)] = mixed(static_cast<std::uint64_t>(i % tile), 4);
  auto from = x, to = y;
  for (int step = 0; step < 6; ++step) {
    for (index_t t = 0; t < 8; ++t) {
      const troupe::box<1> around{{std::max<index_t>(0, t * tile - 2)}, {std::min(size, (t + 1) * tile + 2)}};
      n.a.spawn(crowd::on(t % 2), lean, troupe::read(from.sub(around)), troupe::write(to.sub(block(t))),
                t * tile - around.lo[0]);
    }
    std::swap(from, to);
    const auto at = [&](index_t i) { return i < 0 || i >= size ? 0 : sx[static_cast<std::size_t>(i)]; };
    for (index_t i = 0; i < size; ++i) sy[static_cast<std::size_t>(i)] = mixed(at(i - 2), at(i)) + at(i + 2);
    sx.swap(sy);
  }
  n.a.wait_all();
  EXPECT_LT(n.owner_bytes(), 200'000u) << "tiles have come home";
  EXPECT_LT(n.bytes_to(0, "c") + n.bytes_to(1, "b"), 200'000u) << "more than halos has moved";
  const auto v = from.read();
  for (index_t i = 0; i < size; ++i) ASSERT_EQ(v(i), sx[static_cast<std::size_t>(i)]) << i;
}

TEST(nodes_pull, what_all_read_is_passed_on_by_those_who_have_it) {
  crowd n(6);
  std::vector<std::uint64_t> data(large);
  for (index_t i = 0; i < large; ++i) data[static_cast<std::size_t>(i)] = mixed(static_cast<std::uint64_t>(i), 7);
  const auto x = n.a.adopt(std::move(data));
  const auto total = n.a.filled<std::uint64_t>({1}, troupe::tiles(1), 0);
  for (int i = 0; i < 6; ++i) n.a.spawn(crowd::on(i), weigh, troupe::read(x), troupe::reduce(total));
  n.a.wait_all();
  EXPECT_EQ(total.read()(0), 6 * weight_of(large, 7));
  std::uint64_t sent = 0;
  for (const auto& r : n.a.nodes()) sent += r.bytes_out;
  EXPECT_LT(sent, large_bytes * 5 / 2) << "the owner passes it on to two";
}

TEST(nodes_pull, nodes_that_do_not_reach_each_other_get_it_from_the_owner) {
  crowd n(2, false);
  const auto x = n.a.array<std::uint64_t, 1>({large}, troupe::tiles(large));
  const auto total = n.a.filled<std::uint64_t>({1}, troupe::tiles(1), 0);
  for (int round = 1; round <= 3; ++round) {
    n.a.spawn(crowd::on(0), make, troupe::write(x), static_cast<std::uint64_t>(round));
    n.a.spawn(crowd::on(1), weigh, troupe::read(x), troupe::reduce(total));
  }
  EXPECT_EQ(total.read()(0), weight_of(large, 1) + weight_of(large, 2) + weight_of(large, 3));
}

// The bytes to be pulled do not come, and the task runs again: what it reads beside that must still be there.
TEST(nodes_pull, a_task_that_comes_back_reads_what_was_there_before_the_next_one_has_changed_it) {
  crowd n(2, false);
  for (const bool pinned : {true, false}) {
    const troupe::task_options there{.where = pinned ? scope::at("c") : scope::any()};
    const auto x = n.a.array<std::uint64_t, 1>({large}, troupe::tiles(large));
    const auto y = n.a.array<std::uint64_t, 1>({large}, troupe::tiles(large));
    const auto z = n.a.array<std::uint64_t, 1>({large}, troupe::tiles(large));
    n.a.spawn(crowd::on(0), make, troupe::write(x), std::uint64_t{2});
    n.a.spawn(crowd::on(1), make, troupe::write(y), std::uint64_t{3}).get();
    n.a.spawn(there, join, troupe::read(x), troupe::read(y), troupe::write(z));
    n.a.spawn(crowd::on(1), blend, troupe::read(y), troupe::update(y));
    n.a.spawn(crowd::on(1), make, troupe::write(y), std::uint64_t{5});
    const auto after = y.read(), v = z.read();
    for (index_t i = 0; i < large; ++i) {
      const auto k = static_cast<std::uint64_t>(i);
      ASSERT_EQ(v(i), mixed(mixed(k, 2), mixed(k, 3))) << i;
      ASSERT_EQ(after(i), mixed(k, 5)) << i;
    }
  }
}

// Random programs over three workers and this node: the task that writes next waits for nothing but its order.
class nodes_pull_programs : public testing::TestWithParam<unsigned> {};

TEST_P(nodes_pull_programs, give_what_the_same_calls_give_in_a_row) {
  crowd n(3);
  std::mt19937 dice(GetParam());
  const auto roll = [&](int sides) { return static_cast<int>(dice() % static_cast<unsigned>(sides)); };
  const int tiles = 6;
  const index_t tile = 1 << (6 + roll(10));
  const auto x = n.a.filled<std::uint64_t>({tiles * tile}, troupe::tiles(tile), 1);
  std::vector<std::uint64_t> serial(static_cast<std::size_t>(tiles * tile), 1);
  const auto at = [&](int t, index_t i) -> std::uint64_t& { return serial[static_cast<std::size_t>(t * tile + i)]; };
  for (int step = 0; step < 300; ++step) {
    const int from = roll(tiles), to = (from + 1 + roll(tiles - 1)) % tiles, who = roll(7);
    // Sometimes only a part of what is there.
    const index_t begin = roll(4) == 0 ? tile / 4 : 0, end = roll(4) == 0 ? tile * 3 / 4 : tile;
    const auto part = [&](int t) { return troupe::box<1>{{t * tile + begin}, {t * tile + end}}; };
    troupe::task_options o{.where = who == 6 ? scope::here() : scope::at(crowd::name(who % 3))};
    std::stop_source stop;
    const bool is_stopped = roll(20) == 0;
    if (is_stopped) {  // it has no effect, whenever that is seen, or all of it
      o.stop = stop.get_token();
      stop.request_stop();
    }
    n.a.spawn(o, blend, troupe::read(x.sub(part(from))), troupe::update(x.sub(part(to))));
    if (is_stopped) {  // what it was to write is in error until it is overwritten
      n.a.spawn({.where = o.where}, make, troupe::write(x.sub(part(to))), std::uint64_t{5});
      for (index_t i = begin; i < end; ++i) at(to, i) = mixed(static_cast<std::uint64_t>(i - begin), 5);
    } else {
      for (index_t i = begin; i < end; ++i) at(to, i) = mixed(at(to, i), at(from, i));
    }
  }
  const auto v = x.read();
  for (int t = 0; t < tiles; ++t)
    for (index_t i = 0; i < tile; ++i) ASSERT_EQ(v(t * tile + i), at(t, i)) << "tile " << t << ", " << i;
}

INSTANTIATE_TEST_SUITE_P(seeds, nodes_pull_programs, testing::Range(0u, 8u));

// The owner has met both workers, and these may not have met each other yet: what one is to have from the other waits
// for that. It was given up at once, and failed where a later task had overwritten the reader's own input meanwhile.
TEST(nodes_pull, between_workers_that_have_not_met_yet_wait_for_that) {
  constexpr int columns = 6, steps = 12;
  constexpr index_t size = 50;
  for (int round = 0; round < 12; ++round) {
    troupe::runtime a(test::node_options("a", {}, 1));
    std::vector<std::unique_ptr<troupe::runtime>> workers;
    for (const char* name : {"b", "c"})
      workers.push_back(std::make_unique<troupe::runtime>(test::node_options(name, a.addresses(), 1)));
    ASSERT_TRUE(a.wait_for_nodes(2, 20s));
    std::vector<troupe::array<std::uint64_t, 1>> cells[2];
    std::vector<std::uint64_t> want[2];
    for (int k = 0; k < 2; ++k)
      for (int i = 0; i < columns; ++i) {
        cells[k].push_back(a.filled<std::uint64_t>({size}, troupe::tiles(size), static_cast<std::uint64_t>(i)));
        want[k].push_back(static_cast<std::uint64_t>(i));
      }
    std::vector<troupe::future<void>> all;
    for (int t = 0; t < steps; ++t)
      for (int i = 0; i < columns; ++i) {
        const auto& from = cells[t % 2];
        const auto left = static_cast<std::size_t>((i + columns - 1) % columns),
                   right = static_cast<std::size_t>((i + 1) % columns);
        const auto at = static_cast<std::size_t>(i);
        all.push_back(a.spawn(test::on((i + t / 3) % 2 == 0 ? "b" : "c"), join, read(from[left]), read(from[right]),
                              write(cells[1 - t % 2][at])));
        want[1 - t % 2][at] = mixed(want[t % 2][left], want[t % 2][right]);
      }
    for (auto& f : all) ASSERT_NO_THROW(f.get()) << "round " << round;
    for (int k = 0; k < 2; ++k)
      for (std::size_t i = 0; i < columns; ++i)
        ASSERT_EQ(cells[k][i].read()(size - 1), want[k][i]) << "round " << round;
  }
}

}  // namespace
