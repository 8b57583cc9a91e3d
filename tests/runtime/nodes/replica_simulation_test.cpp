// What this file is for: the costs of a node's death: what is computed again, what is lost; in imagined time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

#include "actors/placement/placement.hpp"
#include "imagined_kernels.hpp"
#include "imagined_world.hpp"

namespace {

using namespace std::chrono_literals;
using test::begun;
using test::imagined_node;
using test::imagined_world;
using test::word;
using grid = troupe::array<word, 2>;
namespace kernels = test::kernels;

// Works where it is first run; a repetition fails.
inline constexpr auto never_again = troupe::kernel<troupe::inout<word, 2>, word>("imagined.never_again")
                                        .on(troupe::cpu, [](troupe::view<word, 2> to, word salt) {
                                          if (begun()[salt]++ != 0) throw std::runtime_error("not twice");
                                          test::produce(to, test::access_mode::update, salt);
                                        });
const troupe::offer offered{never_again};

/// Two or more nodes; the program is on the first.
class cluster : public troupe::array_maker<cluster>, public troupe::submitter<cluster> {
 public:
  explicit cluster(std::uint64_t seed, std::chrono::milliseconds replay_max = 1000ms, int others = 1,
                   const std::function<void(troupe::options&)>& more = {})
      : w(seed) {
    begun().clear();
    for (int i = 0; i <= others; ++i)
      w.start(static_cast<std::uint16_t>(i), 1, [&](troupe::options& o) {
        o.cluster.replay_max = replay_max;
        if (more) more(o);
      });
    w.run_for(3s);
    EXPECT_EQ(w.nodes[0]->the_engine().others()->report().size(), static_cast<std::size_t>(others));
  }
  troupe::detail::target submission_target() const { return {&w.nodes[0]->the_engine(), nullptr}; }

  template <class K>
  troupe::future<void> on(int node, const K& kernel, const grid& to, word salt) {
    return spawn({.where = troupe::scope::at("n" + std::to_string(node))}, kernel, troupe::update(to), salt);
  }
  grid stone(const std::string& name, int replicas = 1, troupe::index_t rows = 2) {
    return filled<word>({rows, 3}, troupe::tiles(rows, 3), word{7}, name, {.replicas = replicas});
  }
  /// Time passes, in small steps, until all are done.
  void until_done(const std::vector<troupe::future<void>>& all) {
    for (const auto& f : all) {
      const bool in_time = w.network.run_until([&] { return f.is_ready(); }, 600s);
      ASSERT_TRUE(in_time);
    }
  }
  void kill(int node) {
    w.nodes[static_cast<std::size_t>(node)]->kill();
    w.nodes[static_cast<std::size_t>(node)]->end();
  }
  /// Returns what `change` or `once`, called with these in turn, make of a stone.
  static std::vector<word> changed(const std::vector<word>& salts, troupe::index_t rows = 2) {
    std::vector<word> all(static_cast<std::size_t>(rows) * 3, 7);
    for (const word s : salts)
      test::produce(test::plain_view{all.data(), 3, {{0, 0}, {rows, 3}}}, test::access_mode::update, s);
    return all;
  }
  static void expect(const grid& there, const std::vector<word>& model) {
    const auto seen = there.try_read_for(1h);
    ASSERT_TRUE(seen.has_value());
    for (troupe::index_t y = 0; y < there.size(0); ++y)
      for (troupe::index_t x = 0; x < 3; ++x) ASSERT_EQ((*seen)(y, x), model[static_cast<std::size_t>(y * 3 + x)]);
  }
  static int repeated() {
    int n = 0;
    for (const auto& [salt, times] : begun()) n += times - 1;
    return n;
  }

  imagined_world w;
};

std::vector<word> salts_up_to(word n) {
  std::vector<word> all;
  for (word s = 1; s <= n; ++s) all.push_back(s);
  return all;
}

// All of it is there from the start: what is copied home is what it is in the middle of.
TEST(replica_simulation, of_a_long_chain_no_more_is_repeated_than_was_said) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    cluster c(seed, 1000ms);
    c.w.body = 10ms;
    const grid x = c.stone("x");
    std::vector<troupe::future<void>> all;
    for (const word s : salts_up_to(800)) all.push_back(c.on(1, kernels::change, x, s));
    c.until_done(all);
    EXPECT_EQ(cluster::repeated(), 0);
    c.kill(1);
    cluster::expect(x, cluster::changed(salts_up_to(800)));
    EXPECT_LE(cluster::repeated(), 100) << "a second of bodies of 10 ms, seed " << seed;
    EXPECT_GE(cluster::repeated(), 1) << "each version was brought home, seed " << seed;
  }
}

TEST(replica_simulation, a_short_chain_is_not_copied) {
  cluster c(1, 1000ms);
  c.w.body = 1ms;
  const grid x = c.stone("x", 1, 2000);
  std::vector<troupe::future<void>> all;
  for (const word s : salts_up_to(100)) all.push_back(c.on(1, kernels::change, x, s));
  c.until_done(all);
  c.w.run_for(1s);
  EXPECT_LT(c.w.network.bytes_sent(c.w.nodes[1]->id()), 2000u * 3 * 8);
  c.kill(1);
  cluster::expect(x, cluster::changed(salts_up_to(100), 2000));
  EXPECT_EQ(cluster::repeated(), 100);
}

