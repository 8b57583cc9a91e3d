// What this file is for: steps on several nodes that read what others write: bytes go straight, and nothing is lost.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

#include "imagined_kernels.hpp"
#include "imagined_world.hpp"

namespace {

using namespace std::chrono_literals;
using test::imagined_world;
using test::word;
using troupe::access_mode;
using field = troupe::array<word, 2>;

inline constexpr auto advance =
    troupe::kernel<troupe::in<word, 2>, troupe::in<word, 2>, troupe::in<word, 2>, troupe::out<word, 2>, word>(
        "imagined.advance")
        .on(troupe::cpu,
            [](test::kernels::seen a, test::kernels::seen b, test::kernels::seen c, test::kernels::made to, word salt) {
              ++test::begun()[salt];
              test::produce(to, access_mode::write, test::digest(c, test::digest(b, test::digest(a, salt))));
            });
// Adds to what is there, so that a body that has run twice on the same bytes shows.
inline constexpr auto gather =
    troupe::kernel<troupe::in<word, 2>, troupe::in<word, 2>, troupe::inout<word, 2>, word>("imagined.gather")
        .on(troupe::cpu, [](test::kernels::seen a, test::kernels::seen b, test::kernels::made to, word salt) {
          ++test::begun()[salt];
          test::produce(to, access_mode::update, test::digest(b, test::digest(a, salt)));
        });
const troupe::offer offered{advance, gather};

/// A ring of points, each of which has two buffers. In each step every point reads its neighbours. The program is on
/// the first node, the points on the others.
class ring : public troupe::array_maker<ring>, public troupe::submitter<ring> {
 public:
  ring(std::uint64_t seed, int others, int points, std::chrono::nanoseconds least, std::chrono::nanoseconds most,
       const std::function<void(troupe::options&)>& more = {})
      : w(seed), others_(others), points_(points) {
    test::begun().clear();
    troupe::net::loopback::link l;
    l.delay_least = least;
    l.delay_most = most;
    w.network.set_links(l);
    for (int i = 0; i <= others; ++i)
      w.start(static_cast<std::uint16_t>(i), 1 + i % 2, [&](troupe::options& o) {
        o.tasks_in_flight_max = 1'000'000;
        if (more) more(o);
      });
    w.run_for(3s);
    EXPECT_EQ(w.nodes[0]->the_engine().others()->report().size(), static_cast<std::size_t>(others));
    for (int b = 0; b < 2; ++b)
      for (int i = 0; i < points; ++i) {
        there_[b].push_back(
            filled<word>({2, 3}, troupe::tiles(2, 3), word{7}, "b" + std::to_string(b) + "p" + std::to_string(i)));
        model_[b].emplace_back(6, word{7});
      }
  }
  troupe::detail::target submission_target() const { return {&w.nodes[0]->the_engine(), nullptr}; }

