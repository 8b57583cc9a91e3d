// What this file is for: streams in virtual time: drawn at random, run in any order, stopped, failed, always counted.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>

#include "tests/actors/stage/imagined_workers.hpp"
#include "tests/api/streams/ledgers.hpp"
#include "tests/support/drawn_stream.hpp"

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
  std::uint64_t barrier = 0;
  int stop_in = how == fate::is_drained || how == fate::is_cancelled ? d.number(0, 60) : -1;
  for (int steps = 0;; ++steps) {
    outside.push_some();
    if (workers.happens(1)) workers.wall_ahead_ns += workers.number(-9, 9) * 3'600'000'000'000;
    if (d.happens(2)) barrier = r->begin_barrier();
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
    EXPECT_TRUE(r->barrier(imagined_workers::clock::time_point::min())) << "barrier " << barrier;
    EXPECT_EQ(told.items.in_flight, 0u) << told.text();
  }
}

// ---- barriers

// Items know their source and their number there. Sources go on until the stream is drained.
struct numbered {
  int source;
  std::int64_t number;
};

class numbered_stream {
 public:
  numbered_stream(std::uint64_t seed, imagined_workers& w) : random_(seed), workers_(w) {}
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool happens(int percent) { return number(1, 100) <= percent; }

  st::flow<numbered> flow() {
    st::flow<numbered> f = source();
    for (int n = number(0, 6); n > 0; --n) f = stage(f);
    return f;
  }
  // How often an item that comes from a source must come out; 0: never.
  std::function<int(const numbered&)> copies = [](const numbered&) { return 1; };
  int sources = 0;

 private:
  std::string name(const char* kind) { return kind + std::to_string(++names_); }
  st::edge_options edge() { return {.items = static_cast<std::size_t>(number(1, 9))}; }
  st::flow<numbered> source() {
    const int me = sources++;
    if (happens(50))
      return st::from(name("function"), [this, me, at = std::int64_t{0}]() mutable {
        for (int n = 0; n < 5; ++n) workers_.steady_ns();  // it takes its time
        return std::optional<numbered>({me, at++});
      });
    return st::from(name("coroutine"), [](int source, int pause_us) -> st::source<numbered> {
      for (std::int64_t i = 0;; ++i) {
        if (i % 7 == 3) co_await st::sleep(std::chrono::microseconds(pause_us));
        numbered n{source, i};
        co_yield std::move(n);
      }
    }(me, number(1, 300)));
  }
  st::flow<numbered> stage(const st::flow<numbered>& f) {
    switch (number(0, 5)) {
      case 0:
      case 1: {
        const st::stage_options o{.parallel = {happens(50) ? 1 : 2, number(2, 4)},
                                  .order = happens(50) ? st::ordered : st::unordered,
                                  .fail = st::retry(100, std::chrono::microseconds(number(0, 90))),
                                  .edge = edge()};
        return f | st::map(
                       name("map"),
                       [this, failed = false](const numbered& n) mutable {
                         workers_.meanwhile();
                         if (n.number % 5 == 2 && (failed = !failed)) throw std::runtime_error("not now");
                         return n;
                       },
                       o);
      }
      case 2: {
        const int k = number(2, 4);
        copies = [k, before = copies, here = sources](const numbered& n) {
          return n.source < here && n.number % k == 0 ? 0 : before(n);
        };
        return f | st::filter(name("filter"), [k](const numbered& n) { return n.number % k != 0; });
      }
      case 3: {
        auto ways = f | st::tee<2>(name("tee"));
        copies = [before = copies, here = sources](const numbered& n) { return (n.source < here ? 2 : 1) * before(n); };
        return st::merge(name("merge"), happens(50) ? ways[0] | st::async(edge()) : ways[0],
                         happens(50) ? stage_in_lanes(ways[1]) : ways[1]);
      }
      case 4:
        return st::merge(name("merge"), f, source());
      default:
        return f |
               st::batch(name("batch"), {.items = static_cast<std::size_t>(number(1, 9)),
                                         .delay = std::chrono::microseconds(number(0, 1) * 500)}) |
               st::unbatch(name("unbatch"));
    }
  }
  st::flow<numbered> stage_in_lanes(const st::flow<numbered>& f) {
    return f | st::map(name("lanes"),
                       [this](const numbered& n) {
                         workers_.meanwhile();
                         return n;
                       },
                       {.parallel = number(2, 4), .edge = edge()});
  }
  std::mt19937_64 random_;
  imagined_workers& workers_;
  int names_ = 0;
};

// What has come before a barrier is all that each source has pushed before some moment, and nothing of what it has
// pushed since.
void run_barriers(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  imagined_workers workers(seed);
  numbered_stream d(seed, workers);
  std::map<std::pair<int, std::int64_t>, int> got;
  std::map<int, std::int64_t> cut;  // the last barrier's: what is to come is beyond these numbers
  std::uint64_t passed = 0;
  auto flow = d.flow();
  const auto whole = flow | st::sink("end", [&](const numbered& n) {
                       ++got[{n.source, n.number}];
                       const auto before = cut.find(n.source);
                       EXPECT_TRUE(before == cut.end() || n.number > before->second)
                           << n.source << ": " << n.number << " comes behind barrier " << passed;
                     });
  whole.plan()->nodes.back()->at_barrier = [&](std::uint64_t number) {
    EXPECT_GT(number, passed);
    passed = number;
    std::map<int, std::int64_t> last;
    for (const auto& [item, times] : got) last[item.first] = std::max(last[item.first], item.second);
    const auto seen = std::exchange(got, {});
    for (const auto& [source, most] : last) {
      const auto before = cut.find(source);
      for (std::int64_t i = before == cut.end() ? 0 : before->second + 1; i <= most; ++i) {
        const auto found = seen.find({source, i});
        ASSERT_EQ(found == seen.end() ? 0 : found->second, d.copies({source, i}))
            << "item " << i << " of source " << source << " before barrier " << number;
      }
      cut[source] = most;
    }
  };
  const auto r = workers.start(whole, {}, d.number(1, 4));
  std::uint64_t begun = 0;
  for (int steps = 0; steps < 400 && !testing::Test::HasFailure(); ++steps) {
    if (d.happens(6)) begun = r->begin_barrier();
    ASSERT_TRUE(workers.step()) << "nothing moves any more\n" << r->report().text();
  }
  begun = r->begin_barrier();
  for (int steps = 0; passed != begun && steps < 20'000 && !testing::Test::HasFailure(); ++steps)
    ASSERT_TRUE(workers.step()) << "nothing moves any more\n" << r->report().text();
  EXPECT_EQ(passed, begun) << r->report().text();
  r->cancel();
  while (workers.step()) {
  }
}

TEST(stream_simulation, what_comes_before_a_barrier_is_what_was_pushed_before_it_by_whichever_way) {
  for (std::uint64_t seed = 1; seed != 300 && !HasFailure(); ++seed) run_barriers(seed);
}
TEST(slow_stream_simulation, barriers_in_many_streams) {
  for (std::uint64_t seed = 1000; seed != 5000 && !HasFailure(); ++seed) run_barriers(seed);
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