// A slow link: bringing it home takes longer than making it again.
TEST(replica_simulation, what_is_dear_to_copy_is_copied_rarely) {
  cluster c(2, 0ms);
  c.w.body = 1ms;
  test::net::loopback::link l;
  l.bytes_per_s = 1'000'000;
  c.w.network.set_links(l);
  constexpr troupe::index_t rows = 2000;  // 48 ms, worth 480 ms of bodies
  const grid x = c.stone("x", 1, rows);
  std::vector<troupe::future<void>> all;
  for (const word s : salts_up_to(20)) {  // the link is known from these
    all.push_back(c.on(1, kernels::change, x, s));
    c.until_done(all);
    cluster::expect(x, cluster::changed(salts_up_to(s), rows));
  }
  const std::uint64_t before = c.w.network.bytes_sent(c.w.nodes[1]->id());
  for (word s = 21; s <= 1000; ++s) all.push_back(c.on(1, kernels::change, x, s));
  c.until_done(all);
  c.w.run_for(1s);
  const std::uint64_t copies = (c.w.network.bytes_sent(c.w.nodes[1]->id()) - before) / (rows * 3 * 8);
  EXPECT_GE(copies, 1u);
  EXPECT_LE(copies, 4u) << "980 ms of bodies";
}

TEST(replica_simulation, what_has_ended_and_must_run_once_survives_its_node) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    cluster c(seed);
    const grid x = c.stone("x");
    const word last = 1 + seed % 4;
    std::vector<troupe::future<void>> all;
    for (const word s : salts_up_to(last)) all.push_back(c.on(1, kernels::once, x, s));
    std::vector<troupe::future<void>> more;  // which may have begun already
    for (word s = 11; s < 14; ++s) more.push_back(c.on(1, kernels::change, x, s));
    c.until_done(all);
    const bool goes_on = seed % 3 == 0;
    if (goes_on) c.until_done(more);
    c.kill(1);
    for (const word s : salts_up_to(last)) EXPECT_EQ(begun()[s], 1);
    if (goes_on) {
      auto salts = salts_up_to(last);
      salts.insert(salts.end(), {11, 12, 13});
      cluster::expect(x, cluster::changed(salts));
    }
    c.until_done(more);  // well or, where nobody is left to run them, not
  }
}

TEST(replica_simulation, with_two_replicas_nothing_is_repeated_of_what_is_left_alone) {
  for (const int replicas : {1, 2}) {
    cluster c(4);
    const grid x = c.stone("x", replicas);
    for (const word s : salts_up_to(20)) {
      c.until_done({c.on(1, kernels::change, x, s)});
      c.w.run_for(20ms);
    }
    c.kill(1);
    cluster::expect(x, cluster::changed(salts_up_to(20)));
    EXPECT_EQ(cluster::repeated(), replicas == 2 ? 0 : 20);
  }
}

TEST(replica_simulation, of_what_is_written_again_and_again_two_replicas_are_a_version_or_few_apart) {
  cluster c(5);
  c.w.body = 5ms;
  const grid x = c.stone("x", 2);
  std::vector<troupe::future<void>> all;
  for (const word s : salts_up_to(300)) all.push_back(c.on(1, kernels::change, x, s));
  c.until_done(all);
  c.kill(1);
  cluster::expect(x, cluster::changed(salts_up_to(300)));
  EXPECT_LE(cluster::repeated(), 10);
}

TEST(replica_simulation, what_cannot_be_made_again_is_lost_by_name_unless_there_are_two_replicas) {
  for (const int replicas : {1, 2}) {
    cluster c(6);
    const grid x = c.stone("pebbles", replicas);
    c.until_done({c.on(1, never_again, x, 1)});
    c.w.run_for(100ms);
    c.kill(1);
    if (replicas == 2) {
      cluster::expect(x, cluster::changed({1}));
      continue;
    }
    try {
      (void)x.try_read_for(1h);
      FAIL() << "it was read";
    } catch (const troupe::error& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("'pebbles'"), std::string::npos) << text;
      EXPECT_NE(text.find("not twice"), std::string::npos) << text;
    }
  }
}

// Copies take the place of what is at home, and are not there beside it for longer than they take to come.
TEST(replica_simulation, copies_take_no_more_room_than_the_tiles_have_here) {
  constexpr troupe::index_t rows = 100;
  constexpr std::uint64_t tile = rows * 3 * 8;
  cluster c(7, 0ms, 1, [](troupe::options& o) { o.memory_bytes = 4 * tile; });
  c.w.body = 5ms;
  std::vector<grid> all;
  for (int i = 0; i < 4; ++i) all.push_back(c.stone("x", 2, rows));
  std::vector<troupe::future<void>> calls;
  for (const word s : salts_up_to(50))
    for (std::size_t i = 0; i < all.size(); ++i) calls.push_back(c.on(1, kernels::change, all[i], s * 10 + i));
  c.until_done(calls);
  c.w.run_for(1s);
  const auto r = c.w.nodes[0]->the_engine().placement_actor().report();
  EXPECT_LE(r.bytes_allocated_max, 4 * tile);
  EXPECT_EQ(r.bytes_spilled, 0u);
  c.kill(1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<word> salts;
    for (const word s : salts_up_to(50)) salts.push_back(s * 10 + i);
    cluster::expect(all[i], cluster::changed(salts, rows));
  }
  EXPECT_EQ(cluster::repeated(), 0);
}

}  // namespace