  /// Has calls of all kinds have priorities.
  void mix_priorities() { mixes_ = true; }
  /// One more step. `where(point)`: the scope of its task.
  template <class F>
  void step(F&& where) {
    const int from = steps_ % 2, to = 1 - from;
    for (int i = 0; i < points_; ++i) {
      const auto l = static_cast<std::size_t>((i + points_ - 1) % points_), c = static_cast<std::size_t>(i),
                 r = static_cast<std::size_t>((i + 1) % points_);
      const word salt = ++salts_;
      all_.push_back(spawn(options(where(i)), advance, troupe::read(there_[from][l]), troupe::read(there_[from][c]),
                           troupe::read(there_[from][r]), troupe::write(there_[to][c]), salt));
      test::produce(model(to, c), access_mode::write,
                    test::digest(model(from, r), test::digest(model(from, c), test::digest(model(from, l), salt))));
    }
    ++steps_;
  }
  /// A call that updates a point in place: it reads two others of the same buffer.
  template <class F>
  void update(F&& where) {
    const int b = static_cast<int>(w.below(2));
    const auto to = w.below(static_cast<std::uint64_t>(points_));
    const auto x = (to + 1 + w.below(static_cast<std::uint64_t>(points_) - 1)) % static_cast<std::uint64_t>(points_);
    const auto y = (to + 1 + w.below(static_cast<std::uint64_t>(points_) - 1)) % static_cast<std::uint64_t>(points_);
    const word salt = ++salts_;
    all_.push_back(spawn(options(where(static_cast<int>(to))), gather, troupe::read(there_[b][x]),
                         troupe::read(there_[b][y]), troupe::update(there_[b][to]), salt));
    test::produce(model(b, to), access_mode::update, test::digest(model(b, y), test::digest(model(b, x), salt)));
  }
  /// A call that reads rows of three points, and writes a point of the other buffer.
  template <class F>
  void slice(F&& where) {
    const int from = static_cast<int>(w.below(2));
    const auto some = [&] { return w.below(static_cast<std::uint64_t>(points_)); };
    const std::size_t a = some(), b = some(), c = some(), to = some();
    const auto row = [&](std::size_t i, troupe::index_t y) { return there_[from][i].sub({{y, 0}, {y + 1, 3}}); };
    const auto seen = [&](std::size_t i, troupe::index_t y) {
      return test::plain_view{model_[from][i].data(), 3, {{y, 0}, {y + 1, 3}}};
    };
    const word salt = ++salts_;
    all_.push_back(spawn(options(where(static_cast<int>(to))), advance, troupe::read(row(a, 0)),
                         troupe::read(row(b, 1)), troupe::read(row(c, 1)), troupe::write(there_[1 - from][to]), salt));
    test::produce(model(1 - from, to), access_mode::write,
                  test::digest(seen(c, 1), test::digest(seen(b, 1), test::digest(seen(a, 0), salt))));
  }
  /// Checks what some point is now, though other nodes may have written it last.
  void look() {
    const auto b = w.below(2), i = w.below(static_cast<std::uint64_t>(points_));
    const std::vector<word> model = model_[b][i];
    const auto seen = there_[b][i].try_read_for(1h);
    ASSERT_TRUE(seen.has_value());
    ASSERT_EQ((*seen)(1, 2), model[5]) << "buffer " << b << " of " << i;
  }
  static troupe::scope at(int node) { return troupe::scope::at("n" + std::to_string(node)); }
  troupe::scope home(int point) const { return at(1 + point % others_); }

  /// `between` is called again and again meanwhile, when nothing happens.
  void until_done(const std::function<void()>& between = [] {}) {
    for (const auto& f : all_) {
      const auto give_up = w.network.now() + 600s;
      while (!w.network.run_until([&] { return f.is_ready(); }, 100ms) && w.network.now() < give_up) between();
      ASSERT_TRUE(f.is_ready());
      try {
        f.get();
      } catch (const std::exception& e) {
        FAIL() << e.what();
      }
    }
  }
  void check() {
    for (int b = 0; b < 2; ++b)
      for (int i = 0; i < points_; ++i) {
        const auto p = static_cast<std::size_t>(i);
        const auto seen = there_[b][p].try_read_for(1h);
        ASSERT_TRUE(seen.has_value());
        for (troupe::index_t y = 0; y < 2; ++y)
          for (troupe::index_t x = 0; x < 3; ++x)
            ASSERT_EQ((*seen)(y, x), model_[b][p][static_cast<std::size_t>(y * 3 + x)])
                << "buffer " << b << " of " << i;
      }
  }
  void kill(int node) {
    w.nodes[static_cast<std::size_t>(node)]->kill();
    w.nodes[static_cast<std::size_t>(node)]->end();
  }
  /// Bodies that have run more than once.
  static int repeated() {
    int n = 0;
    for (const auto& [salt, times] : test::begun()) n += times - 1;
    return n;
  }

  imagined_world w;

 private:
  troupe::task_options options(troupe::scope where) {
    troupe::task_options o{.where = std::move(where)};
    if (mixes_ && w.chance(4)) o.priority = static_cast<int>(w.below(3)) - 1;
    return o;
  }
  test::plain_view model(int b, std::size_t i) { return {model_[b][i].data(), 3, {{0, 0}, {2, 3}}}; }

