// What this file is for: calls that are too large for one frame to another node: they go in several, or say why.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "false_members.hpp"

namespace {

using namespace std::chrono_literals;
namespace kernels = test::kernels;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using test::false_members;
using test::word;
using grid = troupe::array<word, 2>;

struct large_value {
  std::array<word, 700> all{};  // 5,600 bytes
};
inline constexpr auto take_large =
    troupe::kernel<troupe::out<word, 2>, large_value>("imagined.take_large")
        .on(troupe::cpu, [](troupe::view<word, 2> to, large_value v) { to(0, 0) = v.all.back(); });

/// Pieces that a node has been told of before the task itself, and the largest frame in which.
struct told {
  std::vector<std::uint32_t> tiles;
  std::size_t frames = 0, largest = 0;
};
told take_fills(test::false_member& m) {
  told t;
  for (const auto& f : std::exchange(m.heard[wire::kind::gaps], {})) {
    net::reader from(f);
    const wire::gaps g = wire::take_gaps(from);
    for (const wire::gap& one : g.all) t.tiles.push_back(one.tile);
    ++t.frames;
    t.largest = std::max(t.largest, f.size());
  }
  return t;
}

class large_calls : public false_members {};

TEST_F(large_calls, a_task_that_reads_a_million_pieces_is_told_in_many_small_frames) {
  constexpr troupe::index_t rows = 2'100'000, read = 1'040'000;  // 19 MB of boxes, a frame has 16
  const grid x = filled<word>({rows, 3}, troupe::tiles(1, 3), word{7}, "x");
  const grid y = array<word>({1, 3}, troupe::tiles(1, 3), "y");
  const auto f = there(kernels::derive, troupe::read(x.sub({{rows - read, 0}, {rows, 3}})), troupe::write(y), word{1});
  const wire::task_descriptor t = next_task();
  const told all = take_fills(*other);
  EXPECT_LE(all.largest, 64u << 10);
  EXPECT_GT(all.frames, 100u);
  ASSERT_EQ(all.tiles.size(), static_cast<std::size_t>(read));
  for (std::size_t i = 0; i < all.tiles.size(); ++i) ASSERT_EQ(all.tiles[i], static_cast<std::size_t>(rows - read) + i);
  EXPECT_TRUE(t.accesses.at(0).gaps.empty());
  ended(t.id, wire::outcome::ran);
  ASSERT_TRUE(until([&] { return f.is_ready(); }));
  EXPECT_NO_THROW(f.get());

  const auto more = there(kernels::derive, troupe::read(x), troupe::write(y), word{2});
  ASSERT_TRUE(until([&] { return more.is_ready(); })) << "it is told nowhere, and would wait for ever";
  try {
    more.get();
    ADD_FAILURE() << "nobody has run it";
  } catch (const troupe::task_failed& e) {
    EXPECT_NE(std::string(e.what()).find("in 1060000 pieces elsewhere, to one node go 1048576"), std::string::npos)
        << e.what();
  }
  EXPECT_EQ(nodes(), 1u);
}

TEST_F(large_calls, what_is_told_in_many_frames_is_all_there_before_the_task_runs) {
  w.start(1, 1);
  ASSERT_TRUE(until([&] { return nodes() == 2; }));
  constexpr troupe::index_t rows = 5000;
  std::vector<word> in(3 * rows);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = 0x9e3779b97f4a7c15u * (i + 1);
  const grid x = adopt<word>(in, {rows, 3}, troupe::tiles(1, 3), "x");
  const auto run = [&](const troupe::scope& where) {
    const grid y = filled<word>({1, 3}, troupe::tiles(1, 3), word{5}, "y");
    const auto f = spawn({.where = where}, kernels::combine, troupe::read(x), troupe::read(x.sub({{9, 0}, {rows, 3}})),
                         troupe::update(y), word{1});
    EXPECT_TRUE(until([&] { return f.is_ready(); }));
    EXPECT_NO_THROW(f.get());
    const auto seen = y.try_read_for(1h);
    return seen ? (*seen)(0, 2) : word{0};
  };
  EXPECT_EQ(run(troupe::scope::at("n1")), run(troupe::scope::here()));
  EXPECT_EQ(w.nodes[0]->the_engine().others()->report().at(1).tasks, 1u);
}

TEST_F(large_calls, a_value_that_is_too_large_goes_nowhere_and_others_may_run_the_task) {
  static const troupe::offer offered{take_large};  // here, and so by a process that begins after this
  other.reset();
  ASSERT_TRUE(until([&] { return nodes() == 0; }));
  other.emplace(w);
  ASSERT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
  large_value v;
  v.all.back() = 42;
  const grid y = filled<word>({1, 3}, troupe::tiles(1, 3), word{0}, "y");
  const auto f = there(take_large, troupe::write(y), v);
  ASSERT_TRUE(until([&] { return f.is_ready(); }));
  try {
    f.get();
    ADD_FAILURE() << "nobody has run it";
  } catch (const troupe::task_failed& e) {
    EXPECT_NE(
        std::string(e.what()).find("value 1 of the call has 5600 bytes, to another node go 4096; give it as an array"),
        std::string::npos)
        << e.what();
    try {
      e.rethrow_cause();
    } catch (const troupe::error& cause) {
      EXPECT_EQ(cause.code(), troupe::errc::no_executor);
    }
  }
  const auto g = spawn({.where = troupe::scope::at("false") | troupe::scope::here()}, take_large, troupe::write(y), v);
  ASSERT_TRUE(until([&] { return g.is_ready(); }));
  EXPECT_NO_THROW(g.get());
  const auto seen = y.try_read_for(1h);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ((*seen)(0, 0), 42u);
  EXPECT_EQ(nodes(), 1u) << "it was not what its peer takes";
}

TEST_F(large_calls, a_process_with_more_addresses_than_are_said_of_one_is_a_member) {
  w.start(1, 1, [](troupe::options& o) {
    for (std::uint16_t host = 50; host < 70; ++host)
      o.cluster.announce.push_back(test::imagined_world::endpoint_of(host).text());
  });
  EXPECT_TRUE(until([&] { return nodes() == 2; })) << "what it said of itself was refused";
}

}  // namespace
