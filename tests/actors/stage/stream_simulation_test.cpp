// What this file is for: streams in virtual time: drawn at random, run in any order, stopped, failed, always counted.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>

#include "tests/actors/stage/drawn_stream.hpp"
#include "tests/actors/stage/imagined_workers.hpp"
#include "tests/api/streams/ledgers.hpp"

namespace {

using test::drawn_stream;
using test::event;
using test::events;
using test::expect_balanced;
using test::imagined_workers;
namespace st = troupe::stream;

// Threads outside that push what a stream's inputs are to get, each as far as there is room.
class pushers {
 public:
  pushers(imagined_workers& w, imagined_workers::crew& into, const std::map<std::string, events>& all)
      : workers_(w), into_(into) {
    for (const auto& [at, what] : all) left_.push_back({at, what, 0});
  }
  void push_some() {
    std::erase_if(left_, [this](one& p) { return workers_.happens(40) && push_some(p); });
  }
  bool are_done() const { return left_.empty(); }

 private:
  struct one {
    std::string at;
    events what;
    std::size_t next;
  };
  // True if nothing is left of it.
  bool push_some(one& p) {
    auto& in = static_cast<troupe::detail::streams::input_node<event>&>(into_.input(p.at, typeid(event)));
    for (int n = workers_.number(1, 20); n > 0 && p.next < p.what.size(); --n) {
      event e = p.what[p.next];
      const auto now = troupe::detail::streams::now();
      if (in.push(e, now, imagined_workers::clock::time_point::min(), into_) != troupe::detail::streams::received::yes)
        break;
      ++p.next;
    }
    if (p.next != p.what.size()) return false;
    in.shut();
    return true;
  }
  imagined_workers& workers_;
  imagined_workers::crew& into_;
  std::vector<one> left_;
};

enum class fate { ends, is_drained, is_cancelled, fails };

void run(std::uint64_t seed, fate how, bool may_drop) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  imagined_workers workers(seed);
  drawn_stream d(seed, [&] { workers.meanwhile(); });
  d.may_drop = may_drop;
  drawn_stream::part p = d.flow();
  events got;
  std::uint64_t buried = 0;
  const std::size_t poison = how == fate::fails ? static_cast<std::size_t>(d.number(0, 40)) : ~std::size_t{0};
  const auto whole = p.flow | st::sink("end", [&](const event& e) {
                       workers.meanwhile();
                       if (got.size() == poison) throw std::runtime_error("poison");
                       got.push_back(e);
                     });
  st::start_options o;
  o.on_dead_letter = [&](const st::letter&) { ++buried; };
  const auto r = workers.start(whole, o, d.number(1, 4));
  pushers outside(workers, *r, d.pushes);
  int stop_in = how == fate::is_drained || how == fate::is_cancelled ? d.number(0, 60) : -1;
  for (int steps = 0;; ++steps) {
    outside.push_some();
    if (workers.happens(1)) workers.wall_ahead_ns += workers.number(-9, 9) * 3'600'000'000'000;
    const bool goes_on = workers.step();
    if (stop_in-- == 0) {
      if (how == fate::is_drained)
        r->drain();
      else
        r->cancel();
    }
    if (steps % 8 == 0 || !goes_on) {
      const st::report told = r->report();
      expect_balanced(told);
      if (testing::Test::HasFailure()) return;
      if (told.state >= st::state::ended && !goes_on) break;
      ASSERT_TRUE(goes_on || !outside.are_done()) << "nothing moves any more\n" << told.text();
      ASSERT_LT(steps, 200'000) << told.text();
    }
  }
  const st::report told = r->report();
  EXPECT_EQ(told.items.delivered, got.size());
  EXPECT_EQ(told.items.dead, buried);
  const std::uint64_t late = [&] {
    std::uint64_t n = 0;
    for (const auto& s : told.stages) n += s.late;
    return n;
  }();
  EXPECT_EQ(late, 0u) << told.text();
  if (how == fate::ends && d.edges_that_drop == 0) {
    if (!p.in_order) {
      std::sort(got.begin(), got.end());
      std::sort(p.wanted.begin(), p.wanted.end());
    }
    EXPECT_EQ(told.state, st::state::ended);
    EXPECT_EQ(got, p.wanted) << told.text();
    EXPECT_EQ(buried, d.dead);
  }
  if (told.state == st::state::ended) {
    EXPECT_EQ(told.items.in_flight, 0u) << told.text();
  }
}

void run_seeds(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed != first + count && !testing::Test::HasFailure(); ++seed) {
    const fate how = seed % 4 != 0    ? fate::ends
                     : seed % 12 == 0 ? fate::is_drained
                     : seed % 12 == 4 ? fate::is_cancelled
                                      : fate::fails;
    run(seed, how, seed % 5 == 0);
  }
}

TEST(stream_simulation, streams_drawn_at_random_come_to_what_their_stages_make_in_any_order) { run_seeds(1, 1000); }
TEST(slow_stream_simulation, ten_thousand_streams_come_to_what_their_stages_make_in_any_order) {
  run_seeds(100'000, 10'000);
}

}  // namespace