  const int others_, points_;
  std::vector<field> there_[2];
  std::vector<std::vector<word>> model_[2];
  std::vector<troupe::future<void>> all_;
  int steps_ = 0;
  word salts_ = 0;
  bool mixes_ = false;
};

TEST(crossings_simulation, a_step_takes_one_message_between_the_nodes_that_compute) {
  ring r(1, 3, 3, 1ms, 1ms);
  r.w.body = 1us;
  constexpr int steps = 60;
  const auto began = r.w.network.now();
  for (int s = 0; s < steps; ++s) r.step([&](int i) { return r.home(i); });
  r.until_done();
  const std::chrono::duration<double, std::milli> took = r.w.network.now() - began;
  // By way of the owner each step would take two messages, one after the other: 2 ms.
  EXPECT_LT(took.count() / steps, 1.4);
  EXPECT_EQ(ring::repeated(), 0);
  r.check();
}

TEST(crossings_simulation, tasks_without_a_scope_of_one_node_go_where_most_of_their_data_is) {
  ring r(2, 3, 9, 300us, 300us);
  r.w.body = 1us;
  const auto others = ring::at(1) | ring::at(2) | ring::at(3);
  for (int s = 0; s < 4; ++s) r.step([&](int i) { return ring::at(1 + i / 3); });
  for (int s = 0; s < 30; ++s) r.step([&](int) { return others; });
  r.until_done();
  EXPECT_EQ(ring::repeated(), 0);
  r.check();
}

std::uint64_t seeds_of_more(std::uint64_t otherwise) {
  const char* const text = std::getenv("TROUPE_SEEDS");
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Nodes die while tasks wait there for what others write, and while those have ended of which the owner does not know.
TEST(crossings_simulation, a_node_that_dies_costs_no_result) {
  int early = 0;
  const char* const only = std::getenv("TROUPE_SEED");
  const std::uint64_t first = only ? std::strtoull(only, nullptr, 10) : 0, last = only ? first + 1 : seeds_of_more(60);
  for (std::uint64_t seed = first; seed < last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ring r(seed, 4, 4 + static_cast<int>(seed % 5), 300us, seed % 3 ? 400us : 3ms);
    r.w.body = std::chrono::nanoseconds(1'000 + 1'000 * r.w.below(seed % 2 ? 100 : 5'000));
    const auto others = ring::at(1) | ring::at(2) | ring::at(3) | ring::at(4);
    const auto some = [&](int) { return r.w.chance(3) ? others : r.w.chance(3) ? troupe::scope() : others; };
    r.step([&](int i) { return i % 4 == 3 ? others : r.home(i); });
    r.until_done();  // no task is for a node only that dies
    for (int s = 0; s < 20; ++s) {
      r.w.chance(3) ? r.update(some) : r.step(some);
      if (r.w.chance(4)) r.w.run_for(std::chrono::microseconds(r.w.below(3'000)));
    }
    r.w.run_for(std::chrono::microseconds(r.w.below(20'000)));
    r.kill(1 + static_cast<int>(r.w.below(4)));
    for (int s = 0; s < 10; ++s) r.w.chance(3) ? r.update(some) : r.step(some);
    r.w.run_for(std::chrono::microseconds(r.w.below(20'000)));
    if (r.w.chance(2)) r.w.start(static_cast<std::uint16_t>(5), 1);
    for (int s = 0; s < 6; ++s) r.w.chance(3) ? r.update(some) : r.step(some);
    r.until_done();
    r.check();
    early += ring::repeated();
  }
  EXPECT_GT(early, 0) << "nothing was ever lost";
}

// Two nodes that do not hear each other: what one was promised by the other comes by way of the owner.
TEST(crossings_simulation, nodes_that_do_not_reach_each_other_cost_no_result) {
  ring r(3, 3, 6, 300us, 400us);
  r.w.body = 100us;
  for (int s = 0; s < 3; ++s) r.step([&](int i) { return r.home(i); });
  r.w.network.cut(r.w.nodes[1]->id(), r.w.nodes[2]->id());
  r.w.network.cut(r.w.nodes[2]->id(), r.w.nodes[1]->id());
  for (int s = 0; s < 10; ++s) r.step([&](int i) { return r.home(i); });
  r.w.run_for(200ms);
  r.w.network.mend_all();
  r.until_done();
  r.check();
}

/// A ring on nodes of which all but the first two may die, be replaced, stand still or leave, again and again.
class storm {
 public:
  explicit storm(std::uint64_t seed)
      : r_(seed, 3 + static_cast<int>(seed % 4), 3 + static_cast<int>(seed / 3 % 7), 300us, seed % 3 ? 500us : 5ms) {
    r_.w.body = std::chrono::nanoseconds(1'000 + 1'000 * r_.w.below(seed % 2 ? 100 : 3'000));
    if (seed % 5 == 0) r_.mix_priorities();
    for (std::size_t i = 1; i < r_.w.nodes.size(); ++i) others_.push_back(r_.w.nodes[i].get());
  }
  void run() {
    for (int turn = 0; turn < 6 && !testing::Test::HasFailure(); ++turn) {
      for (std::uint64_t n = 2 + r_.w.below(8); n != 0; --n) call();
      pass(std::chrono::microseconds(r_.w.below(20'000)));
      fault();
      if (r_.w.chance(4) && std::ranges::none_of(others_, [](const auto* n) { return n->is_leaving(); })) r_.look();
    }
    for (test::imagined_node* n : others_)
      if (n->lives() && n->is_paused()) n->resume();
    r_.until_done([this] { end_leaving(); });
    if (!testing::Test::HasFailure()) r_.check();
  }

 private:
  // Nodes that leave end when they may, and not in the middle of something.
  void end_leaving() {
    for (test::imagined_node* n : others_)
      if (n->is_leaving()) n->end_if_released();
  }
  void call() {
    const auto somewhere = [this](int) {
      if (r_.w.chance(8)) return troupe::scope();
      troupe::scope all = ring::at(1) | ring::at(2);
      for (std::size_t i = 3; i < r_.w.nodes.size(); ++i)
        if (r_.w.nodes[i]->lives()) all = all | troupe::scope::at(r_.w.nodes[i]->name());
      return all;
    };
    const auto pinned = [](int i) { return ring::at(1 + i % 2); };
    switch (r_.w.below(6)) {
      case 0:
        return r_.update(somewhere);
      case 1:
        return r_.slice(somewhere);
      case 2:
        return r_.step(pinned);
      default:
        return r_.step(somewhere);
    }
  }
  // In small steps, so that nodes that leave may end.
  void pass(std::chrono::microseconds d) {
    for (int i = 0; i < 4; ++i) {
      r_.w.run_for(d / 4);
      end_leaving();
    }
  }
  test::imagined_node* mortal() {
    std::vector<test::imagined_node*> all;
    for (std::size_t i = 2; i < others_.size(); ++i)
      if (others_[i]->lives() && !others_[i]->is_leaving()) all.push_back(others_[i]);
    return all.empty() ? nullptr : all[r_.w.below(all.size())];
  }
  void fault() {
    test::imagined_node* const n = mortal();
    switch (r_.w.below(6)) {
      case 0:
      case 1:
        if (!n) return;
        n->kill();
        n->end();
        if (r_.w.chance(2)) others_.push_back(&r_.w.start(n->host(), 1));  // in its place
        return;
      case 2:
        if (!n || n->is_paused()) return;
        n->pause();
        r_.w.network.at(r_.w.network.now() + std::chrono::milliseconds(r_.w.below(r_.w.chance(3) ? 5'000 : 500)), [n] {
          if (n->lives()) n->resume();
        });
        return;
      case 3:
        if (n && !n->is_paused()) n->close_intake();
        return;
      case 4:
        others_.push_back(&r_.w.start(static_cast<std::uint16_t>(r_.w.nodes.size()), 2));
        return;
      default:
        return;
    }
  }

  ring r_;
  std::vector<test::imagined_node*> others_;
};

TEST(crossings_simulation, nothing_is_lost_or_wrong_whatever_becomes_of_the_nodes) {
  const char* const only = std::getenv("TROUPE_SEED");
  const std::uint64_t first = only ? std::strtoull(only, nullptr, 10) : 0, last = only ? first + 1 : seeds_of_more(150);
  for (std::uint64_t seed = first; seed < last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    storm(seed).run();
  }
}

}  // namespace
